"""A source of metrics whose numbers are made up, and grow when told to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cockpit.core.series import Mark, Series

BEGAN = 1_795_810_440.0
EPOCH = 20
"""Steps."""


class FakeMetrics:
    """`loss`, every step and per epoch, `score`, one metric that is never finite, and as many more as wished.

    The loss of step s is 2 / (1 + s / 100), that of an epoch the same at its end, in validation 0.1 more.
    """

    title = "controls-20261127-201400-amber"

    def __init__(self, steps: int = 400, more: int = 2, *, empty: bool = False) -> None:
        self.steps, self.more, self.empty = steps, more, empty
        self.polled = 0
        self._told = -1

    def poll(self) -> bool:
        self.polled += 1
        changed, self._told = self.steps != self._told, self.steps
        return changed

    def series(self) -> Mapping[str, Series]:
        if self.empty:
            return {}
        step, ends = np.arange(float(self.steps)), np.arange(EPOCH, self.steps + 1.0, EPOCH)
        made = [
            ("score", ends, 0.8 - 0.5 * np.exp(-ends / 150)),
            ("train.loss", ends, loss(ends)),
            ("validation.loss", ends, loss(ends) + 0.1),
            ("loss", step, loss(step) * (1 + 0.1 * np.sin(step * 1.7))),
            ("grad/norm", step, np.full(len(step), np.nan)),
            *((f"gpu/{place}", step, place + np.sin(step / 30)) for place in range(self.more)),
        ]
        return {name: Series(name, x, x / EPOCH, BEGAN + x * 1.8, y) for name, x, y in made}

    def problems(self) -> Sequence[str]:
        return ["2 bad lines in events.jsonl"] if self.steps == 404 else []

    def marks(self) -> Sequence[Mark]:
        def mark(kind: str, step: float) -> Mark:
            return Mark(kind, step, step / EPOCH, BEGAN + step * 1.8)  # type: ignore[arg-type]

        return [mark("checkpoint", 400), mark("resume", 200), mark("edit", 240), mark("best", 380)]


def loss(step: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return 2 / (1 + step / 100)
