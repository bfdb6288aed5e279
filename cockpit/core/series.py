"""What every log holds in the end, ours or another program's: named series of points, read as they grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MarkKind = Literal["checkpoint", "resume", "edit", "best"]


@dataclass(frozen=True)
class Series:
    """One metric as logged: immutable arrays of shape (n,), in the order of the log's steps.

    step, epoch: NaN where the log does not say. time: Unix seconds, NaN where the log does not say.
    value: NaN and ±inf are kept as logged, for a chart marks them. old: branches that a restart superseded, as
    (step, value) pairs, oldest first; drawn faint. before: of a fork, what its parents had up to where it began; faint
    too. limits: the range that such a value can have; None where it has no such end. band: lower and upper edge, (n,)
    each, of a mean of several logs. start: the Unix time that `time` counts from, where it is not Unix time itself; NaN
    where there is none.
    """

    name: str
    step: Floats
    epoch: Floats
    time: Floats
    value: Floats
    old: tuple[tuple[Floats, Floats], ...] = ()
    before: Series | None = None
    limits: tuple[float | None, float | None] = (None, None)
    band: tuple[Floats, Floats] | None = None
    start: float = 0.0

    @cached_property
    def by_epoch(self) -> bool:
        """Whether it has one value per epoch, and is never smoothed."""
        epoch = self.epoch
        if not len(epoch) or not float(epoch[0]).is_integer():  # NaN is no epoch; the first of a million says it
            return False
        return bool((np.mod(epoch, 1) == 0).all() and (np.diff(epoch) > 0).all())


class MetricSource(Protocol):
    """A log, or several that belong together, followed while it grows."""

    @property
    def title(self) -> str: ...

    def poll(self) -> bool:
        """Read what is new; whether anything changed. Never raises for what the files hold."""
        ...

    def series(self) -> Mapping[str, Series]:
        """Every metric by its name, in order of first appearance."""
        ...

    def problems(self) -> Sequence[str]:
        """Damage met so far, counted, in sentences."""
        ...


@dataclass(frozen=True)
class Mark:
    """Something that happened at a step, in epochs done and at a Unix time."""

    kind: MarkKind
    step: float
    epoch: float
    time: float
    weights: str = ""
    """`weights look 0.8`: those that losses were computed with from here on; empty where they stay."""
