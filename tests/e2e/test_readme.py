"""Every command in the README, read out of it and run in one story: a row that cannot be run fails here."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cockpit.cli import steering
from tests.e2e.conftest import COCKPIT, ROOT, Terminal
from tests.projects.melee.tables import columns, write_table
from tests.support.command import called
from tests.support.here import engines_here
from tests.support.near_ssh import use_near_ssh

SMALL = (
    "model.d_model=16", "model.nhead=2", "model.num_layers=1", "model.dim_feedforward=16",
    "training.steps_per_epoch=5", "training.batch_size=16", "launch.threads=1",
)  # fmt: skip
SMALL_MELEE = (
    "model.d_model=32", "model.n_layers=1", "training.epochs=1", "training.steps_per_epoch=3", "training.batch_size=4",
    "training.warmup_epochs=0", "rollouts.starts=2", "rollouts.windows=8", "launch.threads=1",
)  # fmt: skip
SMALL_AGENT = (
    "model.width=16", "model.heads=2", "model.hidden=16", "played.windows=8", "played.episodes=2", "played.frames=20",
    "training.epochs=2", "training.steps_per_epoch=2", "training.batch_size=4", "launch.threads=1",
    "training.stages=[{name: agent, epochs: 1, heads: [dynamics, reward, bc]}, {name: dream, heads: [value, policy]}]",
)  # fmt: skip
TRAIN = "train configs/controls_v2.yaml --set training.lr=3e-4"
KEYS = (
    "forward", "back", "left", "right", "jump", "sneak", "sprint", "drop", "swapHands", "inventory", "ESC",
    *(f"hotbar.{slot}" for slot in range(1, 10)),
)  # fmt: skip
ACTION = {"keyboard": dict.fromkeys(KEYS, 0), "mouse": {"camera": [0.0, 1.0], "buttons": []}}


def readme_commands() -> set[str]:
    """What stands behind `./run`. In a table's cell the words `./run` stand once."""
    found = []
    for line in (ROOT / "README.md").read_text().splitlines():
        if line.startswith("./run"):
            found.append(line.split("#")[0])
        elif line.startswith("| `./run"):
            found += [f"./run {span.removeprefix('./run ')}" for span in re.findall(r"`([^`]+)`", line.split("|")[1])]
        else:
            found += re.findall(r"`(\./run[^`]*)`", line)
    return {" ".join(command.split()[1:]) for command in found}


class Story:
    """Runs README commands with its placeholders filled in, each at a time when it makes sense."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.left = readme_commands()
        self.run = "last"
        (folder / "configs").symlink_to(ROOT / "configs")
        log = folder / "log.jsonl"
        log.write_text("".join(json.dumps({"action": ACTION, "timestamp": 50 * tick}) + "\n" for tick in range(400)))
        data = str(folder / "out")
        self.places = {"LOG": str(log), "OUT": data, "PATH": data}
        self.small = [part for one in (f"data.path={data}", *SMALL) for part in ("--set", one)]

    def fill(self, command: str) -> str:
        """A command of the README, now tried, with what its placeholders stand for."""
        self.left.discard(command)
        return " ".join({**self.places, "RUN": self.run}.get(word, word) for word in command.split())

    def tell(self, command: str, *more: str) -> str:
        """Run a command of the README to its end, which must be a good one, and give what it printed."""
        done = called(*self.fill(command).split(), *more)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def queue(self) -> None:
        """A sweep behind the run that runs: its second run put first, then both taken out."""
        sweep = self.tell("train configs/controls_v2.yaml --sweep training.seed=1,2", *self.small)
        first, second = (line.split()[0] for line in sweep.splitlines())
        running, self.run = self.run, second
        self.tell("queue move RUN first")
        listed = self.tell("queue")
        assert listed.index(running) < listed.index(second) < listed.index(first)
        for self.run in (first, second):
            self.tell("queue cancel RUN")
        self.run = running

    def descend(self) -> None:
        """A fork, steered to an early end and compared; then the run that it came from, once more."""
        parent, self.run = self.run, self.tell("fork RUN --set training.lr=1e-4 --detach").strip()
        assert parent in self.tell("show RUN")
        self.tell("pause RUN")
        for steer in ("epochs RUN 200", "patience RUN 20", "weights RUN", "evaluate RUN", "early-stop RUN"):
            self.tell(steer)
        self.tell("tail RUN")
        self.places["OTHER"], self.run = self.run, parent
        assert "keys are equal" in self.tell("compare RUN OTHER")
        assert "equals" in self.tell("replay RUN")

    def give_out(self) -> None:
        """What a finished run has: its values, chart, log, report, advice and export."""
        assert self.tell("metrics RUN --csv").splitlines()[0].startswith("step,epoch,time,score,")
        assert "┤" in self.tell("plot RUN score")
        self.tell("log RUN")
        assert "baselines" in self.tell("report RUN")
        self.tell("advice RUN")
        self.tell("export RUN")

    def start(self, *more: str) -> str:
        """Train as the README says, detached, and give the run's id."""
        return self.tell(TRAIN, *self.small, "--detach", *more).split()[0]


@pytest.fixture
def story(tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Story]:
    """In the folder and with the environment that its terminals have. Only what is detached needs a process."""
    for name in os.environ.keys() - env.keys():
        monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(steering, "ANSWER_SECONDS", 60.0)  # of an engine that loads torch on a busy machine
    monkeypatch.chdir(tmp_path)
    use_near_ssh(tmp_path / "near", monkeypatch)
    with engines_here():
        yield Story(tmp_path)


