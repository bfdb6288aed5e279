"""The ranks of a run as rows of text: what a step takes on each, what it waits, and which one holds the others up."""

from __future__ import annotations

from cockpit.core.text import fit_left, plain
from engines.basics.amounts import size
from engines.contract.rank_loads import RankLoad, slowest

WIDTHS = (4, 16, 8, 10, 10, 8)
LEAST_LAG = 1.1
"""Times the fastest rank's step from which on the slowest one is marked."""


def rank_rows(loads: list[RankLoad]) -> list[str]:
    """A heading and a row for each rank; nothing for none."""
    if not loads:
        return []
    last, fastest = slowest(loads), min(load.step_seconds for load in loads)
    rows = [_row("rank", "host", "device", "step", "waits", "memory")]
    for load in loads:
        marked = load is last and load.step_seconds > LEAST_LAG * fastest
        times = (f"{1000 * seconds:.1f} ms" for seconds in (load.step_seconds, load.wait_seconds))
        row = _row(str(load.rank), plain(load.host), plain(load.device), *times, size(load.memory))
        rows.append(f"{row}  < slowest" if marked else row)
    return rows


def _row(*cells: str) -> str:
    """Each cell in its width, numbers to the right."""
    fitted = [fit_left(cell, width) for cell, width in zip(cells, WIDTHS, strict=True)]
    names = (1, 2)
    return "  ".join(
        f"{cell:<{width}}" if place in names else f"{cell:>{width}}"
        for place, (cell, width) in enumerate(zip(fitted, WIDTHS, strict=True))
    )
