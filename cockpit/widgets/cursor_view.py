"""What one head reaches at the cursor: confusion counts, rates against the saved ones, scores of both classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from cockpit.core.format import count, number
from cockpit.core.plot.glyphs import Glyphs
from cockpit.core.scenes.cells import BLANK, Row
from cockpit.core.thresholds.curves import ALARMS, STYLES, histogram
from cockpit.core.thresholds.review import NOTHING, HeadReview, Numbers
from cockpit.core.thresholds.review import Row as HeadRow
from cockpit.widgets.ascii_filter import glyphs_of
from cockpit.widgets.cells_view import CellsView

LEVELS = " ▁▂▃▄▅▆▇█"
LABEL, SIDE = 10, 7
Piece = tuple[str, str]


@dataclass(frozen=True)
class Facts:
    """A head at its new threshold. `best` is None where none is known yet or can be chosen."""

    it: HeadReview
    row: HeadRow
    best: float | None
    alarms: str
    """What its rate of false alarms is called."""
    resampled: list[str]
    """What resampling says, in lines; none while it is not known."""


class CursorView(CellsView):
    COMPONENT_CLASSES = {f"cells--{style}" for style in STYLES.values()}

    def __init__(self) -> None:
        super().__init__(id="cursor")

    def show_facts(self, facts: Facts | None) -> None:
        self.show(
            lambda width, height: (
                [] if facts is None else _fitted(_rows(facts, width, glyphs_of(self.app)), width, height)
            )
        )


def _fitted(rows: Iterator[Row], width: int, height: int) -> list[Row]:
    return [(row + [BLANK] * width)[:width] for row in islice(rows, height)]


def _rows(facts: Facts, width: int, glyphs: Glyphs) -> Iterator[Row]:
    it, row = facts.it, facts.row
    if row.after is not None:
        yield from _confusion(it, row.new)
    if row.flag:
        yield _cells(("! " + row.flag, "bad"))
    if row.after is None:
        return
    yield from _rates(row, facts.alarms, glyphs)
    marks = f"◆ saved {number(row.saved)}" + ("" if facts.best is None else f"  ★ best {number(facts.best)}")
    yield _cells((marks, "quiet"))
    yield from _spread(it, row.new, width)
    for line in facts.resampled:
        yield _cells((line, "quiet"))


def _confusion(it: HeadReview, threshold: float) -> Iterator[Row]:
    counts = it.tally.at(threshold)
    hits, false_yes = int(counts.hits), int(counts.false_yes)
    missed, rest = int(counts.positives) - hits, int(counts.negatives) - false_yes
    yield _cells((f"{'':{LABEL}}{'pred +':>10}{'pred −':>10}", "quiet"))
    yield _cells((f"{'true +':{LABEL}}", "quiet"), (f"{count(hits):>10}", "good"), (f"{count(missed):>10}", "bad"))
    yield _cells((f"{'true −':{LABEL}}", "quiet"), (f"{count(false_yes):>10}", "bad"), (f"{count(rest):>10}", "good"))


def _rates(row: HeadRow, alarms: str, glyphs: Glyphs) -> Iterator[Row]:
    """The sign of each is that of its curve."""
    after, before = row.after or NOTHING, row.before or NOTHING
    for name, of in _RATES.items():
        value, was = of(after), of(before)
        if (name == "objective" and row.objective == "F1") or (value is None and was is None):
            continue
        sign, title = glyphs.run_sign(STYLES[name]), alarms if name == ALARMS else name
        change = "" if value is None or was is None or value == was else f"{value - was:+.3f}"
        better = not change.startswith("-") if name != ALARMS else change.startswith("-")
        yield _cells(
            (f"{sign} ", STYLES[name]), (f"{title:9}", "plain"), (f"{number(value):>6}", "plain"),
            (f"  was {number(was):>6}", "quiet"), (f" {change}", "good" if better else "bad"),
        )  # fmt: skip


_RATES: dict[str, Callable[[Numbers], float | None]] = {
    "objective": lambda it: it.objective,
    "F1": lambda it: it.f1,
    "precision": lambda it: it.precision,
    "recall": lambda it: it.recall,
    ALARMS: lambda it: it.alarm_rate,
}


def _spread(it: HeadReview, threshold: float, width: int) -> Iterator[Row]:
    """Two lines of bars, those at or above the threshold bright: log scale, or a rare class would be flat."""
    bins = max(1, width - SIDE)
    low, high = it.head.bounds
    first_yes = round((threshold - low) / (high - low) * bins)
    for name, counts, kind in zip(("true +", "true −"), histogram(it, bins), ("good", "plain"), strict=True):
        bars = _bars(counts)
        yield _cells((f"{name:{SIDE}}", "quiet"), (bars[:first_yes], "faint"), (bars[first_yes:], kind))


def _bars(counts: NDArray[np.int64]) -> str:
    heights = np.log1p(counts)
    most = float(heights.max()) or 1.0
    return "".join(LEVELS[place] for place in np.ceil(heights / most * (len(LEVELS) - 1)).astype(int).tolist())


def _cells(*pieces: Piece) -> Row:
    return [(sign, kind) for text, kind in pieces for sign in text]
