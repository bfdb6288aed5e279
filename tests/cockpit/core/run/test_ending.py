"""Ending a run by signals: only its own process is meant, and a program that reports itself is not lost afterwards."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from cockpit.core.run.ending import record_end, send_signal
from engines.contract.lock import lock_holder
from engines.contract.state import RunReader, Status
from tests.support.fake_run import FakeRun
from tests.support.reporting_script import reporting_script


def test_a_signal_goes_to_the_holder_of_the_lock_only(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started()
    assert not send_signal(fake.run, signal.SIGQUIT)
    with fake.locked():
        assert send_signal(fake.run, signal.SIGQUIT)
        while lock_holder(fake.run.lock) is not None:  # it records the kill and leaves
            pass
    assert RunReader(fake.run).status().state == "stopped"
    assert not send_signal(fake.run, signal.SIGQUIT)


def test_a_killed_script_takes_its_children_along_and_is_stopped_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path))
    with reporting_script(tmp_path, deaf=True) as (process, run):
        (child,) = psutil.Process(process.pid).children()
        record_end(run, 1, signal.SIGQUIT)  # it lives: nothing is recorded
        assert RunReader(run).status().state == "running"
        assert send_signal(run, signal.SIGQUIT)
        assert process.wait() == -signal.SIGKILL
        child.wait()
        assert RunReader(run).status().state == "lost"
        record_end(run, 1, signal.SIGQUIT)
        record_end(run, 1, signal.SIGTERM)  # the first word stands
    assert RunReader(run).status() == Status("stopped", "killed on request")


def test_of_a_supervised_run_nothing_is_recorded_but_by_its_supervisor(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started()
    record_end(fake.run, 1, signal.SIGTERM)
    assert RunReader(fake.run).status().state == "lost"
