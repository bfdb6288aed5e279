"""Reading logs the way the tests ask for it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from cockpit.core.foreign.kinds import Source, open_logs
from cockpit.core.series import Series


def read(path: Path) -> Source:
    """The one log at `path`, read to its end."""
    (source,) = open_logs(path)
    read_on(source)
    return source


def read_on(source: Source) -> Source:
    while source.poll():
        pass
    return source


def points(series: Series, place: str = "step") -> list[tuple[float | str, float | str]]:
    """(place, value) pairs; NaN, which equals nothing, as the word."""
    return list(zip(plain(getattr(series, place)), plain(series.value), strict=True))


def plain(values: Iterable[float]) -> list[float | str]:
    return ["nan" if math.isnan(value) else float(value) for value in values]
