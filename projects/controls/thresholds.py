"""The thresholds of the 15 on-off controls and of the hotbar: their heads, and their place in the config. Torch-free.

Actions: F1 less half the false presses on idle frames. Inventory: F1. Hotbar confidence: accuracy times coverage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from engines.basics.errors import DataError
from engines.thresholds.adapter import Arrays, ThresholdAdapter, Thresholds, Titles, require
from engines.thresholds.grid import grid_optimum
from engines.thresholds.head import Head, blocks_of
from engines.thresholds.objectives import ACCURACY_COVERAGE, F1, F1_LESS_ALARMS, Ints
from engines.thresholds.plateau import DEFAULT
from engines.thresholds.search import exact_optimum
from projects.controls.exported import CONFIG_FILE
from projects.controls.layout import ACTION, BINARY, CONTROL_NAMES, INV

HOTBAR = "hotbar_min_confidence"
NAMES = tuple(CONTROL_NAMES[column] for column in BINARY)
ARRAYS = (
    "scores", "targets", "masks", "idle", "groups", "hotbar_confidence", "hotbar_correct", "hotbar_mask",
)  # fmt: skip
BLOCK = 200
"""Frames that are resampled together: 10 seconds at 20 a second."""
Search = Literal["exact", "grid"]
SEARCHES = {"exact": exact_optimum, "grid": grid_optimum}


class ControlThresholds(ThresholdAdapter):
    """Reviews as `evaluation.review_arrays` makes them, configs as `export.policy_config` does."""

    titles = Titles("control", "controls", "session", "sessions", "idle FP")
    file = CONFIG_FILE

    def heads(self, arrays: Arrays) -> list[Head]:
        """The 15 controls on the frames where each is judged, then the hotbar's confidence where a slot was chosen."""
        require(arrays, ("names",))
        if arrays["names"].tolist() != list(NAMES):
            raise DataError(f"The review is of other controls; expected {', '.join(NAMES[:3])}, … in their order.")
        require(arrays, ARRAYS)
        blocks = blocks_of(arrays["groups"], BLOCK)
        return [*(_control(arrays, blocks, k) for k in range(len(BINARY))), _hotbar(arrays, blocks)]

    def defaults(self, config: Mapping[str, Any]) -> dict[str, float]:
        try:
            own = config["thresholds"]
            values = [own["action"]] * len(ACTION) + [own["inv"]] * len(INV) + [own[HOTBAR]]
        except (KeyError, TypeError) as error:
            raise DataError(f"The run's config has no thresholds.{error}; expected action, inv and {HOTBAR}.") from None
        return _named(values)

    def read(self, exported: Mapping[str, Any]) -> dict[str, float]:
        try:
            own = exported["thresholds"]
            values = [*own["action"], *own["inv_click"], own[HOTBAR]]
        except (KeyError, TypeError):
            raise DataError(
                f"The exported config has no thresholds.action, inv_click and {HOTBAR}: it is none of ours."
            ) from None
        return _named(values)

    def write(self, exported: Mapping[str, Any], thresholds: Thresholds) -> dict[str, Any]:
        return {**exported, "thresholds": nested(thresholds)}

    def checkpoint(self, exported: Mapping[str, Any]) -> tuple[int | None, int | None]:
        training = exported.get("training")
        if not isinstance(training, dict):
            return None, None
        return training.get("best_epoch"), training.get("best_step")

    def totals(self, arrays: Arrays, thresholds: Thresholds) -> dict[str, float | None]:
        """Action and inventory F1, each the mean over controls with support; idle accuracy; the hotbar's objective."""
        on = arrays["scores"] >= np.array([thresholds[name] for name in NAMES])
        actions = slice(len(ACTION))
        idle = on[arrays["idle"].astype(np.bool_), actions]
        asked = arrays["hotbar_mask"]
        answered = arrays["hotbar_correct"][asked] & (arrays["hotbar_confidence"][asked] >= thresholds[HOTBAR])
        return {
            "action F1": _mean_f1(on, arrays, actions),
            "inventory F1": _mean_f1(on, arrays, slice(len(ACTION), None)),
            "idle accuracy": float((~idle.any(axis=1)).mean()) if len(idle) else None,
            "hotbar accuracy × coverage": float(answered.mean()) if len(answered) else None,
        }


THRESHOLDS = ControlThresholds()


def search_thresholds(review: Arrays, hotbar_default: float, search: Search = "exact") -> dict[str, Any]:
    """`thresholds` of an export, and the heads that could not be searched: these keep .5, or the hotbar's default."""
    heads = THRESHOLDS.heads(review)
    kept = dict.fromkeys(NAMES, DEFAULT) | {HOTBAR: hotbar_default}
    found = {head.name: SEARCHES[search](head).threshold for head in heads if not head.untunable}
    return {
        "thresholds": nested(kept | found),
        "thresholds_unsupported": [head.name for head in heads if head.untunable],
    }


def nested(thresholds: Thresholds) -> dict[str, Any]:
    """As an exported config holds them."""
    values = [thresholds[name] for name in NAMES]
    return {"action": values[: len(ACTION)], HOTBAR: thresholds[HOTBAR], "inv_click": values[len(ACTION) :]}


def _control(arrays: Arrays, blocks: Ints, k: int) -> Head:
    kept = arrays["masks"][:, k]
    action = k < len(ACTION)
    return Head(
        name=NAMES[k],
        objective=F1_LESS_ALARMS if action else F1,
        scores=arrays["scores"][kept, k],
        targets=arrays["targets"][kept, k],
        groups=_of(arrays["groups"], kept),
        quiet=_of(arrays["idle"], kept) if action else None,
        blocks=_of(blocks, kept),
    )


def _of(array: NDArray[Any], kept: NDArray[np.bool_]) -> NDArray[Any]:
    """What is kept of it: not one more copy for each control where all is."""
    return array if kept.all() else array[kept]


def _hotbar(arrays: Arrays, blocks: Ints) -> Head:
    asked = arrays["hotbar_mask"]
    return Head(
        name=HOTBAR,
        objective=ACCURACY_COVERAGE,
        scores=arrays["hotbar_confidence"][asked],
        targets=arrays["hotbar_correct"][asked],
        groups=arrays["groups"][asked],
        blocks=blocks[asked],
    )


def _named(values: list[Any]) -> dict[str, float]:
    names = (*NAMES, HOTBAR)
    if len(values) != len(names) or not all(isinstance(value, int | float) for value in values):
        raise DataError(f"The thresholds are {len(values)} values, expected {len(names)} numbers, one a control.")
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def _mean_f1(on: NDArray[np.bool_], arrays: Arrays, columns: slice) -> float | None:
    judged = arrays["masks"][:, columns]
    wanted, pressed = arrays["targets"][:, columns] & judged, on[:, columns] & judged
    positives = wanted.sum(axis=0)
    f1 = 2 * (wanted & pressed).sum(axis=0) / np.maximum(pressed.sum(axis=0) + positives, 1)
    return float(f1[positives > 0].mean()) if positives.any() else None
