"""The thresholds of the 15 on-off controls and of the hotbar: their heads, and their place in the config. Torch-free.

Actions: F1 less half the false presses on idle frames. Inventory: F1. Hotbar confidence: accuracy times coverage.
Where the review says how the controls are sent, thresholds are chosen by what is on after hysteresis.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from engines.basics.errors import DataError
from engines.thresholds.adapter import AS_SENT, Arrays, ThresholdAdapter, Thresholds, Titles, require
from engines.thresholds.grid import grid_optimum
from engines.thresholds.head import Head, blocks_of
from engines.thresholds.objectives import ACCURACY_COVERAGE, F1, F1_LESS_ALARMS, Ints
from engines.thresholds.plateau import DEFAULT
from engines.thresholds.search import exact_optimum
from projects.controls.exported import CONFIG_FILE
from projects.controls.layout import ACTION, BINARY, CONTROL_NAMES, INV
from projects.controls.sending import Rules, SentControl, asked, far_apart, streams

HOTBAR = "hotbar_min_confidence"
NAMES = tuple(CONTROL_NAMES[column] for column in BINARY)
ARRAYS = (
    "scores", "targets", "masks", "idle", "groups", "hotbar_confidence", "hotbar_correct", "hotbar_mask",
)  # fmt: skip
BLOCK = 200
"""Frames that are resampled together: 10 seconds at 20 a second."""
LEAST = "least_support"
"""In a review: positives from which on a control counts in the totals, as in the report; one where it is not there."""
MEANS = {"action F1": slice(len(ACTION)), "inventory F1": slice(len(ACTION), len(BINARY))}
"""Totals that are means over controls, and their columns."""
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
        rules = rules_of(arrays)
        require(arrays, ARRAYS if rules is None else (*ARRAYS, "times"))
        blocks = blocks_of(arrays["groups"], BLOCK)
        sent = [None] * len(BINARY) if rules is None else senders(arrays, rules)
        return [*(_control(arrays, blocks, k, one) for k, one in enumerate(sent)), _hotbar(arrays, blocks)]

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
        chosen = arrays["hotbar_mask"]
        answered = arrays["hotbar_correct"][chosen] & (arrays["hotbar_confidence"][chosen] >= thresholds[HOTBAR])
        return {**_totals(on, arrays), "hotbar accuracy × coverage": float(answered.mean()) if len(answered) else None}

    def sent_totals(self, arrays: Arrays, heads: Mapping[str, Head], thresholds: Thresholds) -> dict[str, float | None]:
        """The totals of the 15 controls `as sent`; nothing where the review does not say how they are sent."""
        if rules_of(arrays) is None:
            return {}
        on = np.zeros(arrays["scores"].shape, np.bool_)
        for k, name in enumerate(NAMES):
            if (sent := heads[name].sent) is not None:
                on[arrays["masks"][:, k], k] = sent(thresholds[name])
        return {f"{name}{AS_SENT}": value for name, value in _totals(on, arrays).items()}

    def counted(self, arrays: Arrays) -> dict[str, str]:
        """By `LEAST_SUPPORT`; nothing in the review of a run that began when one positive was enough."""
        if LEAST not in arrays:
            return {}
        enough = _enough(arrays)
        return {name: f"{enough[of].sum()} of {len(enough[of])}" for name, of in MEANS.items()}


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


def rules_of(arrays: Arrays) -> Rules | None:
    """How the controls of a review are sent; None in one of a run whose thresholds are tuned without that."""
    return Rules(arrays["margins"], arrays["holds"]) if "margins" in arrays and "holds" in arrays else None


def senders(arrays: Arrays, rules: Rules) -> list[SentControl]:
    """The 15 controls, each on the frames where it is judged."""
    stream = streams(arrays["groups"], arrays["times"])
    clock, decided = far_apart(stream, arrays["times"]), asked(arrays["groups"], stream)
    found: list[SentControl] = []
    of_frames = None
    for k in range(len(BINARY)):
        kept = arrays["masks"][:, k]
        if of_frames is None or not np.array_equal(kept, arrays["masks"][:, k - 1]):  # shared by those of a mode
            of_frames = np.flatnonzero(kept), _of(stream, kept), _of(clock, kept), _of(decided, kept)
        rows, its_stream, its_clock, ready = of_frames
        scores, margin, hold = arrays["scores"][kept, k], float(rules.margins[k]), bool(rules.holds[k])
        found.append(SentControl(scores, rows, its_stream, its_clock, ready, margin, hold))
    return found


def sent_controls(arrays: Arrays, rules: Rules, thresholds: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n, 15): what is sent of the n windows of a review at `thresholds: (15,)`."""
    on = np.zeros(arrays["scores"].shape, np.bool_)
    for k, sender in enumerate(senders(arrays, rules)):
        on[arrays["masks"][:, k], k] = sender.at(thresholds[k])
    return on


def nested(thresholds: Thresholds) -> dict[str, Any]:
    """As an exported config holds them."""
    values = [thresholds[name] for name in NAMES]
    return {"action": values[: len(ACTION)], HOTBAR: thresholds[HOTBAR], "inv_click": values[len(ACTION) :]}


def _control(arrays: Arrays, blocks: Ints, k: int, sent: SentControl | None) -> Head:
    kept = arrays["masks"][:, k]
    action = k < len(ACTION)
    raw = arrays["scores"][kept, k]
    return Head(
        name=NAMES[k],
        objective=F1_LESS_ALARMS if action else F1,
        scores=raw if sent is None else sent.scores,
        targets=arrays["targets"][kept, k],
        groups=_of(arrays["groups"], kept),
        quiet=_of(arrays["idle"], kept) if action else None,
        blocks=_of(blocks, kept),
        raw=None if sent is None or not sent.margin else raw,
        sent=None if sent is None else sent.at,
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


def _totals(on: NDArray[np.bool_], arrays: Arrays) -> dict[str, float | None]:
    """Of the decisions `on: (n, 15)`."""
    idle = on[arrays["idle"].astype(np.bool_), : len(ACTION)]
    return {
        **{name: _mean_f1(on, arrays, columns) for name, columns in MEANS.items()},
        "idle accuracy": float((~idle.any(axis=1)).mean()) if len(idle) else None,
    }


def _mean_f1(on: NDArray[np.bool_], arrays: Arrays, columns: slice) -> float | None:
    judged = arrays["masks"][:, columns]
    wanted, pressed = arrays["targets"][:, columns] & judged, on[:, columns] & judged
    positives = wanted.sum(axis=0)
    f1 = 2 * (wanted & pressed).sum(axis=0) / np.maximum(pressed.sum(axis=0) + positives, 1)
    enough = _enough(arrays)[columns]
    return float(f1[enough].mean()) if enough.any() else None


def _enough(arrays: Arrays) -> NDArray[np.bool_]:
    """(15,): which controls have positives enough to count."""
    positives = (arrays["targets"] & arrays["masks"]).sum(axis=0)
    return np.asarray(positives >= int(arrays.get(LEAST, 1)), np.bool_)
