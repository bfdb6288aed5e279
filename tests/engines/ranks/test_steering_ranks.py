"""Two ranks of one run: steered, stopped, killed, and resumed on another number of them."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from engines.basics.reading import read_json
from engines.contract import commands as cmd
from engines.contract.config import load_config
from engines.contract.events import Checkpoint
from engines.contract.rank_loads import RankLoads
from engines.contract.rundir import RunDirectory
from engines.contract.settings import Launch
from engines.runs.saved import epoch_of, shard_files
from engines.runtime.following import LOST
from engines.training import checkpoint, gradients, torchrun
from engines.training.draws import Share
from engines.training.ranks import RankLost, Together
from tests.engines.conftest import LiveRun, wait_for
from tests.support.ranks import logged, loop_alone, start_ranks, trained, wait_ranks

LONG = ("training.epochs=100000", "training.patience=100000")
SHORT = ("training.epochs=4", "training.steps_per_epoch=8", "training.batch_size=16")
Runs = Callable[..., LiveRun]


@pytest.fixture(autouse=True)
def _no_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rank draws its own."""
    monkeypatch.setattr(functional, "dropout", lambda values, *rest: values)


def stopped(live: LiveRun, count: int, step: int) -> None:
    """Train with so many ranks to before `step`, which stops it there."""
    live.send(cmd.Stop(attempt=1, at_step=step))
    assert trained(live.run, count, work=loop_alone) == [3, *[0] * (count - 1)]


@pytest.mark.behaviour("ranks-take-commands-together")
@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
def test_commands_reach_all_ranks_at_one_step(new_run: Runs, strategy: str) -> None:
    live = new_run(*LONG, "training.batch_size=16", f"launch.strategy={strategy}")
    head = next(iter(_weights(live.run)))
    pids = start_ranks(live.run, 2, work=loop_alone)
    edit = cmd.SetLossWeights(attempt=1, weights={head: 3.0})
    live.send(edit)
    at = live.wait_answer(edit, "applied").step
    pause = cmd.Pause(attempt=1)
    live.send(pause)
    answer = live.wait_answer(pause, "applied")
    held, epochs = answer.step, answer.epoch  # an epoch's end and the next one's begin are at one step
    wait_for("the pause", lambda: _phase(live) == "paused")
    save = cmd.SaveCheckpoint(attempt=1)
    live.send(save)
    assert live.wait_answer(save, "applied").step == held
    end = held + 123
    stop = cmd.Stop(attempt=1, at_step=end)
    for order in (cmd.Evaluate(attempt=1), cmd.MeasureGradients(attempt=1), stop, cmd.Continue(attempt=1)):
        live.send(order)
        assert live.wait_answer(order, "applied", *(["seen"] if order is stop else []))
    assert wait_ranks(pids) == [3, 0]
    two = logged(live.run)
    assert live.wait_answer(stop, "applied").step == end == two["step"][-1] + 1

    loads = read_json(live.run.rank_loads, RankLoads).ranks
    assert [load.rank for load in loads] == [0, 1]
    assert all(load.step_seconds > 0 < load.memory for load in loads)

    alone = new_run(*LONG, "training.batch_size=16")
    alone.send(cmd.SetLossWeights(attempt=1, weights={head: 3.0}, at_step=at))
    alone.send(cmd.MeasureGradients(attempt=1, at_step=held, at_epoch=epochs))
    stopped(alone, 1, end)
    assert _norms(live) == pytest.approx(_norms(alone), rel=1e-4)
    np.testing.assert_allclose(two["loss"], logged(alone.run)["loss"], rtol=1e-6, atol=1e-6)


@pytest.mark.behaviour("ranks-end-together")
@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
def test_a_rank_that_is_killed_ends_the_others(new_run: Runs, strategy: str) -> None:
    live = new_run(*LONG, f"launch.strategy={strategy}")
    pids = start_ranks(live.run, 2, work=loop_alone)
    wait_for("steps", lambda: any(file.stat().st_size for file in live.run.steps.glob("*.f64")))
    os.kill(pids[1], signal.SIGKILL)
    assert wait_ranks(pids) == [LOST, -signal.SIGKILL]
    assert torchrun._failed(live.run, 1, {0: LOST, 1: -signal.SIGKILL}, oom=False) == 1
    live.reader.poll()
    ended = live.reader.history.ended
    assert ended is not None
    assert ended.detail == "rank 1 was killed by SIGKILL"


@pytest.mark.behaviour("ranks-resume-on-others")
@pytest.mark.parametrize(
    ("before", "after", "strategy"),
    [
        (2, 1, "ddp"),
        pytest.param(1, 2, "ddp", marks=pytest.mark.slow),
        pytest.param(2, 2, "ddp", marks=pytest.mark.slow),
        (2, 1, "fsdp2"),
        (2, 4, "fsdp2"),
        pytest.param(1, 2, "fsdp2", marks=pytest.mark.slow),
    ],
)
def test_a_resume_on_other_ranks_goes_on_as_before(new_run: Runs, before: int, after: int, strategy: str) -> None:
    whole, live = new_run(*SHORT), new_run(*SHORT, f"launch.strategy={strategy}")
    assert trained(whole.run, 1, work=loop_alone) == [0]
    stopped(live, before, 13)
    assert len(shard_files(live.run.last)) == (before if strategy == "fsdp2" and before > 1 else 0)
    assert trained(live.run, after, attempt=2, work=loop_alone) == [0] * after
    one, both = logged(whole.run), logged(live.run)
    assert list(both["attempt"]) == [1] * 13 + [2] * 19
    np.testing.assert_allclose(both["loss"], one["loss"], rtol=1e-6, atol=1e-6)


