"""The layout of DOMAIN 4.2 and 4.3, number by number: what a model reads, what it is trained on, and the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from projects.melee.demo.match import play
from projects.melee.encoding import encode
from projects.melee.frames import AGE, CLASSES, INTS, VOCABULARY, Frames
from projects.melee.layout import ITEM
from projects.melee.losses import Objective, head_losses
from projects.melee.rules import Prediction, advance
from projects.melee.views import JointView

SPEEDS = ("speed_air_x", "speed_y", "speed_ground_x", "speed_attack_x", "speed_attack_y")
BITS = (0x100, 0x200, 0x400, 0x800, 0x10, 0x40, 0x20, 0x8)  # A, B, X, Y, Z, L, R, D-up
TARGETS = {"action": 400, "jumps": 8, "l_cancel": 3, "hurtbox": 3, "ground": 32, "last_attack": 64}
FRAMES = 1200


def floats(fighter: Any, *, embed_age: bool) -> list[float]:
    """A fighter's block of 29 floats, or 28."""
    state = [
        fighter["percent"] * 0.01, fighter["x"] * 0.05, fighter["y"] * 0.05, fighter["shield"] * 0.01,
        *(fighter[name] * 0.05 for name in SPEEDS),
        *([] if embed_age else [fighter["state_age"] * 0.01]),
        fighter["hitlag"] * 0.1, fighter["stocks"] * 0.25, fighter["combo"] * 0.1,
        fighter["right"], fighter["hurtbox"] != 0, fighter["airborne"] == 0,
    ]  # fmt: skip
    sticks = [fighter[name] / 160 + 0.5 for name in ("main_x", "main_y", "c_x", "c_y")]
    pressed = [(fighter["buttons"] & bit) != 0 for bit in BITS]
    return [float(value) for value in (*state, *sticks, fighter["shoulder"] / 140, *pressed)]


def ints(fighter: Any, *, embed_age: bool) -> list[int]:
    """A fighter's 7 ints, or 8."""
    ground = 0 if fighter["airborne"] else fighter["ground"] + 1
    names = (fighter["action"], fighter["jumps"], fighter["character"], fighter["l_cancel"], fighter["hurtbox"])
    age = [min(max(round(float(fighter["state_age"])), 0), 149)] if embed_age else []
    return [int(value) for value in (*names, ground, fighter["last_attack"], *age)]


def targets(before: Any, after: Any) -> tuple[list[float], list[int]]:
    """30 floats and 12 ints that lead from one frame to the next; both fighters (2,)."""

    def change(name: str, scale: float, k: int) -> float:
        return (float(after[k][name]) - float(before[k][name])) * scale

    moved = {"percent": 0.01, "x": 0.05, "y": 0.05, "shield": 0.01}
    found = [change(name, scale, k) for k in range(2) for name, scale in moved.items()]
    found += [change(name, 0.05, k) for k in range(2) for name in SPEEDS]
    found += [
        float(v) for k in range(2) for v in (after[k]["right"], after[k]["hurtbox"] != 0, not after[k]["airborne"])
    ]
    found += [
        float(v)
        for k in range(2)
        for v in (after[k]["hitlag"] * 0.1, after[k]["stocks"] * 0.25, after[k]["combo"] * 0.1)
    ]
    classes = [ints(after[k], embed_age=False)[column] for k in range(2) for column in (0, 1, 3, 4, 5, 6)]
    return found, classes


@pytest.fixture(scope="module")
def rows() -> Any:
    game = play(3, 4, FRAMES)
    assert game.frames["players"]["hitlag"].max() > 0
    return game.frames


@pytest.fixture(scope="module")
def frames(rows: Any) -> Frames:
    """All of the game as one window, without projectiles."""
    return encode(rows[None], np.array([24]), np.zeros((1, len(rows), 0), ITEM), 0)


