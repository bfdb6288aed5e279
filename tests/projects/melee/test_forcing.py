"""Losses beside plain loops, and self-forcing beside a rollout step by step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engines.training.project import Loss
from projects.melee.forcing import _noisy, depth_at, sequence_counts, sequence_losses
from projects.melee.frames import ACTION, AGE, CLASS_COLUMNS, CLASSES, PERCENT, SCALE, STATE, Frames
from projects.melee.losses import BETA, HEADS, Objective, head_counts, head_losses, head_weights
from projects.melee.rollout import Stream
from projects.melee.rules import Prediction
from projects.melee.spec import SPEC
from tests.projects.melee.made import frames, prediction
from tests.projects.melee.test_world import small

OBJECTIVES = (Objective(), Objective("mse", unimix=0.0, change_weight=5.0))


def smooth(error: float, beta: float) -> float:
    return 0.5 * error**2 / beta if abs(error) < beta else abs(error) - 0.5 * beta


def by_hand(objective: Objective, said: Prediction, last: Frames, target: Frames) -> dict[str, tuple[float, float]]:
    """Sums and counts of (batch, time), one element after the other; `last` is true."""
    sums = {name: [0.0, 0.0] for name in HEADS}

    def add(name: str, loss: float, weight: float = 1.0) -> None:
        sums[name][0] += weight * loss
        sums[name][1] += weight

    batch, time = target.stage.shape
    for b, t, f in ((b, t, f) for b in range(batch) for t in range(time) for f in (0, 1)):
        here = (b, t, f)
        for name, first in (("continuous", 0), ("velocity", 4), ("dynamics", 10)):
            for k, value in enumerate(getattr(said, name)[here].tolist()):
                truth = float(target.state[here][first + k]) - (
                    0 if first == 10 else float(last.state[here][first + k])
                )
                error = value - truth
                hurt = bool(target.state[here][PERCENT] > last.state[here][PERCENT])
                if name == "continuous" and k == 0 and said.hit is not None and not hurt:
                    error = 0.0  # what a hit would have added is not known
                add(name, error**2 if objective.regression == "mse" else smooth(error / SCALE[first + k], BETA))
        for k, logit in enumerate(said.binary[here].tolist()):
            p = 1 / (1 + math.exp(-logit))
            add("binary", -math.log(p if target.state[here][13 + k] > 0.5 else 1 - p))
        same = bool(target.ints[here][ACTION] == last.ints[here][ACTION])
        for name, column in zip(CLASSES, CLASS_COLUMNS, strict=True):
            p = float(said.classes[name][here].detach().softmax(-1)[target.ints[here][column]])
            mixed = (1 - objective.unimix) * p + objective.unimix / said.classes[name].shape[-1]
            add(name, -math.log(mixed), objective.change_weight if name == "action" and not same else 1.0)
        assert said.age is not None
        assert said.hit is not None
        p = 1 / (1 + math.exp(-float(said.hit[here][0].detach())))
        add("hit", -math.log(p if target.state[here][PERCENT] > last.state[here][PERCENT] else 1 - p))
        rate, reset = said.age[here].tolist()
        grown = float(target.state[here][AGE] - last.state[here][AGE]) / SCALE[AGE]
        p = 1 / (1 + math.exp(-reset))
        loss = -math.log(p) if grown < 0 else smooth(rate - min(grown, 4), 1) - math.log(1 - p)
        add("age", loss, float(same))
    return {name: (total, count) for name, (total, count) in sums.items()}


def some_changes(sequence: Frames) -> Frames:
    """About half of the frames keep the action of the frame before."""
    keep = torch.rand(sequence.stage.shape, generator=torch.Generator().manual_seed(7)) < 0.5
    for t in range(1, sequence.frames):
        sequence.ints[keep[:, t], t] = sequence.ints[keep[:, t], t - 1]
    return sequence


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_losses_are_those_of_a_loop(objective: Objective) -> None:
    sequence, said = some_changes(frames(3, 4)), prediction(3, 3)
    last, target = sequence.at(slice(None, -1)), sequence.at(slice(1, None))
    losses = head_losses(objective, said, last, last, target)
    expected = by_hand(objective, said, last, target)
    assert set(losses) == set(HEADS)
    for name, loss in losses.items():
        assert (float(loss.total.detach()), float(loss.count)) == pytest.approx(expected[name], rel=1e-4), name
    torch.autograd.backward([loss.total for loss in losses.values()])
    assert said.age is not None
    assert all(part.grad is not None for part in (said.continuous, said.age, *said.classes.values()))


def test_what_the_model_has_no_head_for_costs_nothing() -> None:
    """Every head of the spec has a loss, whatever the view."""
    sequence, said = frames(2, 3), prediction(2, 2, learned=False)
    less = replace(said, classes={name: said.classes[name] for name in ("action", "jumps")})
    last, target = sequence.at(slice(None, -1)), sequence.at(slice(1, None))
    losses = values(head_losses(Objective(), less, last, last, target))
    assert set(losses) == {head.name for head in SPEC.heads}
    absent = {"age", "hit", "l_cancel", "hurtbox", "ground", "last_attack"}
    assert {name for name, loss in losses.items() if not any(loss)} == absent


def some_rows(sequence: Frames, rows: slice) -> Frames:
    return sequence.map(lambda part: part[rows])


def values(losses: Mapping[str, Loss]) -> dict[str, tuple[float, float]]:
    return {name: (float(loss.total.detach()), float(loss.count)) for name, loss in losses.items()}


@pytest.mark.parametrize("kind", ["mlp", "mlp windows"])
def test_each_pass_is_one_more_step_of_a_rollout(kind: str) -> None:
    """Of an MLP the passes are exactly steps; the deepest is compared alone, as the difference of two depths."""
    model, objective, every = small(kind), OBJECTIVES[0], 2
    sequence = some_changes(frames(5, model.K + 3))
    for depth in (2, 3):
        found = values(sequence_losses(model, objective, sequence, depth=depth, every=every))
        less = values(sequence_losses(model, objective, sequence, depth=depth - 1, every=every))
        rows = sequence.rows(every)
        # windows whose newest frame has been predicted depth - 1 times; with K = 1 there may be several
        newest = list(range(model.K - 2 + depth, rows.frames - 1)) if kind == "mlp" else [model.K + depth - 2]
        expected: dict[str, tuple[float, float]] = {}
        for t in newest:
            stream = Stream(model, rows.at(slice(None, t - depth + 2)))
            for s in range(t - depth + 2, t + 1):
                stream.step(rows.control[:, s])
            last, target = stream.frame, rows.at(t + 1)
            said, _ = model.step(last, target.control, stream._memory)
            for name, (total, count) in values(head_losses(objective, said, last, rows.at(t), target)).items():
                before = expected.get(name, (0.0, 0.0))
                expected[name] = before[0] + total, before[1] + count
        if kind == "mlp windows" and depth == 2:
            continue  # other windows of this pass see several frames that were predicted once: no rollout does
        for name, (total, count) in expected.items():
            assert found[name][0] - less[name][0] == pytest.approx(total, rel=2e-3, abs=2e-2), (name, depth)
            assert found[name][1] - less[name][1] == pytest.approx(count), (name, depth)


@pytest.mark.parametrize("kind", ["mamba", "mamba windows", "mlp"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_counts_need_no_model_and_parts_add_up(kind: str, depth: int) -> None:
    model, objective = small(kind), OBJECTIVES[1]
    sequence = some_changes(frames(8, 9))
    whole = values(sequence_losses(model, objective, sequence, depth=depth, every=4))
    counts = sequence_counts(objective, sequence, skipped=model.skipped, depth=depth, every=4)
    assert {name: float(count) for name, count in counts.items()} == pytest.approx(
        {n: c for n, (_, c) in whole.items()}
    )
    parts = [
        values(sequence_losses(model, objective, some_rows(sequence, part), depth=depth, every=4))
        for part in (slice(0, 4), slice(4, 8))
    ]
    for name, (total, count) in whole.items():
        assert sum(part[name][0] for part in parts) == pytest.approx(total, rel=1e-4), name
        assert sum(part[name][1] for part in parts) == pytest.approx(count), name


def test_no_gradient_passes_through_a_fed_back_frame() -> None:
    """The second pass alone trains as if its input were data."""
    model = small("mlp")
    sequence = frames(4, 4)

    def gradient(depth: int) -> Tensor:
        model.zero_grad()
        losses = sequence_losses(model, Objective(), sequence, depth=depth, every=1)
        torch.autograd.backward(losses["continuous"].total)
        weight = next(model.trunk.parameters()).grad
        assert weight is not None
        return weight.clone()

    stream = Stream(model, sequence.at(slice(None, 1)))
    extra = torch.zeros_like(gradient(1))
    for t in (1, 2):
        stream = Stream(model, sequence.at(slice(None, t)))
        last = stream.step(sequence.control[:, t])
        one = last.map(lambda x: x[:, None])
        model.zero_grad()
        said = model(one, sequence.control[:, t + 1 : t + 2])
        target = sequence.at(slice(t + 1, t + 2))
        before = sequence.at(slice(t, t + 1))
        torch.autograd.backward(head_losses(Objective(), said, one, before, target)["continuous"].total)
        weight = next(model.trunk.parameters()).grad
        assert weight is not None
        extra += weight
    torch.testing.assert_close(gradient(2) - gradient(1), extra, rtol=1e-3, atol=1e-3)


def test_the_depth_grows_with_the_run() -> None:
    assert [depth_at(progress, (0.5, 0.75)) for progress in (0, 0.49, 0.5, 0.74, 0.75, 1)] == [1, 1, 2, 2, 3, 3]
    assert depth_at(1.0, ()) == 1


def test_head_counts_are_those_of_a_loop() -> None:
    sequence = some_changes(frames(2, 5))
    before, target = sequence.at(slice(None, -1)), sequence.at(slice(1, None))
    expected = by_hand(OBJECTIVES[1], prediction(2, 4), before, target)
    counts = head_counts(head_weights(OBJECTIVES[1], before, target))
    assert {name: float(count) for name, count in counts.items()} == {
        name: count for name, (_, count) in expected.items()
    }


def test_noise_moves_positions_and_speeds_alone() -> None:
    state = frames(200, 5).state
    moved = (_noisy(state, 0.1, None) - state).flatten(0, 2).std(0)
    shaken = {"x", "y", "speed_air_x", "speed_y", "speed_ground_x", "speed_attack_x", "speed_attack_y"}
    for name, deviation in zip(STATE, moved.tolist(), strict=True):
        assert deviation == (pytest.approx(0.1, rel=0.1) if name in shaken else 0), name
