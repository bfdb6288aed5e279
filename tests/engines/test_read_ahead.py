"""Batches gathered ahead by a thread: the same ones, in the same order, whatever happens in between."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from engines.basics.errors import DataError
from engines.contract import commands as cmd
from engines.contract.steps import DATA_WAIT, read_series
from engines.training import engine
from engines.training.project import Batch, Context, Loss, Split
from tests.engines.conftest import Killed, effective_table
from tests.engines.toy import ToyConfig, ToyProject, ToyRun, ToySource, send

PATIENCE = 60.0
STAGES = [{"name": "some", "epochs": 2, "data": "half"}, {"name": "all", "patience": 2}]


class CurriculumSource(ToySource):
    """Its batches depend on how far the run is, so that one gathered for another moment is another batch."""

    def __init__(self, count: int, seed: int, reading: threading.Lock) -> None:
        super().__init__(count, seed)
        self.gathered: list[tuple[int, str]] = []
        """Step and thread of each batch."""
        self.before: Callable[[Context], object] = lambda ctx: None
        self._reading = reading

    def batch(self, indices: Tensor, rng: np.random.Generator | None, ctx: Context | None = None) -> Batch:
        assert ctx is not None
        assert self._reading.acquire(blocking=False), "two reads at once"
        try:
            self.gathered.append((ctx.step, threading.current_thread().name))
            self.before(ctx)
            batch = super().batch(indices, rng)
            return {**batch, "x": batch["x"] * (1 + ctx.progress)}
        finally:
            self._reading.release()


class Ahead(ToyProject):
    read_ahead = True
    forced_score = 1.0

    def data(self, cfg: ToyConfig, device: torch.device) -> Split:
        reading = threading.Lock()
        self.train = CurriculumSource(256, 1, reading)
        return Split(self.train, CurriculumSource(64, 2, reading), read_ahead=self.read_ahead)

    def select(self, cfg: ToyConfig, data: Split, data_filter: str) -> range:
        return range(128)


class Behind(Ahead):
    read_ahead = False


def no_thread_is_left() -> bool:
    return not [thread for thread in threading.enumerate() if thread.name.startswith("read-ahead")]


def assert_equal(one: ToyRun, other: ToyRun) -> None:
    for ours, theirs in zip(one.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert effective_table(one.run) == effective_table(other.run)
    for column in ("loss", "rare", "grad_norm"):
        np.testing.assert_array_equal(read_series(one.run.steps, column)[1], read_series(other.run.steps, column)[1])


def edited(folder: Path, project: Ahead) -> ToyRun:
    """Two stages, of which patience ends the second, and edits of which one makes the next batch another."""
    toy = ToyRun(folder, project, epochs=9, stages=STAGES)
    send(
        toy,
        cmd.MeasureGradients(attempt=1, at_step=2),
        cmd.SetEpochs(attempt=1, at_step=6, epochs=12),
        cmd.Evaluate(attempt=1, at_step=9),
        cmd.SetLossWeights(attempt=1, at_step=10, weights={"rare": 2.0}),
    )
    return toy


def test_a_run_that_reads_ahead_is_the_one_that_does_not(tmp_path: Path) -> None:
    ahead, behind = edited(tmp_path / "ahead", project := Ahead()), edited(tmp_path / "behind", Behind())
    never = threading.Event()
    project.train.before = lambda ctx: never.wait(0.3 * (ctx.step == 9))  # an evaluation is asked for, and waits for it
    assert behind.train() == ahead.train() == "early-stopped"
    assert_equal(ahead, behind)
    read = ahead.project.train.gathered  # type: ignore[attr-defined]
    steps = [step for step, thread in read if thread.startswith("read-ahead")]
    assert steps == sorted([*range(ahead.trainer.state.step), 6]), "that of step 6 once more, for another progress"
    assert [step for step, thread in read if not thread.startswith("read-ahead")] == [2], "the one that was measured"
    assert {thread for _, thread in behind.project.train.gathered} == {"MainThread"}  # type: ignore[attr-defined]
    assert no_thread_is_left()
    assert (read_series(ahead.run.steps, DATA_WAIT)[1] >= 0).all()


def test_the_next_batch_is_gathered_while_a_step_runs_but_none_beyond_an_epoch(tmp_path: Path) -> None:
    begun: dict[int, threading.Event] = {step: threading.Event() for step in range(17)}

    class Waiting(Ahead):
        def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
            if model.training:
                assert ctx.step % 8 == 7 or begun[ctx.step + 1].wait(PATIENCE), "nobody gathers it"
                assert not begun[ctx.step // 8 * 8 + 8].is_set()
            return super().losses(model, batch, ctx)

    toy = ToyRun(tmp_path, project := Waiting(), epochs=2)
    project.train.before = lambda ctx: begun[ctx.step].set()
    assert toy.train() == "finished"


@pytest.mark.parametrize("stage_step", [3, 8])
def test_a_stopped_and_resumed_run_reads_the_same(tmp_path: Path, stage_step: int) -> None:
    straight, stopped = ToyRun(tmp_path / "straight", Ahead()), ToyRun(tmp_path / "stopped", Ahead())
    straight.train()
    send(stopped, cmd.Stop(attempt=1, at_step=stage_step))
    assert stopped.train() == "stopped"
    assert no_thread_is_left()
    again = ToyRun(tmp_path / "stopped", Ahead(), attempt=2)
    engine.resume(again.run, again.trainer)
    with again.listener:
        assert again.trainer.train() == "finished"
    assert_equal(again, straight)


class Unreadable(DataError):
    pass


@pytest.mark.parametrize("error", [Unreadable("shard 7 cannot be read"), Killed()])
def test_what_goes_wrong_in_the_thread_is_raised_where_the_batch_is_needed(
    tmp_path: Path, error: BaseException
) -> None:
    toy = ToyRun(tmp_path, project := Ahead())

    def fail(ctx: Context) -> None:
        if ctx.step == 5:
            raise error

    project.train.before = fail
    with pytest.raises(type(error)) as caught:
        toy.train()
    assert caught.value is error
    assert toy.trainer.state.step == 5, "the steps before it are done"
    assert no_thread_is_left()


def test_nothing_is_read_ahead_unless_the_data_asks_for_it(tmp_path: Path) -> None:
    split: Any = ToyRun(tmp_path).data
    assert split.read_ahead is False