@pytest.mark.parametrize("embed_age", [False, True])
def test_a_frame_has_58_or_56_floats_and_15_or_17_ints(rows: Any, frames: Frames, embed_age: bool) -> None:
    state = frames.state
    if embed_age:
        state = torch.cat([state[..., :AGE], state[..., AGE + 1 :]], dim=-1)
    flat = torch.cat([state, frames.control], dim=-1).flatten(-2)[0]
    assert flat.shape == (FRAMES, 56 if embed_age else 58)
    slow = [[value for fighter in row for value in floats(fighter, embed_age=embed_age)] for row in rows["players"]]
    torch.testing.assert_close(flat, torch.tensor(slow), atol=1e-6, rtol=1e-6)
    assert frames.ints.flatten(-2).shape[-1] + 1 == 15
    slow_ints = [[value for fighter in row for value in ints(fighter, embed_age=False)] for row in rows["players"]]
    assert frames.ints.flatten(-2)[0].tolist() == slow_ints


@pytest.mark.parametrize("embed_age", [False, True])
def test_the_joint_row_shows_just_that(rows: Any, frames: Frames, embed_age: bool) -> None:
    """Floats first, then each int's own line of its table, the stage at the end."""
    view = JointView(32, embed_age=embed_age, items=0, kinds=0)
    row = view(frames, frames.control)[0][0, :, 0]
    assert row.shape[-1] == (196 if embed_age else 182)
    assert list(view.tables) == [*INTS, "state_age"][: 8 if embed_age else 7]
    for place in (0, FRAMES // 2, FRAMES - 1):
        expected: list[torch.Tensor] = []
        for fighter in rows["players"][place]:
            expected.append(torch.tensor(floats(fighter, embed_age=embed_age)))
            numbers = ints(fighter, embed_age=embed_age)
            tables = view.tables.values()
            expected += [table(torch.tensor(number)) for table, number in zip(tables, numbers, strict=True)]
        expected.append(view.stage(torch.tensor(24)))
        torch.testing.assert_close(row[place], torch.cat(expected), atol=1e-6, rtol=1e-6)


@pytest.fixture(scope="module")
def said(rows: Any) -> Prediction:
    """The targets of every step as if a model had said them."""
    players = rows["players"]
    steps = [targets(players[k], players[k + 1]) for k in range(FRAMES - 1)]
    wanted = torch.tensor([one for one, _ in steps])[None]
    classes = torch.tensor([numbers for _, numbers in steps]).reshape(1, -1, 2, 6)
    assert wanted.shape == (1, FRAMES - 1, 30)
    sure = 40.0
    blocks = [
        wanted[..., first:end].reshape(1, FRAMES - 1, 2, -1) for first, end in ((0, 8), (8, 18), (18, 24), (24, 30))
    ]
    logits = {
        name: sure * F.one_hot(classes[..., k], size).float() for k, (name, size) in enumerate(TARGETS.items())
    }  # fmt: skip
    return Prediction(blocks[0], blocks[1], blocks[3], sure * (2 * blocks[2] - 1), logits)


def test_a_prediction_of_the_targets_costs_nothing(frames: Frames, said: Prediction) -> None:
    assert {name: VOCABULARY[name] for name in CLASSES} == TARGETS
    last, target = frames.at(slice(0, -1)), frames.at(slice(1, None))
    objective = Objective(regression="mse", unimix=0.0)
    losses = head_losses(objective, said, last, last, target)
    assert {name: float(loss.total) for name, loss in losses.items()} == pytest.approx(
        dict.fromkeys(losses, 0.0), abs=1e-5
    )


def test_the_targets_lead_to_the_next_frame(frames: Frames, said: Prediction) -> None:
    last, target = frames.at(slice(0, -1)), frames.at(slice(1, None))
    found = advance(last, said, target.control, torch.zeros(400))
    others = [column for column in range(found.state.shape[-1]) if column != AGE]
    torch.testing.assert_close(found.state[..., others], target.state[..., others], atol=1e-4, rtol=1e-4)
    assert torch.equal(found.ints, target.ints)
    assert torch.equal(found.control, target.control)
