"""What can be typed: wrong use is one line and 2, help and version cost nothing."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

import cockpit as package
from cockpit.cli import main, showing
from cockpit.cli.arguments import parse
from engines.basics.errors import DataError, UserError
from engines.basics.lock import lock_holder
from tests.cockpit.cli.conftest import Cockpit
from tests.support.fake_run import FakeRun


def test_the_version_imports_almost_nothing() -> None:
    command = [sys.executable, "-P", "-X", "importtime", "-m", "cockpit.cli", "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout == f"cockpit {package.__version__}\n"
    imported = {
        line.rpartition("|")[2].strip() for line in answer.stderr.splitlines() if line.startswith("import time:")
    }
    ours = {name for name in imported if name.partition(".")[0] in ("cockpit", "engines", "projects")}
    files = ("cli", "cli.arguments", "cli.codes", "cli.options", "cli.run_commands", "core", "core.typed")
    assert ours == {"cockpit", *(f"cockpit.{file}" for file in files)}
    assert not imported & {"msgspec", "pydantic", "yaml", "rich", "textual", "numpy", "torch", "asyncio", "subprocess"}


def test_no_command_but_the_app_imports_screens_or_torch() -> None:
    commands = (["ls"], *([command, "x"] for command in ("show", "tail", "stop", "train")))
    modules = ", ".join({f"cockpit.cli.{parse(typed).command.partition(':')[0]}" for typed in commands})
    code = f"import sys, {modules}; print({{'torch', 'textual', 'pydantic'}} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "set()\n"


@pytest.mark.parametrize(
    ("command", "names", "options"),
    [
        ("weights", ["last", "look=0.1", "action=2"], [["--at", "epoch"], ["--json"]]),
        ("compare", ["a", "b"], [["--open"], ["--json"]]),
        ("delete", ["a", "b"], [["--yes"]]),
        ("import", ["a", "b"], [["--name", "x"]]),
        ("thresholds", ["last"], [["--set", "a=-1"], ["--diff"]]),
        ("demo", ["controls"], [["--headless"]]),
    ],
)
def test_options_may_stand_before_between_and_behind_names(
    command: str, names: list[str], options: list[list[str]]
) -> None:
    """Every order that keeps the names in theirs means the same as options last, and as options first."""
    last = parse([command, *names, *itertools.chain(*options)])
    given = (it if isinstance(it, list) else [it] for it in vars(last).values())
    assert set(names) <= set(itertools.chain(*given))
    orders = set(itertools.permutations(range(len(names) + len(options))))
    for order in orders:
        if [place for place in order if place < len(names)] == list(range(len(names))):
            parts = [[names[place]] if place < len(names) else options[place - len(names)] for place in order]
            assert parse([command, *itertools.chain(*parts)]) == last


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["weights"], "cockpit: the following arguments are required: RUN; see `cockpit weights --help`."),
        (["delete", "--yes"], "cockpit: the following arguments are required: RUN; see `cockpit delete --help`."),
        (["trian"], "cockpit: 'trian' is not a command (did you mean 'train'?); see `cockpit --help`."),
        (["train"], "cockpit: the following arguments are required: CONFIG; see `cockpit train --help`."),
        (["train", "a.yaml", "--detached"], "cockpit: unrecognized arguments: --detached; see `cockpit --help`."),
        (["train", "a.yaml", "--det"], "cockpit: unrecognized arguments: --det; see `cockpit --help`."),
        (["stop", "last", "--after", "hour"], "cockpit: argument --after: invalid choice: 'hour'"),
        (["lr", "last"], "cockpit: the following arguments are required: SCALE"),
        (["data"], "cockpit: the following arguments are required: VERB; see `cockpit data --help`."),
        (["data", "make", "controls", "out", "--sessions", "few"], "cockpit: argument --sessions: invalid int value"),
    ],
)
def test_wrong_use_is_one_line(capsys: pytest.CaptureFixture[str], typed: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(typed)
    assert ended.value.code == 2
    answer = capsys.readouterr()
    assert answer.out == ""
    assert answer.err.startswith(message)
    assert answer.err.count("\n") == 1


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    "command", ["resume", "fork", "stop", "pause", "continue", "kill", "checkpoint", "show", "tail", "report"]
)
def test_a_run_that_is_not_there_is_wrong_use(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main([command, "nothing"]) == 2
    assert capsys.readouterr().err.startswith("cockpit: No run is called 'nothing' in ")


def test_an_empty_run_name_means_no_run(cockpit: Cockpit, runs: Path) -> None:
    """As in `cockpit kill "$RUN"` with the variable unset."""
    fake = FakeRun(runs).begin().started()
    with fake.locked() as pid:
        answer = cockpit("kill", "")
        assert lock_holder(fake.run.lock) == pid
    assert answer.returncode == 2
    assert "RUN is empty" in answer.stderr


def test_help_names_every_command_and_every_exit_code(cockpit: Cockpit) -> None:
    answer = cockpit("--help")
    assert answer.returncode == 0
    words = (
        "demo train resume check stop pause continue kill weights lr checkpoint ls show tail report data",
        "0 done 1 failed 2 wrong use 3 stopped 130 interrupted",
    )
    for word in " ".join(words).split():
        assert word in answer.stdout


def test_the_app_without_a_terminal_says_what_works_without_one(cockpit: Cockpit) -> None:
    answer = cockpit()
    assert answer.returncode == 2
    assert answer.stderr.startswith("cockpit: The cockpit needs a terminal")


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        (OSError(28, "No space left on device", "/runs/a"), 1, "cockpit: /runs/a: No space left on device.\n"),
        (OSError("no such luck"), 1, "cockpit: no such luck.\n"),
        (UserError("one\ntwo\x1b[2J"), 2, "cockpit: one\ncockpit: two\n"),
        (DataError("three"), 1, "cockpit: three\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_faults_are_sentences_and_exit_codes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fault: BaseException, code: int, message: str
) -> None:
    def fail(arguments: object) -> int:
        raise fault

    monkeypatch.setattr(showing, "ls", fail)
    assert main(["ls"]) == code
    assert capsys.readouterr().err == message
