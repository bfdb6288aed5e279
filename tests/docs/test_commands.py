"""Every command of README and docs can be typed; quick ones are run, and for the others is named what runs them."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from cockpit.cli import arguments, starting
from engines.contract import spec
from engines.contract.config import load_config
from engines.contract.rundir import RunDirectory
from projects.controls.recordings import read_recording
from tests.docs.commands import PAGES, ROOT, Command, modules, of_page, paths
from tests.projects.agent.test_league import written
from tests.projects.controls.test_import_v1 import version_1
from tests.support.command import called
from tests.support.fake_run import FakeRun, stopped_early
from tests.support.here import engines_here

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
NAMED = ("decisions.md",)
"""Pages that name commands to explain them, and give none to type."""
ALL = [one for page in PAGES if page.name not in NAMED for one in of_page(page)]
OURS = [one for each in ALL for one in each.variants() if one.words()[0] in ("./run", "cockpit")]
CONFIGS = {"CONFIG": "configs/agent_demo.yaml", "spiral.yaml": "", "big.yaml": "configs/controls_v2.yaml"}
"""Configs that a page leaves to its reader, or makes."""
SAID = {"FIRST": "node-0", "RUN": "/shared/runs/big", "NAMES": '["replays/game_02"]', "SLURM_NODEID": "1",
        "SKYPILOT_NODE_RANK": "1"}  # fmt: skip
"""Variables that scripts of the pages set."""


def typed(command: Command) -> list[str]:
    """What `cockpit` gets: variables filled in, what is left to the reader left out."""
    text = re.sub(r"(?: --set)? …", "", command.text)
    return [re.sub(r"\$(\w+)", lambda name: SAID[name[1]], word) for word in Command("", text).words()[1:]]


def is_named(words: list[str]) -> bool:
    """Whether only a command's name is there, as in `cockpit data parse`."""
    return all(re.fullmatch(r"[a-z-]+", word) and not word.startswith("-") for word in words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_can_be_typed_is_a_command(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in OURS:
        if command.page == page.name:
            is_a_command(command, capsys)


def is_a_command(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    """With options that exist, and settings that its config takes."""
    words = typed(command)
    try:
        given = arguments.parse(words)
    except SystemExit:
        assert is_named(words), f"{command.text}: {capsys.readouterr().err}"
        with pytest.raises(SystemExit, match="0"):
            arguments.parse([*words, "--help"])
        return
    module, function = given.command.split(":")
    assert callable(getattr(importlib.import_module(f"cockpit.cli.{module}"), function))
    config = CONFIGS.get(str(getattr(given, "config", "")), getattr(given, "config", ""))
    if config:
        swept = [f"{key}={value}" for each in getattr(given, "sweep", ()) for key, _, values in [each.partition("=")]
                 for value in values.split(",")]  # fmt: skip
        for overrides in (given.overrides, *([one] for one in swept)):
            load_config(ROOT / config, overrides)
    elif words[:2] == ["resume", "last"]:
        load_config(ROOT / "configs/controls_demo.yaml", given.overrides)
    if (project := getattr(given, "project", None)) not in (None, "PROJECT"):
        spec.find(project)


def test_extras_modules_and_options_of_other_programs_are_there() -> None:
    for command in ALL:
        assert set(command.extras()) <= EXTRAS.keys(), command
        words = [word for word in command.words() if word != "-P"]
        if words[0] == "./test":
            assert words[1:] in ([], ["--slow"], ["-m", "gpu"]) or words[1:3] == ["--slow", "-k"], command
            tests = ROOT.joinpath("tests").rglob("test_*.py") if "-k" in words else ()
            assert not tests or any(words[-1] in file.read_text(encoding="utf-8") for file in tests), command
        elif words[1:2] == ["-m"]:
            module = ROOT.joinpath(*words[2].split("."))
            source = (module / "__main__.py" if module.is_dir() else module.with_suffix(".py")).read_text(
                encoding="utf-8"
            )
            if "engines.tasks.study" in source:
                source += (ROOT / "engines/tasks/study.py").read_text(encoding="utf-8")
            for option in (word.strip("[]") for word in words[3:]):
                assert not option.startswith("--") or f'"{option}"' in source, command
            if words[2] == "benchmarks":
                names = [word for word in " ".join(words[3:]).split(", or ")[-1].split() if re.fullmatch(r"\w+", word)]
                assert all(f'"{name}"' in source for name in names), command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_is_there(page: Path) -> None:
    for path in paths(page):
        file, _, test = path.partition("::")
        assert (ROOT / file).exists(), path
        assert not test or f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), path
    for name in modules(page):
        parts = name.split(".")
        whole, above = ROOT.joinpath(*parts), ROOT.joinpath(*parts[:-1]).with_suffix(".py")
        inside = above.is_file() and re.search(rf"\b{parts[-1]}\b", above.read_text(encoding="utf-8"))
        assert whole.is_dir() or whole.with_suffix(".py").is_file() or inside, name


def key(command: Command) -> str:
    """What `cockpit` gets, as the pages write it."""
    text = re.sub(r"(?: --set)? …", "", command.text)
    return re.sub(r"^(?:[A-Z_]+=\S+ +)*\S+ ?", "", text)


HERE = (
    "status --line --width 60", "tag RUN good", "import LOG… --name LABEL",
    "data parse GAMES data/league --project agent", "data parse FILE OUT --set fps=20", "resume RUN", "fork RUN",
    "fork RUN --name LABEL", "fork RUN --epoch N|best|last", "fork RUN --epoch N|best|last --name LABEL",
    "train configs/controls_v2.yaml --queue", "train configs/controls_v2.yaml --set launch.devices=8",
)  # fmt: skip
"""Run below: they take no time, or are prepared up to the start of an engine."""
LONG = "minutes or gigabytes; what it starts is run small by other tests of the project"
STORY, GUIDE, POD = "tests/e2e/test_readme.py", "tests/docs/test_add_a_project.py", "tests/e2e/test_runpod.py"
RANKS = "tests/engines/ranks/test_torchrun.py::test_two_machines_train_one_run"
EVALUATED, STAGES = "tests/projects/controls/test_evaluate_run.py", "tests/engines/test_stage_points.py"
OTHERWISE = {
    "check spiral.yaml": GUIDE,
    "train spiral.yaml": GUIDE,
    "resume last --set training.epochs=10": GUIDE,
    "check CONFIG --games 100000": "tests/cockpit/cli/test_checking.py",
    "check CONFIG --profile": "tests/engines/test_profiling.py",
    "data make PROJECT OUT": STORY,
    "task PROJECT|CONFIG|RUN": "tests/cockpit/cli/test_tasks.py",
    "export RUN --stage NAME": "tests/projects/controls/test_export_stage.py",
    "export RUN --set flat=true": "tests/projects/controls/test_flat.py",
    "fork RUN --stage NAME|N": STAGES,
    "fork RUN --stage NAME|N --name LABEL": STAGES,
    "rollout RUN": STORY,
    "rollout last --set starts=300": STORY,
    "rollout RUN --set games=test --set starts=300": LONG,
    **{f"evaluate RUN --data {data}": EVALUATED for data in ("DIR", "FOLDER", "STORE")},
    "play RUN": STORY,
    "play RUN --as p2": "tests/e2e/test_live.py",
    "play RUN --ascii": "tests/e2e/test_terminals.py",
    "--ascii": "tests/e2e/test_terminals.py",
    "play RUN --recording features.json|latents.npz": "tests/projects/agent/test_play.py",
    "play RUN --recording DRIVE|LOG": "tests/projects/sim/test_play.py",
    **{f"data make {what}": POD for what in ("agent OUT", "sim OUT", "melee OUT --set games=12 --set minutes=2")},
    "data stats STORE": "tests/projects/melee/test_stats.py",
    "thresholds RUN": STORY,
    "--host gpu1 --host me@gpu2:/data/runs": "tests/e2e/test_hosts.py",
    **{f"{what} gpu1": "tests/cockpit/cli/test_hosts.py" for what in ("hosts --forget", "ls --host")},
    "data parse LOG data/rover --project sim": "tests/projects/sim/test_data_commands.py",
    "data parse LOG OUT --project sim": "tests/projects/sim/test_data_commands.py",
    "task CONFIG cache": "tests/projects/sim/test_data_commands.py",
    "train configs/agent_league.yaml": LONG,
    "train configs/controls_v2.yaml --sweep training.lr=5e-4,1e-3 --sweep training.seed=1,2": STORY,
    **{key(one): RANKS for one in OURS if one.text.startswith("./run train big.yaml")},
    **{key(one): LONG for one in OURS if "data.test=" in one.text},
}
"""What runs the others: a test of the same command with other values, or why none does."""


def test_every_command_is_run_by_a_test() -> None:
    stories = {key(one) for one in OURS if one.page in ("README.md", "runpod.md")}
    others = {key(one) for one in OURS if one.page not in ("README.md", "runpod.md") and not is_named(key(one).split())}
    assert others - stories == {*HERE, *OTHERWISE}
    for where in OTHERWISE.values():
        file, _, test = where.partition("::")
        assert where == LONG or ((ROOT / file).is_file() and test in (ROOT / file).read_text(encoding="utf-8")), where


def test_quick_commands_do_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, games = tmp_path / "runs", tmp_path / "games"
    for folder in (runs, games):
        folder.mkdir()
    monkeypatch.setenv("COCKPIT_RUNS", str(runs))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    run = stopped_early(FakeRun(runs))
    written(games / "NA1_1.npz")
    version_1(tmp_path / "old.npz", rows=90)
    (tmp_path / "log.jsonl").write_text("".join(f'{{"step": {k}, "loss": {1 / (k + 1)}}}\n' for k in range(20)))
    places = {
        "RUN": run.id, "LOG…": "log.jsonl", "LABEL": "mine", "GAMES": "games", "FILE": "old.npz", "OUT": "out",
        "N|best|last": "best",
    }  # fmt: skip
    prepared: list[str] = []

    def start(run: RunDirectory, *more: object, **options: object) -> int:
        prepared.append(run.info.id)
        return 0

    monkeypatch.setattr(starting, "_start", start)
    for command in HERE:
        with engines_here():
            done = called(*(places.get(word, word) for word in command.split()))
        assert done.returncode == 0, f"{command}: {done.stderr}"
    assert len(prepared) == len(set(prepared)) == sum(one.startswith(("resume", "fork", "train")) for one in HERE)
    assert prepared[0] == run.id
    assert list((tmp_path / "data/league").rglob("features.json"))
    assert len(read_recording(tmp_path / "out" / "old.npz")) == 60  # 90 frames at 30 a second
    listed = called("ls", "--filter", "tag:good").stdout
    assert run.id in listed
    assert "mine" in called("ls").stdout
