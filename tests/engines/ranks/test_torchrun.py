"""Runs under the real torchrun, started by the real supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import psutil
import pytest

from engines.contract.rundir import RunDirectory
from engines.runtime.following import MARK
from tests.engines.conftest import LiveRun, alive, wait_for
from tests.support.ranks import free_port, logged

LONG = ("training.epochs=100000", "training.patience=100000")
Runs = Callable[..., LiveRun]
pytestmark = pytest.mark.slow


def ranks_of(run: RunDirectory) -> dict[int, psutil.Process]:
    """The processes of a run by their ranks."""
    found = {}
    for process in psutil.process_iter():
        try:
            environment = process.environ()
        except psutil.Error:
            continue
        if environment.get(MARK) == str(run.path) and "RANK" in environment:
            found[int(environment["RANK"])] = process
    return found


def stepping(live: LiveRun) -> dict[int, psutil.Process]:
    """The ranks of a run that has begun to step."""
    wait_for("steps", lambda: any(file.stat().st_size for file in live.run.steps.glob("*.f64")))
    return ranks_of(live.run)


@pytest.mark.behaviour("ranks-under-torchrun")
def test_a_stop_and_a_kill_leave_nothing(new_run: Runs) -> None:
    live = new_run(*LONG, "launch.devices=2")
    live.start()
    ranks = stepping(live)
    assert sorted(ranks) == [0, 1]
    supervisor = live.run.attempt(1).supervisor
    os.kill(supervisor.pid, signal.SIGTERM)
    assert live.wait_end() == "stopped", live.log()
    assert live.run.last.is_file()
    assert not any(alive(process.pid) for process in ranks.values())
    live.resume()
    wait_for("steps of the resume", lambda: 2 in logged(live.run)["attempt"])
    ranks = ranks_of(live.run)
    os.kill(live.run.attempt(2).supervisor.pid, signal.SIGQUIT)
    assert live.wait_end() == "stopped"
    assert "killed on request" in live.run.attempt(2).ended.error  # type: ignore[union-attr]
    wait_for("the ranks to be gone", lambda: not any(alive(process.pid) for process in ranks.values()))


@pytest.mark.behaviour("ranks-under-torchrun")
@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
def test_a_killed_rank_is_named_and_the_run_goes_on_where_that_is_asked_for(new_run: Runs, strategy: str) -> None:
    several = ("launch.devices=2", "launch.restarts=1", f"launch.strategy={strategy}")
    live = new_run(*LONG, *several, "training.checkpoint_minutes=0.001")
    live.start()
    ranks = stepping(live)
    wait_for("a checkpoint", live.run.last.is_file)
    ranks[1].kill()
    wait_for("the second attempt", lambda: live.run.attempt_numbers() == [1, 2])
    end = live.run.attempt(1).ended
    assert end is not None
    assert end.reason == "failed"
    assert end.error == "rank 1 was killed by SIGKILL", live.log()
    assert "rank_1.log ends with:" in live.run.stdout.read_text()
    wait_for("steps of the restart", lambda: 2 in logged(live.run)["attempt"])
    ranks_of(live.run)[0].kill()
    assert live.wait_end() == "failed"
    end = live.run.attempt(2).ended
    assert end is not None
    assert end.error == "rank 0 was killed by SIGKILL"


@pytest.mark.behaviour("ranks-on-two-machines")
def test_two_machines_train_one_run(new_run: Runs) -> None:
    live = new_run("training.epochs=3", "launch.nodes=2", f"launch.rendezvous=127.0.0.1:{free_port()}")
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "engines.training.torchrun", "--run-dir", str(live.run.path), "--node", "1"],
        stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        live.start()
        assert live.wait_end() == "finished", live.log()
        said, _ = other.communicate(timeout=60)
    assert other.returncode == 0
    assert "machine 1 joins attempt 1" in said
    assert "epoch 3" in live.run.rank_log(1).read_text()
