"""A run's directory that was made to hurt: links, a stranger's lock, odd names, absurd numbers and parents."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from engines.basics.errors import DataError
from engines.contract.rundir import Attempt
from engines.runs import launch
from engines.supervisor.processes import mark
from tests.cockpit.cli.conftest import Cockpit
from tests.support.fake_run import FakeRun, epoch, stopped_early

HOSTILE = Path(__file__).resolve().parents[4] / "shared" / "data" / "cases" / "hostile"
HOLDER = (
    "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); input()"
)
NUMBERS = (2**62, 2**63 - 1, 2**53 + 1, -(2**63))
ODD = ("²", "٣", "1e3", "-1", "01", "9" * 200, "1.0")
COMMANDS = (
    "show RUN",
    "ls",
    "tail RUN --json",
    "metrics RUN --csv",
    "plot RUN loss",
    "advice RUN",
    "compare RUN OTHER",
)


def answers(cockpit: Cockpit, *commands: str, run: FakeRun, other: FakeRun) -> None:
    """Each ends with numbers or with a sentence."""
    for command in commands:
        words = [{"RUN": run.id, "OTHER": other.id}.get(word, word) for word in command.split()]
        done = cockpit(*words)
        assert done.returncode in (0, 3) or done.stderr.startswith("cockpit: "), command
        assert "Traceback" not in done.stderr


@pytest.mark.behaviour("damaged-run-harms-no-other")
def test_files_beside_the_attempts_are_none(cockpit: Cockpit, runs: Path) -> None:
    run = FakeRun(runs).begin().started().epochs(1).end("finished")
    for name in ODD:
        (run.run.attempts / f"{name}.json").write_text("{}")
    assert run.run.attempt_numbers() == [1]
    assert "finished" in cockpit("ls").stdout
    assert cockpit("show", run.id).returncode == 0


@pytest.mark.behaviour("numbers-parse-run-can")
@pytest.mark.parametrize("step", NUMBERS)
def test_an_epoch_at_any_step_is_shown(step: int, cockpit: Cockpit, runs: Path) -> None:
    other = FakeRun(runs, "controls-20261127-100000-birch").begin().started().epochs(1, 2).end("finished")
    row = epoch(2)
    row.step = step
    run = FakeRun(runs).begin().started().epochs(1).say(row).end("finished")
    answers(cockpit, *COMMANDS, run=run, other=other)


@pytest.mark.behaviour("damaged-run-harms-no-other")
@pytest.mark.parametrize(
    ("parent", "step"), [("OTHER", None), ("OTHER", -5), ("OTHER", 2**63 - 1), ("itself", 3), ("../../etc", 3)]
)
def test_a_parent_that_cannot_be_one_is_a_sentence(parent: str, step: int | None, cockpit: Cockpit, runs: Path) -> None:
    other = FakeRun(runs, "controls-20261127-100000-birch").begin().started().epochs(1, 2).end("finished")
    run = FakeRun(runs).begin().started().epochs(1).end("stopped")
    named = {"OTHER": other.id, "itself": run.id}.get(parent, parent)
    run.run.write_info(msgspec.structs.replace(run.run.info, parent=named, fork_step=step))
    answers(cockpit, *COMMANDS, "weights RUN", "show RUN --config-diff parent", run=run, other=other)


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """A process of somebody else's with a lock of its own."""
    lock = tmp_path / "its.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield lock, process
        finally:
            process.kill()


LOCKS: dict[str, Callable[[Path, Path], object]] = {
    "a link": lambda ours, theirs: ours.symlink_to(theirs),
    "a second name": lambda ours, theirs: os.link(theirs, ours),
    "a pipe": lambda ours, theirs: os.mkfifo(ours),
    "a folder": lambda ours, theirs: ours.mkdir(),
}


@pytest.mark.behaviour("nothing-engine-started-outlives")
@pytest.mark.parametrize("kind", LOCKS)
def test_a_strangers_lock_is_no_reason_to_kill(
    kind: str, stranger: tuple[Path, subprocess.Popen[bytes]], cockpit: Cockpit, runs: Path
) -> None:
    """Even where the attempt says that the stranger is its supervisor."""
    lock, process = stranger
    run = FakeRun(runs).begin().started()
    its = mark(process.pid)
    run.run.write_attempt(Attempt(number=1, started=1.0, supervisor=its, engine=its))  # as of a program that reports
    run.run.lock.unlink(missing_ok=True)
    LOCKS[kind](run.run.lock, lock)
    for command in ("kill", "stop"):
        done = cockpit(command, run.id)
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
    assert process.poll() is None


@pytest.mark.behaviour("run-from-elsewhere-asks")
@pytest.mark.parametrize("what", ["checkpoints", "events.jsonl", "logs/stdout.log", "metrics", "engine.lock", "export"])
def test_a_run_whose_files_lead_elsewhere_is_not_resumed(what: str, runs: Path, tmp_path: Path) -> None:
    run = stopped_early(FakeRun(runs)).run
    mine = tmp_path / "mine"
    path = run.path / what
    if path.exists():
        path.rename(mine)
    elif what == "engine.lock":
        mine.write_text("")
    else:
        mine.mkdir()
    (mine / "keep.tmp").write_text("mine") if mine.is_dir() else None
    path.symlink_to(mine)
    with pytest.raises(DataError, match="is a link, and a run writes into its own directory"):
        launch.start(run)
    assert not mine.is_dir() or (mine / "keep.tmp").read_text() == "mine"


@pytest.mark.skipif(not HOSTILE.is_dir(), reason="the cases are not beside this project (../shared/data)")
@pytest.mark.behaviour("damaged-run-harms-no-other")
def test_the_inputs_that_once_hurt(cockpit: Cockpit, runs: Path, tmp_path: Path) -> None:
    """As they were found: logs to watch and to import, a record over a run's own, a checkpoint to fork from."""
    other = FakeRun(runs, "controls-20261127-100000-birch").begin().started().epochs(1, 2).end("finished")
    run = stopped_early(FakeRun(runs))
    for name in ("events.out.tfevents.1.alternating", "mlflow_huge_step", "import_nan_place.log"):
        (tmp_path / name).write_bytes((HOSTILE / name).read_bytes())
        answers(cockpit, f"watch {name} --once", f"import {name}", run=run, other=other)
    for path in run.run.checkpoints.glob("*.pt"):
        path.write_bytes((HOSTILE / "memo_index.pt").read_bytes())
    forked = cockpit("fork", run.id, "--detach")
    assert (forked.returncode, forked.stdout) == (1, "")
    assert "is not a whole checkpoint" in forked.stderr
    for name in ("deep_run.json", "markup_title_run.json"):
        run.run.info_file.write_bytes((HOSTILE / name).read_bytes())
        answers(cockpit, *COMMANDS, run=run, other=other)
        assert other.id in cockpit("ls").stdout
