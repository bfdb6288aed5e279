"""What every log holds in the end, ours or another program's: named series of points, read as they grow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    (step, value) pairs, oldest first; drawn faint. band: lower and upper edge, (n,) each, of a mean of several logs.
    """

    name: str
    step: Floats
    epoch: Floats
    time: Floats
    value: Floats
    old: tuple[tuple[Floats, Floats], ...] = ()
    band: tuple[Floats, Floats] | None = None


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
