"""Masked losses equal a loop over single elements, also where a head has hardly any."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from engines.training.project import Context
from projects.controls.batches import WindowSource
from projects.controls.layout import ACTION, CURSOR, HOTBAR, INV, LOOK
from projects.controls.losses import PosWeights, head_losses, pos_weights
from projects.controls.project import ControlsProject
from tests.projects.controls.sessions import random_session

HEADS = ("action", "look", "hotbar", "cursor", "inv", "idle")
CONTEXT = Context(step=0, epoch=0, progress=0.0, stage="", heads=frozenset(HEADS))
WEIGHTS = PosWeights(torch.linspace(1, 12, 12), torch.tensor([2.0, 3.0, 4.0]), ())


def random_batch(size: int, seed: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    source = WindowSource([random_session("a", size + 29, seed)], torch.device("cpu"), 0.0)
    batch = source.batch(torch.arange(size), None)
    generator = torch.Generator().manual_seed(seed)
    shapes = {"action_logits": 12, "look": 2, "hotbar_logits": 9, "cursor": 2, "inv_click_logits": 3}
    outputs = {k: torch.randn(size, n, generator=generator, requires_grad=True) for k, n in shapes.items()}
    return outputs, batch


def bce(logit: float, target: float, weight: float) -> float:
    chance = 1 / (1 + math.exp(-logit))
    return -weight * target * math.log(chance) - (1 - target) * math.log(1 - chance)


def by_element(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> dict[str, list[float]]:
    """Every element that counts, one at a time."""
    found: dict[str, list[float]] = {head: [] for head in HEADS}
    for n, target in enumerate(batch["target"].tolist()):
        row = {name: value[n].tolist() for name, value in outputs.items()}
        gameplay, screen = bool(batch["gameplay"][n]), bool(batch["screen_open"][n])
        for k, column in enumerate(ACTION):
            if gameplay or column == 13:
                found["action"].append(bce(row["action_logits"][k], target[column], float(WEIGHTS.action[k])))
            if gameplay and not any(target[c] for c in ACTION):
                found["idle"].append(1 / (1 + math.exp(-row["action_logits"][k])))
        for k, column in enumerate(LOOK):
            if gameplay and math.hypot(target[9], target[10]) > 0.08:
                error = abs(row["look"][k] - target[column])
                found["look"].append(error - 0.5 if error >= 1 else error**2 / 2)
        slots = [target[column] for column in HOTBAR]
        if any(slots):
            logits = row["hotbar_logits"]
            found["hotbar"].append(math.log(sum(map(math.exp, logits))) - logits[slots.index(1)])
        if screen:
            found["cursor"] += [(row["cursor"][k] - target[c]) ** 2 for k, c in enumerate(CURSOR)]
            found["inv"] += [
                bce(row["inv_click_logits"][k], target[c], float(WEIGHTS.inv[k])) for k, c in enumerate(INV)
            ]
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [1, 3, 64])
def test_sums_and_counts_equal_the_elements(size: int, seed: int) -> None:
    outputs, batch = random_batch(size, seed)
    losses, expected = head_losses(outputs, batch, WEIGHTS), by_element(outputs, batch)
    assert tuple(losses) == HEADS
    for head in HEADS:
        assert losses[head].count == len(expected[head]), head
        assert losses[head].total.item() == pytest.approx(sum(expected[head]), rel=1e-5), head


def test_a_head_without_frames_is_zero_and_still_attached() -> None:
    outputs, batch = random_batch(8, 0)
    nothing = torch.zeros(8, dtype=torch.bool)
    empty = {**batch, **dict.fromkeys(("gameplay", "screen_open", "hotbar_changed", "look_active", "idle"), nothing)}
    losses = head_losses(outputs, empty, WEIGHTS)
    for head, loss in losses.items():
        assert loss.total.requires_grad, head
        if head != "action":
            assert (loss.total.item(), loss.count.item()) == (0.0, 0), head
    assert losses["action"].count == 8, "open_inventory counts on every frame"
    torch.autograd.backward([loss.total for loss in losses.values()])
    gradient = outputs["action_logits"].grad
    assert gradient is not None
    assert (gradient[:, 11] != 0).all()
    assert (gradient[:, :11] == 0).all()


def test_micro_batches_add_up_to_the_whole_batch() -> None:
    project = ControlsProject()
    outputs, batch = random_batch(64, 5)
    whole = head_losses(outputs, batch, WEIGHTS)
    total = dict.fromkeys(HEADS, 0.0)
    for part in range(0, 64, 16):
        cut = slice(part, part + 16)
        piece = {name: value[cut] for name, value in batch.items()}
        losses = head_losses({name: value[cut] for name, value in outputs.items()}, piece, WEIGHTS)
        counts = project.counts(piece, CONTEXT)
        for head in HEADS:
            assert counts[head] == losses[head].count
            total[head] += losses[head].total.item()
    for head in HEADS:
        assert total[head] == pytest.approx(whole[head].total.item(), rel=1e-5)


def test_class_weights_are_negatives_over_positives_capped_at_50() -> None:
    session = random_session("a", 629, 3)
    controls, state = session.controls, session.state
    controls[:, [0, 1, 2, 13]] = 0
    state[:, 38] = np.where(np.arange(629) % 3 == 0, 0.33, 0)
    judged = [frame for frame in range(29, 629) if frame % 3]
    controls[judged[:100], 0] = 1
    controls[judged[0], 1] = 1
    controls[[frame for frame in range(29) if frame % 3], 2] = 1  # before the first target: no support
    controls[[33, 36, 39], 13] = 1  # only while the screen is open
    controls[:, 27] = 0
    controls[judged, 27] = 1  # never while the screen is open
    weights = pos_weights(WindowSource([session], torch.device("cpu"), 0.0))
    assert weights.action[0] == pytest.approx((len(judged) - 100) / 100)
    assert weights.action[1] == 50
    assert weights.action[2] == 1
    assert weights.action[11] == 50, "3 of 600 frames, all of them with the screen open"
    assert weights.inv[2] == 1
    assert weights.unsupported == ("strafe_left", "inv_shift_held")


def test_the_other_formula_and_the_cap_of_class_weights() -> None:
    session = random_session("a", 1029, 3)
    session.state[:, 38] = 0
    session.controls[:, [0, 1, 2]] = 0
    session.controls[29:129, 0] = 1
    session.controls[29:31, 1] = 1
    source = WindowSource([session], torch.device("cpu"), 0.0)
    halved = pos_weights(source, "total_2pos")
    assert halved.action[:3].tolist() == [5, 50, 1], "1000 frames: 100, 2 and no positives"
    assert pos_weights(source).action[:3].tolist() == [9, 50, 1]
    assert pos_weights(source, "neg_pos", cap=7.5).action[:3].tolist() == [7.5, 7.5, 1]
    assert pos_weights(source, "total_2pos", cap=1000).action[1] == 250
