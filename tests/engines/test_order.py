"""Which samples a step sees: every one once a pass, from counters alone, in memory that their number does not set."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engines.contract import commands as cmd
from engines.training import engine
from engines.training.grouped_order import GroupedOrder
from engines.training.order import MixedOrder, Order, ShuffledOrder
from engines.training.project import Split
from engines.training.samples import Ranges, Samples
from tests.engines.conftest import Killed, effective_table
from tests.engines.toy import ToyConfig, ToyProject, ToyRun, ToySource, send

RANGES = Ranges(np.array([100, 10, 50, 300]), np.array([107, 33, 50, 341]))
IN_RANGES = [*range(100, 107), *range(10, 33), *range(300, 341)]


def one_pass(order: Order, epoch: int, number: int = 0) -> list[int]:
    steps = range(number * order.steps_per_pass, (number + 1) * order.steps_per_pass)
    return [sample for step in steps for sample in order.indices(epoch, step).tolist()]


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (RANGES, IN_RANGES),
        (range(5, 9), [5, 6, 7, 8]),
        (range(4, 4), []),
        (range(0, 9, 3), [0, 3, 6]),
        (np.array([7, 8, 9, 3, 4, 4, 2, 1]), [7, 8, 9, 3, 4, 4, 2, 1]),
        (np.arange(0), []),
    ],
)
def test_ranges_hold_the_same_samples_in_the_same_order(samples: Samples, expected: list[int]) -> None:
    ranges = Ranges.of(samples)
    assert len(ranges) == len(expected)
    assert ranges.array().tolist() == expected
    pieces = ranges.pieces(3)
    assert pieces.array().tolist() == expected
    assert all(0 < length <= 3 for length in pieces.stops - pieces.starts)


def test_a_range_that_stops_before_it_starts_is_refused() -> None:
    with pytest.raises(ValueError, match="a stop for each start"):
        Ranges(np.array([3]), np.array([2]))


def test_the_default_order_is_that_of_runs_made_before(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path)
    for epoch in (0, 2):
        drawn = np.random.Generator(np.random.Philox(np.random.SeedSequence((7, 0, epoch, 0))))
        assert one_pass(toy.trainer.schedule.order, epoch) == drawn.permutation(np.arange(256)).tolist()


@pytest.mark.parametrize(("batch", "block", "group"), [(4, 5, 2), (8, 50, 1), (16, 1, 7), (71, 8, 3), (5, 3, 100)])
def test_a_grouped_pass_sees_every_sample_once(batch: int, block: int, group: int) -> None:
    order = GroupedOrder(RANGES, batch, 3, block=block, group=group)
    assert order.steps_per_pass == 71 // batch
    passes = [one_pass(order, 0), one_pass(order, 0, number=1), one_pass(order, 1)]
    for seen in passes:
        assert len(seen) == 71 // batch * batch
        assert len(set(seen)) == len(seen)
        assert set(seen) <= set(IN_RANGES)
    if batch == 71:
        assert [sorted(seen) for seen in passes] == [sorted(IN_RANGES)] * 3
    assert passes[0] != passes[1] != passes[2] != passes[0]
    again = GroupedOrder(RANGES, batch, 3, block=block, group=group)
    last = order.steps_per_pass - 1
    assert again.indices(1, last).tolist() == passes[2][-batch:], "a position needs nothing that came before it"
    assert one_pass(GroupedOrder(RANGES, batch, 4, block=block, group=group), 0) != passes[0]


def test_a_group_is_a_few_whole_blocks_well_mixed() -> None:
    order = GroupedOrder(range(1200), 30, 3, block=100, group=3)
    blocks = [sample // 100 for sample in one_pass(order, 0)]
    groups = [blocks[first : first + 300] for first in range(0, 1200, 300)]
    assert [sorted(group) for group in groups] == [
        [b for b in sorted(set(group)) for _ in range(100)] for group in groups
    ]
    assert all(len(set(group)) == 3 for group in groups)
    assert all(len(set(group[:30])) == 3 for group in groups), "samples of a group, not only its blocks, are permuted"
    assert blocks != [sample // 100 for sample in one_pass(order, 1)]


def test_blocks_are_asked_for_before_they_are_read() -> None:
    """Those of the next group while one is given, the first ones at once; from a place in the middle too."""
    asked: list[list[int]] = []
    order = GroupedOrder(
        range(1200), 30, 3, block=100, group=3, soon=lambda some: asked.append(sorted(some.starts // 100))
    )
    plain = GroupedOrder(range(1200), 30, 3, block=100, group=3)
    groups = []
    for step in range(order.steps_per_pass):
        batch = order.indices(0, step)
        assert batch.tolist() == plain.indices(0, step).tolist()
        groups.append(sorted({sample // 100 for sample in batch.tolist()}))
        assert len(asked) == min(4, 1 if step == 0 else step // 10 + 2), step
    assert asked == groups[::10]
    asked.clear()
    for step in (25, 26, 27):  # as a resume does
        order.indices(1, step)
    assert len(asked) == 2
    assert {sample // 100 for sample in order.indices(1, 25).tolist()} == set(asked[0])
    assert {sample // 100 for sample in order.indices(1, 30).tolist()} == set(asked[1])


def test_fewer_samples_than_a_batch_are_one_grouped_batch() -> None:
    order = GroupedOrder(range(5), 8, 3)
    assert order.steps_per_pass == 1
    assert sorted(order.indices(0, 0).tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "samples", [range(800_000_000), Ranges(np.arange(200_000) * 5000, np.arange(200_000) * 5000 + 4000)]
)
def test_800_million_windows_need_little_memory(samples: Samples) -> None:
    tracemalloc.start()
    order = GroupedOrder(samples, 256, 42)
    batches = [order.indices(epoch, step) for epoch in (0, 1) for step in (0, 1, order.steps_per_pass - 1)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert order.steps_per_pass == 3_125_000
    assert all(len(batch) == 256 for batch in batches)
    assert peak < 200e6


def test_a_mixture_has_the_probabilities_that_were_stated() -> None:
    sets: list[Samples] = [range(1000), np.array([1003, 1001]), range(2000, 2100)]
    order = MixedOrder(sets, [0.5, 0.2, 0.3], batch_size=500, seed=3, draws=20_499)
    assert order.steps_per_pass == 40
    drawn = np.array(one_pass(order, 0))
    assert len(drawn) == 20_000
    shares = [(drawn < 1000).mean(), np.isin(drawn, [1001, 1003]).mean(), (drawn >= 2000).mean()]
    assert shares == pytest.approx([0.5, 0.2, 0.3], abs=0.02)
    assert (drawn == 1001).sum() == pytest.approx(2000, abs=200)
    assert set(drawn[drawn >= 2000]) == set(range(2000, 2100))
    again = MixedOrder(sets, [0.5, 0.2, 0.3], batch_size=500, seed=3, draws=500)
    assert again.indices(0, 39).tolist() == drawn[-500:].tolist()
    assert one_pass(order, 1) != drawn.tolist()


@pytest.mark.parametrize(
    ("second", "chances", "fault"),
    [
        (range(9), [0.5, 0.4], "probabilities of 2 sets"),
        (range(9), [1.5, -0.5], "probabilities of 2 sets"),
        (range(9), [1.0], "probabilities of 2 sets"),
        (range(0), [0.5, 0.5], "sets: expected samples"),
    ],
)
def test_a_mixture_that_cannot_be_is_refused(second: range, chances: list[float], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        MixedOrder([range(9), second], chances, 4, 3, draws=9)


class Grouped(ToyProject):
    """A stage of its own order over ranges that its filter gives, then all samples grouped."""

    dies_at = 10**9

    def data(self, cfg: ToyConfig, device: torch.device) -> Split:
        split = super().data(cfg, device)
        source, batch = split.train, split.train.batch
        assert isinstance(source, ToySource)
        self.seen: list[list[int]] = []

        def noting(indices: torch.Tensor, *rest: Any) -> Any:
            if len(self.seen) == self.dies_at:
                raise Killed
            self.seen.append(indices.tolist())
            return batch(indices, *rest)

        source.batch = noting  # type: ignore[method-assign,assignment]
        return split

    def select(self, cfg: ToyConfig, data: Split, data_filter: str) -> Ranges:
        return Ranges(np.array([200, 0]), np.array([232, 32]))

    def order(self, cfg: ToyConfig, data: Split, samples: Ranges) -> Order:
        if len(samples) == 256:
            return GroupedOrder(samples, cfg.training.batch_size, cfg.training.seed, block=25, group=4)
        return ShuffledOrder(samples, cfg.training.batch_size, cfg.training.seed)


STAGES = [{"name": "some", "epochs": 1, "data": "some"}, {"name": "all"}]


def test_a_run_killed_inside_a_group_resumes_equal(tmp_path: Path) -> None:
    project = Grouped()
    straight = ToyRun(tmp_path / "straight", project, stages=STAGES)
    assert straight.train() == "finished"
    assert sorted(sample for batch in project.seen[:2] for sample in batch) == [*range(32), *range(200, 232)]
    assert sorted(sample for batch in project.seen[2:10] for sample in batch) == list(range(256))

    dying = Grouped()
    dying.dies_at = 7
    killed = ToyRun(tmp_path / "killed", dying, stages=STAGES)
    send(killed, cmd.SaveCheckpoint(attempt=1, at_step=4))  # of the 8 steps of the first epoch with groups, 2 are done
    with pytest.raises(Killed):
        killed.train()
    resumed = Grouped()
    again = ToyRun(tmp_path / "killed", resumed, stages=STAGES, attempt=2)
    engine.resume(again.run, again.trainer)
    assert again.trainer.state.step == 4
    with again.listener:
        assert again.trainer.train() == "finished"
    assert resumed.seen == project.seen[4:]
    for ours, theirs in zip(again.model.parameters(), straight.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert effective_table(again.run) == effective_table(straight.run)
