"""docs/runpod.md, read out of it and run from top to bottom; and what a pod starts with."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, Terminal, wait_for
from tests.e2e.test_readme import ACTION, SMALL, SMALL_AGENT, SMALL_MELEE, story  # noqa: F401  a fixture
from tests.e2e.test_readme import Story as ReadmeStory
from tests.projects.melee.tables import columns, write_table
from tests.support.command import called

PAGE = ROOT / "docs" / "runpod.md"
BLOCK = re.compile(r"^```sh( \w+)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
STUB = '#!/bin/sh\necho "$(basename "$0") $*" >>"$CALLS"\n'
DATA = (
    "data make controls data/controls_demo --sessions 4 --minutes 0.5",
    "data make melee data/demo/melee --set games=2 --set minutes=0.3",
    "data make agent data/demo/agent --set games=3 --set frames=60",
    "data make sim data/sim_demo --set drives=4 --set minutes=0.2",
)
"""Demo data smaller than the demos make it."""
SMALL_SIM = ("training.epochs=1", "training.steps_per_epoch=2", "launch.threads=1", "data.split_seed=42")
BY_COMMAND = {
    "demo controls": (*SMALL, "training.epochs=1"), "check configs/controls": SMALL,
    "train configs/controls": (*SMALL, "training.epochs=1"), "demo melee": SMALL_MELEE,
    "data parse REPLAYS": ("least_frames=100",), "data parse LOG": ("sessions=2",),
    "train configs/melee": SMALL_MELEE, "demo agent": SMALL_AGENT, "demo sim": SMALL_SIM,
}  # fmt: skip
"""What makes a command small enough for a test, by its beginning."""


def commands(kind: str = "") -> list[str]:
    """The lines of the page's blocks of one kind: typed on the pod, `here`, or its start command."""
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    return [line for found, text in blocks if found.strip() == kind for line in text.splitlines() if line]


TYPED = ("ssh", "scp", "tmux", "git", "apt-get")


@pytest.fixture
def stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that only write down how they were called, in the file that this gives."""
    for folder, names in {"bin": ("runpodctl",), "typed": TYPED}.items():
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_text(STUB)
            (tmp_path / folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


def type_in_shell(line: str, stubs: Path, folder: Path) -> None:
    """Run a line of the page; the programs that it names are stubs."""
    env = {**os.environ, "PATH": f"{stubs.with_name('typed')}:{os.environ['PATH']}"}
    assert subprocess.run(["sh", "-c", line], check=False, cwd=folder, env=env).returncode == 0, line


@pytest.mark.slow
@pytest.mark.behaviour("pod-page-runs")
def test_every_command_on_the_pod_does_what_the_page_says(
    story: ReadmeStory,  # noqa: F811
    terminal: Callable[..., Terminal], stubs: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("RUNPOD_POD_ID", "abc123")
    log = story.folder / "log.jsonl"
    log.write_text("".join(json.dumps({"action": ACTION, "timestamp": 50 * tick}) + "\n" for tick in range(400)))
    replays = story.folder / "replays"
    replays.mkdir()
    for k in range(5):
        write_table(replays / f"game_{k}.parquet", columns(260, k))
    places = {"LOG": str(log), "REPLAYS": str(replays), "REPOSITORY": str(ROOT)}
    for line in DATA:
        assert called(*line.split()).returncode == 0
    volume = str(story.folder / "workspace")
    printed: dict[str, str] = {}
    for line in commands():
        before, _, typed = line.partition("./run")
        if not typed and not line.endswith("./run"):
            Path(volume, "cockpit").mkdir(parents=True, exist_ok=True)
            type_in_shell(line.replace("/workspace", shlex.quote(volume)), stubs, Path(volume))
        elif not typed.strip() or "play" in typed:
            shows(terminal, typed.strip())
        else:
            assert before in ("", "COCKPIT_EXTRAS=sim ")
            words = [places.get(word, word.replace("/workspace", volume)) for word in typed.split()]
            small = next((more for start, more in BY_COMMAND.items() if typed.strip().startswith(start)), ())
            done = called(*words, *(part for one in small for part in ("--set", one)))
            assert done.returncode == (int("FAIL" in done.stdout) if typed.strip() == "doctor" else 0), (
                line + done.stderr
            )
            printed[typed.strip()] = done.stdout + done.stderr
    (trained,) = (text for line, text in printed.items() if line.startswith("train configs/controls"))
    assert "this runs: stop-pod (" in trained
    assert "runpodctl stop pod abc123" in trained
    assert "scp " in printed["bundle last"]
    assert printed["stop --all"] == "cockpit: no run is live\n"
    calls = stubs.read_text().splitlines()
    assert calls[-1] == "runpodctl remove pod abc123"
    assert "git clone REPOSITORY cockpit" in calls


def shows(terminal: Callable[..., Terminal], command: str) -> None:
    """The cockpit opens and is left."""
    screen = terminal(f"{sys.executable} -m cockpit.cli {command}; echo it has left; cat")
    screen.wait_text("cockpit", "P(event)")
    screen.press("q")
    screen.wait_text("it has left")


def test_what_is_typed_elsewhere_are_commands(stubs: Path) -> None:
    for line in commands("here"):
        type_in_shell(line, stubs, ROOT)
    assert [line.split()[0] for line in stubs.read_text().splitlines()] == ["ssh", "scp"]
    (start,) = commands("start")
    assert "/workspace/cockpit/scripts/pod.sh" in start
    assert subprocess.run(["sh", "-n", ROOT / "scripts" / "pod.sh"], check=False).returncode == 0


@pytest.mark.behaviour("pod-saves-when-taken-away")
def test_a_pod_keeps_all_on_its_volume_and_saves_when_it_is_taken_away(tmp_path: Path, stubs: Path) -> None:
    root, volume, home = tmp_path / "cockpit", tmp_path / "volume", tmp_path / "home"
    for folder in (root / "scripts", volume, home):
        folder.mkdir(parents=True)
    script = root / "scripts" / "pod.sh"
    script.write_bytes((ROOT / "scripts" / "pod.sh").read_bytes())
    (root / "run").write_text(STUB)
    (root / "run").chmod(0o755)
    env = {**os.environ, "VOLUME": str(volume), "HOME": str(home), "RUNPOD_POD_ID": "abc123"}
    for started in (1, 2):  # a pod is stopped and started again
        pod = subprocess.Popen(["sh", script], env=env, start_new_session=True)
        try:
            wait_for("doctor", lambda: stubs.exists() and stubs.read_text().count("run doctor") == started)  # noqa: B023
            wait_for("its sleep", lambda: children(pod.pid))  # noqa: B023
            pod.send_signal(signal.SIGTERM)
            assert pod.wait(60) == 0
        finally:
            pod.kill()
            pod.wait()
        assert stubs.read_text().splitlines()[-1] == "run stop --all"
    assert (home / ".bashrc").read_text() == f". {volume}/env.sh\n"
    shell = f". {volume}/env.sh && echo $COCKPIT_RUNS $XDG_CONFIG_HOME $RUNPOD_POD_ID $(pwd)"
    told = subprocess.run(
        ["sh", "-c", shell], capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]}
    )
    assert told.stdout.split() == [f"{volume}/runs", f"{volume}/.config", "abc123", str(root)]


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
