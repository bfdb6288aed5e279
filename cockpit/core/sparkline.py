"""A series in a few characters. Without numpy, since the first screen draws these and need not wait for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None], width: int) -> str:
    """The whole series in at most `width` block characters, the highest filled; a gap where there is no value."""
    cells = min(width, len(values))
    if cells <= 0:
        return ""
    cuts = [len(values) * place // cells for place in range(cells + 1)]
    tops = [_top(values[start:end]) for start, end in pairwise(cuts)]
    finite = [top for top in tops if top is not None]
    if not finite:
        return " " * cells
    low, span = min(finite), (max(finite) - min(finite)) or 1.0
    scale = len(BLOCKS) - 1
    return "".join(" " if top is None else BLOCKS[round((top - low) / span * scale)] for top in tops)


def _top(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None and math.isfinite(value)), default=None)