def test_a_save_that_fails_on_rank_0_leaves_the_ranks_together(new_run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """They agree on the best, which is delivered; rank 0 alone has its snapshot."""
    saves, write = [0], checkpoint.write

    def full_at_first(*given: Any, **named: Any) -> Checkpoint:
        saves[0] += 1
        if saves[0] == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(*given, **named)

    class OfRank0(checkpoint.Snapshot):
        def __init__(self, content: dict[str, Any]) -> None:
            assert os.environ["RANK"] == "0"
            super().__init__(content)

    monkeypatch.setattr(checkpoint, "write", full_at_first)
    monkeypatch.setattr(checkpoint, "Snapshot", OfRank0)
    live = new_run(*SHORT, "training.patience=2")
    assert trained(live.run, 2, work=loop_alone) == [0, 0]
    live.reader.poll()
    history = live.reader.history
    assert [event.code for event in history.alerts][:1] == ["checkpoint-failed"]
    lines = [run.read_text().splitlines()[-1] for run in (live.run.rank_log(0), live.run.rank_log(1))]
    assert lines[0].rpartition("  ")[0] == lines[1].rpartition("  ")[0], "the ranks hold another epoch for the best"
    scores = [row.score or 0.0 for row in history.epochs.values()]
    assert epoch_of(live.run.best) == 1 + scores.index(max(scores))
    assert epoch_of(live.run.last) == len(history.epochs)


@pytest.mark.behaviour("ranks-end-together")
def test_a_measurement_that_fails_on_one_rank_ends_the_run(new_run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """One rank would be refused it; of several the others wait in its sums."""
    measured = gradients.gradient_norms

    def on_others(*given: Any) -> Any:
        if os.environ["RANK"] == "0":
            raise RuntimeError("it does not fit")
        return measured(*given)

    monkeypatch.setattr(gradients, "gradient_norms", on_others)
    live = new_run(*LONG, "training.batch_size=16")
    live.send(cmd.MeasureGradients(attempt=1))
    assert trained(live.run, 2, work=loop_alone) == [1, LOST]


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (RuntimeError("[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer"), True),
        (torch.distributed.DistBackendError("NCCL communicator was aborted on rank 0."), True),
        (torch.distributed.DistBackendError("NCCL error: Cuda failure 2 'out of memory'"), False),
        (RuntimeError("ProcessGroupGloo::allgather: invalid tensor size at index 0"), False),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), False),
    ],
)
def test_only_what_a_lost_rank_raises_means_a_lost_rank(
    error: RuntimeError, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any) -> None:
        raise error

    monkeypatch.setattr(torch.distributed, "all_reduce", fails)
    with pytest.raises(RankLost if lost else type(error)):
        Together(0, 2).add_up([torch.ones(3)])


def test_a_batch_that_cannot_be_divided_is_refused(new_run: Runs) -> None:
    live = new_run(*SHORT, "training.batch_size=15")
    assert trained(live.run, 2, work=loop_alone) == [2, 2]
    assert "training.batch_size 15 must be a multiple of 2" in live.run.stdout.read_text()


def test_shares_of_a_share_are_its_micro_batches() -> None:
    share = Share(3, 10, 16, None, None)  # type: ignore[arg-type]
    parts = [share.part(number, 3) for number in range(3)]
    assert [(part.start, part.stop) for part in parts] == [(3, 6), (6, 8), (8, 10)]
    assert share.of(lambda size: list(range(size))) == list(range(3, 10))


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"strategy": "fsdp"}, "Input should be 'ddp' or 'fsdp2'"),
        ({"nodes": 2}, "several nodes need a rendezvous"),
        ({"rendezvous": "somewhere"}, "expected host:port"),
        ({"devices": 2, "device": "cuda:1"}, "is one device"),
        ({"devices": 0}, "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_launched_is_said(settings: dict[str, object], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Launch.model_validate(settings)


@pytest.mark.parametrize(
    ("codes", "code", "said"),
    [
        ({0: 3}, 3, None),
        ({0: 1, 1: 1}, 1, None),
        ({0: LOST, 2: 1}, 1, "rank 2 ended with code 1: its last words"),
        ({0: -15, 1: -11}, 1, "rank 1 was killed by SIGSEGV"),
        ({0: -15, 1: LOST}, -15, None),
        ({0: -9, 1: LOST}, 1, "rank 0 was killed by SIGKILL (out of memory)"),
        ({1: LOST}, 1, "rank 1 lost a rank on another machine"),
    ],
)
def test_the_rank_to_blame_is_named(tmp_path: Path, codes: dict[int, int], code: int, said: str | None) -> None:
    run = RunDirectory(tmp_path / "a-run")
    run.make()
    run.rank_log(2).write_text("before\nits last words\n")
    assert torchrun._failed(run, 1, codes, oom=True) == code
    assert (said in run.events.read_text()) if said else not run.events.exists()


def _weights(run: RunDirectory) -> dict[str, float]:
    weights: dict[str, float] = load_config(run.config).settings.loss_weights.model_dump()
    return weights


def _norms(live: LiveRun) -> dict[str, float | None]:
    """Gradient norms by head that were measured, and the number of their parameters."""
    live.reader.poll()
    found = live.reader.history.gradients
    assert found is not None
    return {**found.norms, "parameters": found.parameters}


def _phase(live: LiveRun) -> str:
    live.reader.poll()
    phase = live.reader.history.phase
    return phase.phase if phase else ""
