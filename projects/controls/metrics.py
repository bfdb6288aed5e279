"""How good predicted controls are: one scoring in numpy for the model, its baselines and the ceiling.

A control counts as pressed where its probability is at or above its threshold, everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from projects.controls.layout import ACTION, CONTROL_NAMES, CURSOR, HEADS, HOTBAR, INV, LOOK
from projects.controls.masks import Bools, Floats, Masks

Rows = Bools | NDArray[np.int64] | slice

SCREEN_PIXELS = (1280.0, 720.0)
"""Pixel errors are given for a screen of this width and height."""
SCORE_WEIGHTS = {"action_f1": 0.4, "look": 0.2, "hotbar": 0.1, "cursor": 0.1, "inv": 0.1, "idle": 0.1}
"""Shares of the combined score."""
LEAST_SUPPORT = 20
"""Positives from which on the F1 of a control counts in a mean: one from fewer may be chance."""


@dataclass(frozen=True)
class Scoring:
    """How values become one score.

    least: positives from which on a control counts in the means over controls: pressed frames, of change F1 frames on
    which it goes on. weights: shares of the combined score, by the names of `SCORE_WEIGHTS`.
    """

    least: int = LEAST_SUPPORT
    weights: Mapping[str, float] = field(default_factory=lambda: SCORE_WEIGHTS)


SCORING = Scoring()


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

    def __getitem__(self, frames: Rows) -> Prediction:
        return Prediction(*(getattr(self, field.name)[frames] for field in fields(self)))

    @classmethod
    def of_controls(cls, controls: Floats) -> Prediction:
        """From rows in the layout of a recording: (n, 28), probabilities where a control is on or off."""
        return cls(*(controls[:, columns] for columns in (ACTION, LOOK, HOTBAR, CURSOR, INV)))


@dataclass(frozen=True)
class Truth:
    """What the player did on n frames.

    targets: (n, 28) controls. previous: (n, 28) controls of the frame before, zeros before a session's first frame.
    """

    targets: Floats
    previous: Floats
    masks: Masks

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, frames: Rows) -> Truth:
        return Truth(self.targets[frames], self.previous[frames], self.masks[frames])


@dataclass(frozen=True)
class Thresholds:
    """From which probability on a control counts as pressed. action: (12,). inv: (3,).

    hotbar: the least confidence that changes the slot; accuracy does not depend on it.
    """

    action: NDArray[np.float64] = field(default_factory=lambda: np.full(len(ACTION), 0.5))
    inv: NDArray[np.float64] = field(default_factory=lambda: np.full(len(INV), 0.5))
    hotbar: float = 0.3


@dataclass(frozen=True)
class ControlScore:
    """One binary control on the frames where it is judged. Without support there is no recall and no F1.

    changes: judged frames on which the control differs from the frame before, onsets: those on which it goes on.
    change_f1: F1 on the changes alone, None without an onset.
    """

    name: str
    threshold: float
    support: int
    frames: int
    precision: float | None
    recall: float | None
    f1: float | None
    changes: int
    onsets: int
    change_f1: float | None


@dataclass(frozen=True)
class Scores:
    """values: `action_f1`, `look_mse`, … (None: no frame to judge on). score: the combined score in [0, 1]."""

    values: Mapping[str, float | None]
    score: float | None
    controls: tuple[ControlScore, ...]
    scoring: Scoring = SCORING

    def counts(self, control: ControlScore) -> bool:
        """Whether `control` has positives enough to count in the means over controls."""
        return control.support >= self.scoring.least

    def by(self, scoring: Scoring) -> Scores:
        """The same, put together by other scoring."""
        values = {**self.values, **_macros(self.controls, scoring.least)}
        return Scores(values, combined_score(values, scoring.weights), self.controls, scoring)


def score_controls(
    prediction: Prediction,
    truth: Truth,
    thresholds: Thresholds | None = None,
    off: frozenset[str] = frozenset(),
    scoring: Scoring = SCORING,
) -> Scores:
    """Score predictions of the frames of `truth`; thresholds are 0.5 where absent.

    The controls named in `off` (a stage does not train them yet) count as never pressed and are not judged.
    """
    thresholds = thresholds or Thresholds()
    targets, masks = truth.targets, truth.masks
    on = (prediction.action >= thresholds.action) & [CONTROL_NAMES[column] not in off for column in ACTION]
    actions = _binary_scores(ACTION, on, truth, masks.action, thresholds.action)
    inv = _binary_scores(INV, prediction.inv >= thresholds.inv, truth, masks.inv, thresholds.inv)
    actions, inv = (tuple(_unjudged(c) if c.name in off else c for c in controls) for controls in (actions, inv))
    hotbar = targets[:, HOTBAR][masks.hotbar_changed].argmax(1)
    means = _macros(actions + inv, scoring.least)
    values: dict[str, float | None] = {
        "action_f1": means["action_f1"],
        "action_change_f1": means["action_change_f1"],
        **_look(prediction.look[masks.look], targets[masks.look][:, LOOK]),
        "hotbar_accuracy": _mean(prediction.hotbar[masks.hotbar_changed].argmax(1) == hotbar),
        **_cursor(prediction.cursor[masks.screen_open], targets[masks.screen_open][:, CURSOR]),
        "inv_f1": means["inv_f1"],
        "inv_change_f1": means["inv_change_f1"],
        "idle_accuracy": _mean(~on[masks.idle].any(axis=1)),
    }
    values |= {key: None for key in values if off.issuperset(_names_behind(key))}
    return Scores(values, combined_score(values, scoring.weights), actions + inv, scoring)


def _names_behind(key: str) -> list[str]:
    """Names of the controls that the value `key` judges."""
    head = key.partition("_")[0]
    return [CONTROL_NAMES[column] for column in HEADS["action" if head == "idle" else head]]


def _unjudged(score: ControlScore) -> ControlScore:
    return replace(score, precision=None, recall=None, f1=None, change_f1=None)


def combined_score(values: Mapping[str, float | None], weights: Mapping[str, float] = SCORE_WEIGHTS) -> float | None:
    """The weighted mean of the head scores, each clamped to [0, 1]; heads without support share out their weight.

    None where nothing with a weight can be judged or a value is not finite.
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
    judged = {name: part for name, part in parts.items() if part is not None and weights[name]}
    if not judged or not all(math.isfinite(part) for part in judged.values()):
        return None
    total = sum(weights[name] for name in judged)
    return sum(weights[name] * min(max(part, 0.0), 1.0) for name, part in judged.items()) / total


