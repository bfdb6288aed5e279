"""How good predicted controls are: one scoring in numpy for the model, its baselines and the ceiling.

A control counts as pressed where its probability is at or above its threshold, everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from projects.controls.layout import ACTION, CONTROL_NAMES, CURSOR, HOTBAR, INV, LOOK
from projects.controls.masks import Bools, Floats, Masks

SCREEN_PIXELS = (1280.0, 720.0)
"""Pixel errors are given for a screen of this width and height."""
SCORE_WEIGHTS = {"action_f1": 0.4, "look": 0.2, "hotbar": 0.1, "cursor": 0.1, "inv": 0.1, "idle": 0.1}
"""Shares of the combined score."""


@dataclass(frozen=True)
class Prediction:
    """What is predicted for n frames.

    action: (n, 12) probabilities. look: (n, 2) in [-1, 1]. hotbar: (n, 9) probabilities or any scores, the largest
    wins. cursor: (n, 2) in [0, 1]. inv: (n, 3) probabilities.
    """

    action: Floats
    look: Floats
    hotbar: Floats
    cursor: Floats
    inv: Floats


@dataclass(frozen=True)
class Thresholds:
    """From which probability on a control counts as pressed. action: (12,). inv: (3,)."""

    action: NDArray[np.float64] = field(default_factory=lambda: np.full(len(ACTION), 0.5))
    inv: NDArray[np.float64] = field(default_factory=lambda: np.full(len(INV), 0.5))


@dataclass(frozen=True)
class ControlScore:
    """One binary control on the frames where it is judged. Without support there is no recall and no F1."""

    name: str
    threshold: float
    support: int
    frames: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class Scores:
    """values: `action_f1`, `look_mse`, … (None: no frame to judge on). score: the combined score in [0, 1]."""

    values: Mapping[str, float | None]
    score: float | None
    controls: tuple[ControlScore, ...]


def score_controls(
    prediction: Prediction, targets: Floats, masks: Masks, thresholds: Thresholds | None = None
) -> Scores:
    """Score predictions of n frames against `targets: (n, 28)`; thresholds are 0.5 where absent."""
    thresholds = thresholds or Thresholds()
    on = prediction.action >= thresholds.action
    actions = _binary_scores(ACTION, on, targets, masks.action, thresholds.action)
    inv_mask = np.repeat(masks.screen_open[:, None], len(INV), axis=1)
    inv = _binary_scores(INV, prediction.inv >= thresholds.inv, targets, inv_mask, thresholds.inv)
    hotbar = targets[:, HOTBAR][masks.hotbar_changed].argmax(1)
    values: dict[str, float | None] = {
        "action_f1": _mean([control.f1 for control in actions if control.f1 is not None]),
        **_look(prediction.look[masks.look], targets[masks.look][:, LOOK]),
        "hotbar_accuracy": _mean(prediction.hotbar[masks.hotbar_changed].argmax(1) == hotbar),
        **_cursor(prediction.cursor[masks.screen_open], targets[masks.screen_open][:, CURSOR]),
        "inv_f1": _mean([control.f1 for control in inv if control.f1 is not None]),
        "idle_accuracy": _mean(~on[masks.idle].any(axis=1)),
    }
    return Scores(values, combined_score(values), actions + inv)


def combined_score(values: Mapping[str, float | None]) -> float | None:
    """The weighted mean of the head scores, each clamped to [0, 1]; heads without support share out their weight.

    None where nothing can be judged or a value is not finite.
    """
    look, cursor = values["look_mse"], values["cursor_mse"]
    parts = {
        "action_f1": values["action_f1"],
        "look": None if look is None else 1 - look,
        "hotbar": values["hotbar_accuracy"],
        "cursor": None if cursor is None else 1 - cursor,
        "inv": values["inv_f1"],
        "idle": values["idle_accuracy"],
    }
    judged = {name: part for name, part in parts.items() if part is not None}
    if not judged or not all(math.isfinite(part) for part in judged.values()):
        return None
    total = sum(SCORE_WEIGHTS[name] for name in judged)
    return sum(SCORE_WEIGHTS[name] * min(max(part, 0.0), 1.0) for name, part in judged.items()) / total


def _binary_scores(
    columns: tuple[int, ...], on: Bools, targets: Floats, masks: Bools, thresholds: NDArray[np.float64]
) -> tuple[ControlScore, ...]:
    wanted = targets[:, columns] > 0.5
    hits = (on & wanted & masks).sum(0)
    predicted = (on & masks).sum(0)
    support = (wanted & masks).sum(0)
    frames = masks.sum(0)
    return tuple(
        ControlScore(
            name=CONTROL_NAMES[column],
            threshold=float(thresholds[k]),
            support=int(support[k]),
            frames=int(frames[k]),
            precision=float(hits[k] / predicted[k]) if predicted[k] else None,
            recall=float(hits[k] / support[k]) if support[k] else None,
            f1=float(2 * hits[k] / (predicted[k] + support[k])) if support[k] else None,
        )
        for k, column in enumerate(columns)
    )


def _look(predicted: Floats, wanted: Floats) -> dict[str, float | None]:
    """Squared error, and per axis the share of frames that turn the right way, where that axis turns at all."""
    directions = {}
    for axis, name in enumerate(("yaw", "pitch")):
        turning = wanted[:, axis] != 0
        directions[f"look_direction_{name}"] = _mean(
            np.sign(predicted[turning, axis]) == np.sign(wanted[turning, axis])
        )
    return {"look_mse": _mean((predicted.astype(np.float64) - wanted) ** 2), **directions}


def _cursor(predicted: Floats, wanted: Floats) -> dict[str, float | None]:
    """Squared error in screen fractions, and the mean distance in pixels of a 1280×720 screen."""
    error = predicted.astype(np.float64) - wanted
    return {
        "cursor_mse": _mean(error**2),
        "cursor_pixels": _mean(np.hypot(*(error * np.array(SCREEN_PIXELS)).T)),
    }


def _mean(values: ArrayLike) -> float | None:
    numbers = np.asarray(values, np.float64)
    return float(numbers.mean()) if numbers.size else None
