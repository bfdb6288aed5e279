"""Ending a run by signals: only its own process is meant, and a program that reports itself is not lost afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from cockpit.core.run.ending import send_signal
from engines.basics.errors import DataError
from engines.basics.lock import lock_holder
from engines.contract.rundir import ProcessMark
from engines.runs.state import RunReader, Status
from tests.support.fake_run import FakeRun
from tests.support.reporting_script import reporting_script


@pytest.mark.behaviour("nothing-engine-started-outlives")
def test_a_signal_goes_to_the_holder_of_the_lock_only(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started()
    assert not send_signal(fake.run, signal.SIGQUIT)
    with fake.locked():
        assert send_signal(fake.run, signal.SIGQUIT)
        while lock_holder(fake.run.lock) is not None:  # it records the kill and leaves
            pass
    assert RunReader(fake.run).status().state == "stopped"
    assert not send_signal(fake.run, signal.SIGQUIT)


@pytest.mark.behaviour("signal-reaches-no-stranger")
def test_no_lock_leads_to_a_stranger(tmp_path: Path) -> None:
    """A link, a second name and a lock that another process than the recorded one holds."""
    stranger = FakeRun(tmp_path, "controls-20261127-100000-elm").begin().started()
    with stranger.locked() as holder:
        for word in ("oak", "fir"):
            fake = FakeRun(tmp_path, f"controls-20261127-110000-{word}").begin().started()
            fake.run.lock.unlink(missing_ok=True)
            if word == "oak":
                fake.run.lock.symlink_to(stranger.run.lock)
            else:
                fake.run.lock.hardlink_to(stranger.run.lock)
            assert not send_signal(fake.run, signal.SIGQUIT)
            fake.run.lock.unlink()
        attempt = stranger.run.attempt(1)
        attempt.supervisor = ProcessMark(os.getpid(), 1.0)
        stranger.run.write_attempt(attempt)
        with pytest.raises(DataError, match="not the one that its record names"):
            send_signal(stranger.run, signal.SIGQUIT)
        assert lock_holder(stranger.run.lock) == holder


@pytest.mark.behaviour("script-somebody-else-s")
def test_a_killed_script_takes_its_children_along_and_is_stopped_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path))
    with reporting_script(tmp_path, deaf=True) as (process, run):
        (child,) = psutil.Process(process.pid).children()
        assert send_signal(run, signal.SIGTERM)  # it is deaf to that, and lives on
        assert RunReader(run).status().state == "running"
        assert send_signal(run, signal.SIGQUIT)
        assert process.wait() == -signal.SIGKILL
        child.wait()
    assert RunReader(run).status() == Status("stopped", "killed on request")


@pytest.mark.behaviour("script-somebody-else-s")
def test_nobody_has_to_be_there_when_a_script_dies_of_a_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sent it may have left; of one that nobody has sent a signal, it is not known how it ended."""
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path))
    with reporting_script(tmp_path) as (process, run):
        leaves = (
            "import sys; from pathlib import Path; from signal import SIGTERM\n"
            "from cockpit.core.run.ending import send_signal; from engines.contract.rundir import RunDirectory\n"
            "send_signal(RunDirectory(Path(sys.argv[1])), SIGTERM)"
        )
        subprocess.run([sys.executable, "-c", leaves, str(run.path)], check=True)
        assert process.wait() == -signal.SIGTERM
    assert RunReader(run).status() == Status("stopped", "ended by SIGTERM on request")
    run.asked_to_die(1).unlink()
    assert RunReader(run).status().state == "lost"


def test_of_a_supervised_run_nothing_is_recorded_but_by_its_supervisor(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started()
    with fake.locked() as supervisor:
        assert send_signal(fake.run, signal.SIGTERM)
        os.waitpid(supervisor, 0)
        assert not fake.run.asked_to_die(1).exists()
    assert RunReader(fake.run).status().state == "lost"