def _binary_scores(
    columns: tuple[int, ...], on: Bools, truth: Truth, masks: Bools, thresholds: NDArray[np.float64]
) -> tuple[ControlScore, ...]:
    wanted = truth.targets[:, columns] > 0.5
    changed = masks & (wanted != (truth.previous[:, columns] > 0.5))
    everywhere, changes = _Counts(on, wanted, masks), _Counts(on, wanted, changed)
    return tuple(
        ControlScore(
            name=CONTROL_NAMES[column],
            threshold=float(thresholds[k]),
            support=int(everywhere.wanted[k]),
            frames=int(masks[:, k].sum()),
            precision=_ratio(everywhere.hits[k], everywhere.said[k]),
            recall=_ratio(everywhere.hits[k], everywhere.wanted[k]),
            f1=everywhere.f1(k),
            changes=int(changed[:, k].sum()),
            onsets=int(changes.wanted[k]),
            change_f1=changes.f1(k),
        )
        for k, column in enumerate(columns)
    )


class _Counts:
    """hits, said, wanted: (controls,) counts over the frames that `masks: (n, controls)` keeps."""

    def __init__(self, on: Bools, wanted: Bools, masks: Bools) -> None:
        self.hits = (on & wanted & masks).sum(0)
        self.said = (on & masks).sum(0)
        self.wanted = (wanted & masks).sum(0)

    def f1(self, k: int) -> float | None:
        return _ratio(2 * self.hits[k], self.said[k] + self.wanted[k]) if self.wanted[k] else None


def _ratio(part: np.integer, whole: np.integer) -> float | None:
    return float(part / whole) if whole else None


def _macros(controls: Sequence[ControlScore], least: int) -> dict[str, float | None]:
    """The means over the controls with `least` positives or more; `controls` are the 12 actions, then the inventory."""
    means = {}
    for head, some in (("action", controls[: len(ACTION)]), ("inv", controls[len(ACTION) :])):
        means[f"{head}_f1"] = _mean([c.f1 for c in some if c.f1 is not None and c.support >= least])
        means[f"{head}_change_f1"] = _mean([c.change_f1 for c in some if c.change_f1 is not None and c.onsets >= least])
    return means


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
