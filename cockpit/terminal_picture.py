"""Only what differs from what the terminal shows is sent to it: over a slow line every byte is waited for.

Textual sends each widget of which anything changed, and where a layout changed all that has another place, often
several times until everything has found its own. Most of that stands on the terminal already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, takewhile
from operator import itemgetter

from rich.cells import cell_len
from rich.console import Console
from rich.control import Control
from rich.segment import ControlType, Segment
from rich.style import Style
from textual._compositor import CompositorUpdate
from textual.strip import Strip

from cockpit.core.text import cells_of

Cell = tuple[str, Style | None]
"""What `cells_of` says of a cell, and its style."""


WIDEST = 2
"""Cells that a terminal may take for one character."""


class TerminalPicture:
    """What the terminal shows, as far as it is known: at first, and after `forget`, nothing."""

    def __init__(self) -> None:
        self._rows: dict[int, list[Cell | None]] = {}

    def forget(self) -> None:
        """It may show anything now: another program had it, or it has another size."""
        self._rows.clear()

    def news(self, segments: Iterable[Segment]) -> Iterator[Segment]:
        """Those of `segments`, which move the cursor about and write, that are not shown yet; from now on they are."""
        x = y = 0
        cursor = (-1, -1)
        for segment in segments:
            text, style, control = segment
            if control:
                x, y = _goal(segment)
            elif text != "\n":  # a move follows
                cells, stop = _cells(segment), x + segment.cell_length
                if self._take(x, y, [(cell, style) for cell in cells]):
                    if cursor != (x, y):
                        yield Control.move_to(x, y).segment
                    if all(map(_is_sure, cells)):
                        yield segment
                        cursor = (stop, y)
                    else:
                        yield from self._in_its_place(x, y, cells, style)
                        cursor = (-1, -1)
                x = stop

    def _in_its_place(self, x: int, y: int, cells: tuple[str, ...], style: Style | None) -> Iterator[Segment]:
        """Write `cells` from the cursor on, each where it should be; what they may have been written over, again."""
        reach = 0
        for is_sure, run in _runs(cells):
            text = "".join(run)
            if is_sure:
                yield Segment(text, style)
            else:
                yield Segment(" " * len(run), style)
                yield Control.move_to(x, y).segment
                yield Segment(text, style)
                yield Control.move_to(x + len(run), y).segment
                reach = max(reach, x + WIDEST * len(text))
            x += len(run)
        known = (cell for cell in takewhile(lambda cell: cell is not None, self._rows[y][x:reach]) if cell is not None)
        behind = takewhile(lambda cell: _is_sure(cell[0]), known)
        yield from (Segment("".join(cell for cell, _ in run), style) for style, run in groupby(behind, itemgetter(1)))

    def _take(self, x: int, y: int, cells: list[Cell]) -> bool:
        """Whether that is new at this place."""
        row, stop = self._rows.setdefault(y, []), x + len(cells)
        if row[x:stop] == cells:
            return False
        row += [None] * (stop - len(row))
        for place in (x, stop):  # of a wide character that loses one half nobody knows what becomes of the other
            if place < len(row) and (before := row[place]) is not None and not before[0]:
                row[place - 1 if place == x else place] = None
        row[x:stop] = cells
        return True


def _goal(move: Segment) -> tuple[int, int]:
    """Where it moves the cursor: all that an update does beside writing."""
    (code,) = move.control or ()
    assert code[0] is ControlType.CURSOR_MOVE_TO
    return int(code[1]), int(code[2])  # type: ignore[misc]


def _cells(segment: Segment) -> tuple[str, ...]:
    cells = cells_of(segment.text)
    width = segment.cell_length
    return cells if len(cells) == width else (segment.text, *[""] * (width - 1))  # what a terminal joins to one sign


def _is_sure(cell: str) -> bool:
    """Whether all terminals agree on the width of what stands in it: of wide ones those that are letters."""
    return len(cell) < 2 and (cell < "\u1100" or "\u2e80" <= cell <= "\uffff" or cell_len(cell) == 1)


def _runs(cells: tuple[str, ...]) -> Iterator[tuple[bool, tuple[str, ...]]]:
    """Neighbours that are alike in that."""
    sure: list[bool] = []
    for cell in cells:
        sure.append(_is_sure(cell) if cell else sure[-1])
    for is_sure, run in groupby(zip(sure, cells, strict=True), itemgetter(0)):
        yield is_sure, tuple(cell for _, cell in run)


class Changes(CompositorUpdate):
    """Of an update what is news to the terminal, found when it is written: what is not written was not shown."""

    def __init__(self, update: CompositorUpdate, picture: TerminalPicture) -> None:
        self._update, self._picture = update, picture

    def render_segments(self, console: Console) -> str:
        return Strip(self._picture.news(console.render(self._update))).render(console)  # type: ignore[arg-type]
