"""The list of runs: one line each, by key, with a cursor and marks that stay on their runs while others come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.message import Message

from cockpit.core.runs.summary import RunSummary
from cockpit.core.text import fit_apart, fit_left, fit_right, plain
from cockpit.widgets.line_view import LineView
from cockpit.widgets.runs_columns import CURSOR, GAP, MARK, NOTE_WIDTH, Column, cells, columns_for, note, progress

BETWEEN = " · "
"""Between a label and a word."""
LEAST_LABEL = 12


class RunsTable(LineView):
    COMPONENT_CLASSES = {
        "runs--header", "runs--name", "runs--project", "runs--number", "runs--quiet", "runs--spark", "runs--cursor",
        "runs--sign",
        "state--live", "state--waiting", "state--done", "state--bad",
    }  # fmt: skip
    FOLLOWS = False
    HEADER_LINES = 1
    BINDINGS = [
        Binding("up,k", "move(-1)", "Up", show=False, id="runs.up"),
        Binding("down,j", "move(1)", "Down", show=False, id="runs.down"),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "move(-1000000)", "First", show=False),
        Binding("end", "move(1000000)", "Last", show=False),
    ]

    @dataclass
    class Highlighted(Message):
        """The cursor is on another run, or on none."""

        summary: RunSummary | None

    @dataclass
    class Chosen(Message):
        """The person wants to see this run."""

        summary: RunSummary

    @dataclass
    class OrderAsked(Message):
        """The person wants the runs ordered by this."""

        order: str

    def __init__(self) -> None:
        super().__init__(id="runs", title="Runs")
        self._rows: list[RunSummary] = []
        self._now = 0.0
        self._key: Path | None = None
        self._shown: dict[int, Text] = {}
        self._order = ("", False)
        self._marked: frozenset[Path] = frozenset()
        self._pinned: frozenset[Path] = frozenset()
        self._projects = False
        """Whether there are several."""
        self._longest = 0
        """Cells of the longest name."""
        self._epochs = 0
        """Cells of the longest count of epochs."""
        self._names: dict[Path, str] = {}
        self._measured: tuple[tuple[Path, str], ...] = ()
        """The runs and labels of which the names are made."""
        self._words: list[str] = []
        """Of each run its word, with the date before it where another has the same name."""
        self._named: tuple[object, int] = ((), 0)
        """Those, and the width, that names were fitted to."""

    @property
    def cursor(self) -> RunSummary | None:
        """The run the cursor is on."""
        return next((row for row in self._rows if row.path == self._key), None)

    @property
    def rows(self) -> Sequence[RunSummary]:
        """The runs that are shown, in order."""
        return self._rows

    def copyable(self) -> str:
        """The id of the run under the cursor."""
        return self.cursor.id if self.cursor else ""

    def show(
        self,
        rows: Sequence[RunSummary],
        now: float,
        *,
        order: tuple[str, bool] = ("", False),
        marked: Collection[Path] = (),
        pinned: Collection[Path] = (),
    ) -> None:
        """Take the runs in order (its name, and whether it descends); only lines that changed are drawn again.

        `pinned` are the baselines.
        """
        before, at = self.cursor, self._index()
        self._rows, self._now, self._marked = list(rows), now, frozenset(marked)
        self._pinned = frozenset(pinned)
        if (several := len({row.project for row in rows if row.project}) > 1) != self._projects:
            self._projects = several
            self._shown.clear()
            self.refresh()
        if self.cursor is None:  # its run is gone: stay where it was
            self._key = self._rows[min(at, len(self._rows) - 1)].path if self._rows else None
        self._measure_epochs()
        self._measure_names()
        if order != self._order:
            self._order = order
            self.refresh_line(0)
        self._fit()
        self._draw()
        if self.cursor != before:
            self.post_message(self.Highlighted(self.cursor))

    def on_resize(self) -> None:
        self._shown.clear()
        self._draw()

    def watch_show_vertical_scrollbar(self) -> None:
        """It shortens the names, not what is at the right."""
        self._shown.clear()
        self._fit()
        self.refresh()

    @property
    def _room(self) -> int:
        """Cells of a line, beside a scrollbar."""
        return self.scrollable_content_region.width

    def _fit(self) -> None:
        width = sum(column.width + len(GAP) for column in self._columns()) - len(GAP)
        self._fit_names()
        self.resize_to(len(self._rows), len(CURSOR) + width)

    def _measure_epochs(self) -> None:
        """Find the longest count of epochs; the column never shrinks."""
        longest = max((len(progress(row)) for row in self._rows), default=0)
        if longest > self._epochs:
            self._epochs = longest
            self._shown.clear()
            self.refresh()

    def _measure_names(self) -> None:
        """Find the longest name, where there are other runs or names than before; the column never shrinks."""
        measured = tuple((row.path, _label(row)) for row in self._rows)
        if measured == self._measured:
            return
        self._measured = measured
        often = Counter(row.name for row in self._rows)
        self._words = [row.word if often[row.name] == 1 else _dated(row) for row in self._rows]
        whole = (cell_len(label) + len(BETWEEN) * bool(label) for label in map(_label, self._rows))
        longest = max((size + cell_len(word) for size, word in zip(whole, self._words, strict=True)), default=0)
        if longest > self._longest:
            self._longest = longest
            self._shown.clear()
            self.refresh()

    def _fit_names(self) -> None:
        """Label, then word, in the width of their column; where that is too narrow labels are told apart first."""
        width = next(column.width for column in self._columns() if column.order == "name")
        if (self._measured, width) == self._named:
            return
        self._named = self._measured, width
        words = self._words
        rooms = [max(width - cell_len(word) - len(BETWEEN), LEAST_LABEL) for word in words]
        labels = [*map(_label, self._rows)]
        for room in set(rooms):
            places = [place for place, text in enumerate(labels) if rooms[place] == room and cell_len(text) > room]
            for place, text in zip(places, fit_apart([labels[place] for place in places], room), strict=True):
                labels[place] = text.rstrip()
        self._names = {
            row.path: f"{text}{BETWEEN}{word}" if text else word
            for row, text, word in zip(self._rows, labels, words, strict=True)
        }

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._shown.clear()  # composed in the colours of before

    def _draw(self) -> None:
        """Compose the lines in view again and draw those that differ."""
        top = self.scroll_offset.y
        before, self._shown = self._shown, {}
        for index in range(top, min(top + self.size.height, len(self._rows))):
            self._shown[index] = self._compose_line(self._rows[index])
            if before.get(index) != self._shown[index]:
                self.refresh_index(index)

    # -- moving ----------------------------------------------------------------------------------------------------

    def _index(self) -> int:
        return next((index for index, row in enumerate(self._rows) if row.path == self._key), 0)

    def action_move(self, by: int) -> None:
        self._go_to(self._index() + by)

    def action_page(self, by: int) -> None:
        self._go_to(self._index() + by * max(1, self.size.height - 2))

    def _go_to(self, index: int) -> None:
        if not self._rows:
            return
        index = min(max(index, 0), len(self._rows) - 1)
        before, self._key = self._index(), self._rows[index].path
        for changed in {before, index}:
            self._shown[changed] = self._compose_line(self._rows[changed])
            self.refresh_index(changed)
        self.bring_into_view(index)
        self.post_message(self.Highlighted(self.cursor))

    def on_click(self, event: events.Click) -> None:
        """One click selects, two open; on a title it orders."""
        if event.y == self.gutter.top:
            self._click_title(event.x - self.gutter.left + self.scroll_offset.x)
        elif (index := self.index_under(event)) is not None:
            self._go_to(index)
            if event.chain == 2:
                self.post_message(self.Chosen(self._rows[index]))

    def _click_title(self, x: int) -> None:
        end = 1
        for column in self._columns():
            end += column.width + len(GAP)
            if x < end:
                if column.order:
                    self.post_message(self.OrderAsked(column.order))
                return

    # -- drawing ---------------------------------------------------------------------------------------------------

    def _columns(self) -> Collection[Column]:
        return self._placed.values()

    @property
    def _placed(self) -> dict[int, Column]:
        """By their places in COLUMNS."""
        return columns_for(self._room, projects=self._projects, longest=self._longest, epochs=self._epochs)

    def header(self) -> Text:
        """The titles; a sign beside the one that orders, in a cell that is free anyway: no column moves."""
        line = " "
        for column in self._columns():
            sign = ("▼" if self._order[1] else "▲") if column.order and column.order == self._order[0] else ""
            if column.left:
                line += fit_left(column.title + sign, column.width) + GAP
            else:
                line += fit_right(column.title, column.width) + (sign or GAP)
        room = self._room - len(line)
        return self.styled(line + fit_left("Note", room) if room >= NOTE_WIDTH else line, "runs--header")

    def line(self, index: int) -> Text:
        return self._shown.get(index) or self._compose_line(self._rows[index])

    def _compose_line(self, row: RunSummary) -> Text:
        texts = cells(row, self._names.get(row.path) or row.name, self._now)
        line = Text(no_wrap=True).append(CURSOR if row.path == self._key else " ", self._style("runs--sign"))
        for place, column in self._placed.items():
            text, style = texts[place]
            fit = fit_left if column.left else fit_right
            line.append(fit(text, column.width), self._style(style))
            marked = column.title == "State" and row.path in self._marked
            line.append(MARK if marked else GAP, self._style("runs--sign"))
        room = self._room - line.cell_len
        if room >= NOTE_WIDTH:
            line.append(fit_left(note(row, row.path in self._pinned), room), self._style("runs--quiet"))
        if row.path == self._key:
            line.append(" " * max(0, self._room - line.cell_len))
            line.stylize(self._style("runs--cursor"))
        return line

    def _style(self, name: str) -> Style:
        return self.component_style(name)


def _label(row: RunSummary) -> str:
    """The run's own; of a task without one that it is a task."""
    return plain(row.label) or "task" * row.is_task


def _dated(row: RunSummary) -> str:
    """`20261110-093000-amber`: the id, but for the project that most of a list share."""
    return row.on_host(plain(row.id).removeprefix(f"{plain(row.project)}-"))