def dream_of_melee(story: Story) -> None:
    """Games parsed, a small world model of them trained and rolled out, and the demo; then RUN is what it was."""
    replays, before = story.folder / "replays", story.run
    replays.mkdir()
    for k in range(5):
        write_table(replays / f"game_{k}.parquet", columns(260, k))
    story.places["REPLAYS"] = str(replays)
    parsed = story.tell("data parse REPLAYS data/melee", "--set", "least_frames=100")
    assert ["taken", "5"] in [line.split() for line in parsed.splitlines()]
    small = [part for one in SMALL_MELEE for part in ("--set", one)]
    story.tell("train configs/melee_cpu.yaml", *small)
    story.run = "last"
    rolled = story.tell("rollout RUN --set starts=300", "--set", "starts=2", "--set", "horizons=1,5")
    assert "constant velocity" in rolled
    story.tell("demo melee", "--headless", *small)
    story.run = before


def dream_of_an_agent(story: Story, terminal: Callable[..., Terminal]) -> None:
    """The demo, made small, on a few games, and what play shows of it."""
    games = called("data", "make", "agent", "data/demo/agent", "--set", "games=3", "--set", "frames=60")
    assert games.returncode == 0, games.stderr
    small = [part for one in SMALL_AGENT for part in ("--set", one)]
    story.tell("demo agent", "--headless", *small)
    play = terminal(f"{COCKPIT} {story.fill('play last')}; echo it has left; cat")
    play.wait_text("P(event)")
    play.press("q")
    play.wait_text("it has left")


def open_screens(story: Story, terminal: Callable[..., Terminal]) -> None:
    """The demo without a screen and with one, the screen alone, that of another machine, and one in a browser."""
    story.tell("demo --headless", *story.small, "--set", "training.epochs=1")
    for command in ("", "demo", "--host user@box"):
        screen = terminal(f"{COCKPIT} {command}; echo it has left; cat")
        screen.wait_text("cockpit")
        screen.press("q")
        screen.wait_text("it has left")
        story.left.discard(command)
    assert "user@box" in story.tell("hosts")
    served = terminal(f"{COCKPIT} {story.fill('serve')} --port 0; echo it has left; cat")
    served.wait_text("/?token=")
    served.press("C-c")
    served.wait_text("it has left")


def test_every_command_of_the_readme_does_what_it_says(story: Story, terminal: Callable[..., Terminal]) -> None:
    story.tell("init controls")
    assert "complete" in story.tell("completion bash")
    story.tell("data make controls OUT", "--sessions", "4", "--minutes", "0.5")
    story.places["OUT"] += "-parsed"
    story.tell("data parse LOG OUT", "--set", "sessions=2")
    assert "frames" in story.tell("data stats PATH")
    assert "parameters" in story.tell("check configs/controls_v2.yaml", *story.small)
    tried = story.tell("check configs/controls_v2.yaml --try", "--try-seconds", "1", *story.small)
    assert "equal to what was saved" in tried

    story.run = story.start("--set", "training.epochs=199", "--set", "training.patience=2")
    story.tell("pause RUN")
    assert story.run in story.tell("ls")
    assert story.run in story.tell("status")
    assert story.run.rpartition("-")[2] in story.tell("status --line")
    assert "run.stop" in story.tell("keys")
    story.queue()
    for steer in ("weights RUN look=0.8", "lr RUN 0.5x", "checkpoint RUN", "continue RUN"):
        story.tell(steer)
    story.tell("stop RUN")
    assert "look" in story.tell("show RUN")
    story.descend()
    story.tell("resume RUN --set training.epochs=200")

    story.run = story.start("--set", "training.epochs=2", "--set", "training.steps_per_epoch=200")
    story.tell("pause RUN")
    story.tell("kill RUN")
    story.tell("resume last")
    assert [line.split()[0] for line in story.tell("tail RUN").splitlines()[2:]] == ["1", "2"]
    story.give_out()
    assert "idle accuracy" in story.tell("thresholds RUN --optimize --save")
    assert "write the export of a run again" in story.tell("task controls")
    story.places["FILE"] = str(next(Path(story.places["PATH"]).glob("*.npz")))
    play = terminal(f"{COCKPIT} {story.fill('play RUN --recording FILE')}; echo it has left; cat")
    play.wait_text("next ≠")
    play.press("q")
    play.wait_text("it has left")

    dream_of_melee(story)
    dream_of_an_agent(story, terminal)
    losses = story.folder / "losses.jsonl"
    losses.write_text("".join(json.dumps({"step": step, "loss": 1 / (step + 1)}) + "\n" for step in range(20)))
    story.places |= {"LOG…": str(losses), "PATH…": str(losses)}
    assert "loss" in story.tell("watch PATH…", "--once")
    story.tell("import LOG…")
    bundled = story.tell("bundle RUN").strip()
    story.tell("prune")
    for keep in ("label RUN TEXT", "note RUN TEXT", "tag RUN TAG", "baseline RUN", "delete RUN --yes"):
        story.tell(keep)
    story.places["FILE"] = bundled
    assert story.run in story.tell("unbundle FILE")
    assert "torch" in story.tell("doctor")
    assert "box:" in story.tell("ls --host user@box")

    open_screens(story, terminal)
    assert not story.left, f"in the README but not tried here: {sorted(story.left)}"
