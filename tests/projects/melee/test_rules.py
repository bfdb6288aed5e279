"""From a prediction to the next frame: every rule of the rollout, beside a plain loop over fighters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from projects.melee.encoding import encode
from projects.melee.frames import (
    ACTION,
    AGE,
    CLASS_COLUMNS,
    CLASSES,
    HITLAG,
    PERCENT,
    SCALE,
    STATE,
    STOCKS,
    X,
    Y,
    units,
)
from projects.melee.game import Game
from projects.melee.layout import ITEM
from projects.melee.parse import read
from projects.melee.rules import HURT, SURE, advance, next_age, violations, with_hitlag
from projects.melee.sources import Source
from tests.projects.melee.made import called, frames, prediction
from tests.projects.melee.test_parse import REPLAYS, needs_replays

FIRST = torch.zeros(400).index_fill(0, torch.arange(0, 400, 3), -1.0)
CLAMPED = {
    "percent": (0, 999), "x": (-300, 300), "y": (-200, 300), "shield": (0, 60), "hitlag": (0, 50), "stocks": (0, 4),
    "combo": (0, 50),
}  # fmt: skip


def small_left_out(change: torch.Tensor) -> torch.Tensor:
    return torch.where(change.abs() * 100 < 0.5, 0.0, change)


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_each_column_follows_its_rule(size: float, learned: bool) -> None:
    last, said = frames(6, 4), prediction(6, 4, size=size, learned=learned)
    with torch.no_grad():
        said.classes["action"][:3, :2, :, 12] += 1000  # some come back after a death
    hit = torch.full((1,), -9.0) if said.hit is None else said.hit.detach()[..., 0]
    led = frames(6, 4, seed=9).control
    frame = advance(last, said, led, FIRST)
    assert torch.equal(frame.control, led)
    assert torch.equal(frame.stage, last.stage)
    for k, name in enumerate(STATE):
        before, block = last.state[..., k], {**dict.fromkeys(range(4), "Δ"), **dict.fromkeys(range(4, 9), "Δ")}
        if name == "state_age":
            continue
        if k in block:
            change = (said.continuous if k < 4 else said.velocity)[..., k if k < 4 else k - 4].detach()
            if name == "percent":
                change = torch.where(hit > SURE, change.clamp(min=0), 0) if learned else small_left_out(change)
            expected = before + change
            if name == "percent" and learned:
                expected = torch.where(frame.ints[..., ACTION] == 12, 0, expected)
        elif k < 13:
            expected = said.dynamics[..., k - 10].detach()
        else:
            expected = (said.binary[..., k - 13] > 0).float()
        units = expected / SCALE[k]
        if name in CLAMPED:
            units = units.round() if k in (10, 11, 12) else units
            units = units.clamp(*CLAMPED[name])
        if name == "stocks":
            units = torch.minimum(units, last.value(STOCKS).round())
        torch.testing.assert_close(frame.value(k), units, atol=1e-3, rtol=1e-4, msg=called(name))
    for name, column in zip(CLASSES, CLASS_COLUMNS, strict=True):
        most = said.classes[name].argmax(-1)
        if name == "action":
            hurt = (most >= 75) & (most <= 91) | (most >= 223) & (most <= 232)
            most = torch.where((hit > SURE) & ~hurt, said.classes[name][..., HURT].argmax(-1) + 75, most)
        assert torch.equal(frame.ints[..., column], most)
    assert not frame.state.requires_grad


def test_units_first_asked_for_in_an_evaluation_still_train() -> None:
    units.cache_clear()
    with torch.inference_mode():
        units(torch.device("cpu"))
    weight = torch.ones(16, requires_grad=True)
    (weight * units(torch.device("cpu"))).sum().backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None
    assert weight.grad.tolist() == pytest.approx(SCALE)


def test_what_has_no_head_is_carried_forward() -> None:
    last, said = frames(3, 2), prediction(3, 2)
    without = replace(said, classes={name: said.classes[name] for name in ("action", "jumps")})
    frame = advance(last, without, last.control, FIRST)
    for column in CLASS_COLUMNS[2:]:
        assert torch.equal(frame.ints[..., column], last.ints[..., column])
    assert torch.equal(frame.ints[..., ACTION], said.classes["action"].argmax(-1))


def test_hits_are_drawn_as_often_as_they_are_likely() -> None:
    last = frames(1, 1).at(0).map(lambda x: x.expand(5000, *x.shape[1:]))
    said = prediction(1, 1).at(0).map(lambda x: x.expand(5000, *x.shape[1:]))
    likely = torch.tensor([0.2, 0.7])
    said = replace(said, hit=likely.logit()[:, None].expand(5000, 2, 1), continuous=torch.full((5000, 2, 4), 0.08))
    luck = torch.rand(5000, 2, generator=torch.Generator().manual_seed(4)).logit()
    frame = advance(last, said, last.control, FIRST, luck)
    hit = frame.value(PERCENT) > last.value(PERCENT)
    assert hit.float().mean(0).tolist() == pytest.approx(likely.tolist(), abs=0.03)
    torch.testing.assert_close((frame.value(PERCENT) - last.value(PERCENT))[hit], torch.full((int(hit.sum()),), 8.0))
    hurt = (frame.ints[..., ACTION] >= 75) & (frame.ints[..., ACTION] <= 91)
    assert hurt[hit].all()  # the likeliest action is no other of those who are hit
    assert not hurt[~hit].any()


def test_the_age_follows_the_action() -> None:
    last = frames(1, 5)
    last.ints[..., ACTION] = 20
    last.state[..., AGE] = 7.5 * SCALE[AGE]
    ints, state = last.ints.clone(), last.state.clone()
    state[..., HITLAG] = torch.tensor([0, 4, 0, 0, 0])[:, None] * SCALE[HITLAG]
    ints[0, 2:4, :, ACTION] = torch.tensor([[21, 21], [23, 23]])
    by_rule = next_age(last, state, ints, None, FIRST)[0, :, 0]
    assert by_rule.tolist() == pytest.approx([8.5, 7.5, -1.0, 0.0, 8.5])
    said = torch.tensor([[0.5, -1], [0.25, -1], [1.0, -1], [1.0, -1], [1.0, 2.0]])[None, :, None].expand(1, 5, 2, 2)
    learned = next_age(last, state, ints, said, FIRST)[0, :, 0]
    assert learned.tolist() == pytest.approx([8.0, 7.75, -1.0, 0.0, 0.0])


def test_the_rules_hold_over_many_wild_steps() -> None:
    frame = frames(8, 1).at(0)
    stocks = frame.value(STOCKS)
    for step in range(200):
        frame = advance(frame, prediction(8, 1, seed=step, size=3).at(0), frame.control, FIRST)
        assert frame.state.isfinite().all()
        assert (frame.value(PERCENT) >= 0).all()
        assert (frame.value(STOCKS) <= stocks + 1e-4).all()
        assert (frame.value(X).abs() <= 300.001).all()
        stocks = frame.value(STOCKS)


def test_a_hit_freezes_both_and_who_is_frozen_stays() -> None:
    last, frame = frames(1, 4), frames(1, 4, seed=1)
    last.state[..., HITLAG] = 0
    frame.state[..., HITLAG] = 0
    frame.state[..., PERCENT] = last.state[..., PERCENT]
    frame.state[0, 0, 1, PERCENT] += 10.0 * SCALE[PERCENT]  # floor(10 / 3 + 3) = 6 frames
    frame.state[0, 1, 0, PERCENT] += 2.9 * SCALE[PERCENT]
    last.state[0, 2, 0, HITLAG] = 5 * SCALE[HITLAG]
    last.state[0, 3, :, HITLAG] = 5 * SCALE[HITLAG]
    frame.state[0, 3, 0, PERCENT] += 20.0 * SCALE[PERCENT]  # hit again: 9 frames
    after = with_hitlag(last, frame)
    torch.testing.assert_close(after.value(HITLAG)[0], torch.tensor([[6.0, 6], [0, 0], [4, 0], [9, 9]]))
    free = torch.ones(1, 4, 2, dtype=torch.bool)
    free[0, 2, 0] = False
    assert torch.equal(after.state[free][:, :HITLAG], frame.state[free][:, :HITLAG])
    assert torch.equal(after.ints[free], frame.ints[free])
    assert torch.equal(after.state[~free][:, :HITLAG], last.state[~free][:, :HITLAG])
    assert torch.equal(after.ints[~free], last.ints[~free])


@needs_replays
def test_real_games_keep_to_the_rule_of_hitlag() -> None:
    name = "replays/game_07.slp.xz"
    game = read(Source(REPLAYS / name, None, name), rollback="last", least_frames=1800)
    assert isinstance(game, Game)
    seen = encode(game.frames[None], np.array([game.stage]), np.zeros((1, len(game.frames), 15), ITEM), 0)
    last, frame = seen.at(slice(None, -1)), seen.at(slice(1, None))
    rise = (frame.value(PERCENT) - last.value(PERCENT)).clamp(min=0)
    hit = torch.maximum(rise, rise.flip(-1)) >= 3
    held = (last.value(HITLAG) > 1.5) & (rise <= 0) & ~hit
    unknown = frame.state.clone()
    unknown[..., HITLAG] = 0
    ruled = with_hitlag(last, replace(frame, state=unknown))
    same = (ruled.state - frame.state).abs() < 1e-4
    frozen = hit & (frame.value(HITLAG) > 0)
    assert (int(frozen.sum()) > 40, int(held.sum()) > 200) == (True, True)
    assert same[frozen][:, HITLAG].float().mean() > 0.7
    assert same[held][:, X : Y + 1].float().mean() > 0.95
    assert same[held][:, HITLAG].float().mean() > 0.99
    assert (ruled.ints == frame.ints)[held].float().mean() > 0.99


def test_broken_rules_are_found() -> None:
    last, frame = frames(1, 6), frames(1, 6)
    frame.state[..., HITLAG] = 0
    frame.state[0, 0, 0, STOCKS] += 1 * SCALE[STOCKS]
    frame.state[0, 1, 1, PERCENT] = -0.01
    frame.state[0, 2, 0, PERCENT] += 3 * SCALE[PERCENT]
    frame.state[0, 3, 0, PERCENT] += 3 * SCALE[PERCENT]
    frame.state[0, 3, 0, HITLAG] = 4 * SCALE[HITLAG]
    frame.state[0, 4, 1, HITLAG] = -1 * SCALE[HITLAG]
    frame = replace(frame, stage=torch.full((1, 6), 25))  # Final Destination ends at ±246, 188 and -140
    frame.state[0, 4, 0, X], frame.state[0, 5, 1, Y] = 247 * SCALE[X], -141 * SCALE[Y]
    frame.state[0, 5, 0, Y] = 189 * SCALE[Y]
    frame.ints[0, 5, 0, ACTION] = 4  # dead
    found = {name: where.nonzero().tolist() for name, where in violations(last, frame).items()}
    assert found == {
        "percent below 0": [[0, 1, 1]], "stocks rise": [[0, 0, 0]], "hitlag below 0": [[0, 4, 1]],
        "hurt without hitlag": [[0, 2, 0]], "alive beyond the blast zone": [[0, 4, 0], [0, 5, 1]],
    }  # fmt: skip
