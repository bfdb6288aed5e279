"""Start in a terminal, lose it, come back in another: the run went on, every row is there, it can be stopped."""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from engines.basics.lock import lock_holder
from engines.contract.rundir import RunDirectory
from engines.runs.state import RunReader
from engines.runs.store import list_runs
from tests.e2e.conftest import COCKPIT, Terminal, wait_for

LONG = (
    "--set training.epochs=5000 --set training.patience=5000 --set training.steps_per_epoch=4 "
    "--set training.batch_size=16 --set launch.threads=1"
)
Open = Callable[..., Terminal]


def demo_command(data: Path) -> str:
    """The demo on `data`, far too long to end by itself, as a shell takes it."""
    return f"{shlex.quote(str(COCKPIT))} demo --set {shlex.quote(f'data.path={data}')} {LONG}"


def training_run(folder: Path) -> RunDirectory:
    found: list[RunDirectory] = []

    def appeared() -> bool:
        found[:] = [run for run in list_runs(folder) if run.info.kind == "training"]
        return bool(found)

    wait_for("the training to start", appeared)
    return found[0]


def epochs_of(run: RunDirectory) -> int:
    reader = RunReader(run)
    reader.poll()
    return len(reader.history.epochs)


@pytest.mark.behaviour("closed-terminal-ends-run", "frozen-cockpit-holds-nothing")
def test_neither_a_frozen_cockpit_nor_a_dead_terminal_holds_a_run_up(
    terminal: Open, tmp_path: Path, demo_data: Path
) -> None:
    first = terminal(demo_command(demo_data))
    run = training_run(tmp_path / "runs")
    first.wait_text("TrLoss")
    wait_for("three rows on the screen", lambda: len(epochs_on(first)) >= 3, first.screen)
    assert "VlF1" in first.screen()
    engine = run.attempt(1).engine
    assert engine is not None
    freeze_until(run, first, demo_data, more=5)
    first.kill()

    before = epochs_of(run)
    wait_for("epochs after the terminal is gone", lambda: epochs_of(run) >= before + 2)
    second = terminal(shlex.quote(str(COCKPIT)), (200, 50))
    second.wait_text(run.path.name[:20])
    second.press("Enter")
    second.wait_text("TrLoss")
    wait_for("the same rows again", lambda: len(epochs_on(second)) >= 3, second.screen)
    for state in ("paused", "running"):
        second.press("p")
        wait_for(f"the run to be {state}", lambda state=state: RunReader(run).status().state == state, second.screen)  # type: ignore[misc]
        second.wait_text(state)
    second.press("s")
    wait_for("the engine to stop", lambda: lock_holder(run.lock) is None, second.screen)
    second.wait_text("stopped")
    assert RunReader(run).status().state == "stopped"
    assert run.last.is_file()
    # the newest row shown is the newest there is, and no row was lost on the way
    newest = epochs_of(run)
    wait_for("the last row", lambda: f" {newest} " in second.screen(), second.screen)
    reader = RunReader(run)
    reader.poll()
    assert list(reader.history.epochs) == list(range(1, newest + 1))
    second.press("q")
    wait_for("the cockpit to leave", lambda: second.screen() == "")


def epochs_on(terminal: Terminal) -> list[int]:
    """Of the table's rows on the screen: lines that open with an epoch number and, maybe after a step, a loss."""
    cells = [line.strip("│╭╰ ").split() for line in terminal.screen().splitlines()]
    return [int(row[0]) for row in cells if len(row) > 6 and row[0].isdigit() and "." in row[1] + row[2]]


def freeze_until(run: RunDirectory, frozen: Terminal, data: Path, *, more: int) -> None:
    """The cockpit in the terminal stands still while the run does so many epochs; then it catches up."""
    pattern = f"{COCKPIT} demo --set data.path={data}"
    found = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True, check=False)
    cockpits = [int(pid) for pid in found.stdout.split()]
    assert cockpits
    for pid in cockpits:
        os.kill(pid, signal.SIGSTOP)
    before = epochs_of(run)
    wait_for("epochs while the cockpit is frozen", lambda: epochs_of(run) >= before + more)
    for pid in cockpits:
        os.kill(pid, signal.SIGCONT)
    wait_for("the cockpit to catch up", lambda: max(epochs_on(frozen), default=0) >= before + more, frozen.screen)


@pytest.mark.behaviour("closed-terminal-ends-run")
def test_a_terminal_that_goes_without_a_signal_ends_the_cockpit(env: dict[str, str]) -> None:
    """One that does not control it sends no SIGHUP: it was left reading nothing on a whole core."""
    ours, its = pty.openpty()
    with subprocess.Popen([COCKPIT], stdin=its, stdout=its, stderr=its, env=env, start_new_session=True) as process:
        try:
            os.close(its)
            shown = b""
            while b"quit" not in shown:
                shown += os.read(ours, 4096)
            assert process.poll() is None
            os.close(ours)
            assert process.wait(timeout=60) == 128 + signal.SIGHUP
        finally:
            process.kill()
