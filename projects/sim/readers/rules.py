"""Labels by stated rules, made from what comes after a frame alone, and the differences that telemetry is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from projects.sim.labels import ABSENT, ACTION

Floats64 = NDArray[np.float64]
Ids = NDArray[np.int8]


def ahead(values: Floats64, horizon: int, how: Callable[..., Floats64]) -> Floats64:
    """`how` (np.min, np.mean …) of the `horizon` values after each frame: (n - horizon,); frame i excluded."""
    return how(np.lib.stride_tricks.sliding_window_view(values[1:], horizon), axis=-1)


def labelled(ids: NDArray[np.int64], count: int) -> Ids:
    """The labels of `count` frames: those at the end, whose future is not known, have none."""
    return np.concatenate([ids, np.full(count - len(ids), ABSENT)]).astype(np.int8)


def since_last(values: Floats64, times: Floats64) -> Floats64:
    """The rate of change up to each frame, 0 for the first: backward, as a central one would know the next frame."""
    return np.concatenate([[0.0], np.diff(values) / np.diff(times)])


def turned(degrees: Floats64) -> Floats64:
    """Angles in radians without the jump at 360 degrees."""
    return np.unwrap(np.deg2rad(degrees))


def levels(danger: Floats64, edges: Sequence[float], shares: Sequence[float]) -> tuple[NDArray[np.int64], str]:
    """0 to 3 by how many `edges` each value reaches, and how it was done.

    Where that leaves a single level, by the quantiles `shares` of the values that differ from the least.
    """
    ids = np.searchsorted(edges, danger, side="right")
    if len(np.unique(ids)) > 1:
        return ids, f"at {', '.join(f'{edge:g}' for edge in edges)}"
    above = danger[danger > danger.min()]
    edges = np.quantile(above, shares).tolist() if len(above) else [np.inf] * len(shares)
    said = ", ".join(f"{edge:.3g}" for edge in edges)
    return np.searchsorted(edges, danger, side="right"), f"at its quantiles {', '.join(map(str, shares))}: {said}"


def action_ids(
    steering: Floats64, *, turn: float, stop: NDArray[np.bool_], reverse: NDArray[np.bool_], slow: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The action of each row, the first that holds of reverse, stop, turn (steering beyond `turn`, left is positive),
    slow, continue.
    """
    choices = [("reverse", reverse), ("stop", stop), ("turn_left", steering > turn), ("turn_right", steering < -turn)]
    choices.append(("slow", slow))
    ids = np.select([where for _, where in choices], [ACTION.index(name) for name, _ in choices], 0)
    return ids.astype(np.int64)
