"""The list of runs: one line each, by key, with a cursor that stays on its run while others come and go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.message import Message

from cockpit.core import cost
from cockpit.core.fleet import RunSummary
from cockpit.core.format import fitted, money, short_duration
from cockpit.core.series import sparkline
from cockpit.core.states import WIDTH as STATE_WIDTH
from cockpit.core.states import is_live, label
from cockpit.core.text import fit_left, fit_right, plain
from cockpit.widgets.line_view import LineView
from cockpit.widgets.run_header import tone

GAP = " "
NOTE_WIDTH = 20


@dataclass(frozen=True)
class _Column:
    title: str
    width: int
    left: bool
    from_width: int
    """Width of the pane from which on there is room for it."""


COLUMNS = (
    _Column("", STATE_WIDTH, True, 0),
    _Column("Run", 30, True, 0),
    _Column("Project", 9, True, 100),
    _Column("Epoch", 7, False, 0),
    _Column("Score", 5, False, 0),
    _Column("", 14, True, 112),
    _Column("Spent", 7, False, 0),
    _Column("Age", 6, False, 0),
    _Column("Device", 8, True, 122),
)


class RunsTable(LineView):
    COMPONENT_CLASSES = {
        "runs--header", "runs--name", "runs--project", "runs--number", "runs--quiet", "runs--spark", "runs--cursor",
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

    def __init__(self) -> None:
        super().__init__(id="runs", title="Runs")
        self._rows: list[RunSummary] = []
        self._now = 0.0
        self._key: Path | None = None
        self._shown: dict[int, Text] = {}

    @property
    def cursor(self) -> RunSummary | None:
        """The run the cursor is on."""
        return next((row for row in self._rows if row.path == self._key), None)

    def show(self, rows: Sequence[RunSummary], now: float) -> None:
        """Take the runs in order; only lines that changed are drawn again."""
        before = self.cursor
        self._rows, self._now = list(rows), now
        if self.cursor is None:
            self._key = self._rows[0].path if self._rows else None
        self.resize_to(len(self._rows), sum(column.width + len(GAP) for column in self._columns()) - len(GAP))
        self._draw()
        if self.cursor != before:
            self.post_message(self.Highlighted(self.cursor))

    def on_resize(self) -> None:
        self._shown.clear()
        self._draw()

    def _draw(self) -> None:
        """Compose the lines in view anew and draw those that differ."""
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
        self._key = self._rows[index].path
        self._draw()
        top, page = self.scroll_offset.y, max(1, self.size.height - self.HEADER_LINES)
        if index < top or index >= top + page:
            self.scroll_to(y=index if index < top else index - page + 1, animate=False)
        self.post_message(self.Highlighted(self.cursor))

    def on_click(self, event: events.Click) -> None:
        index = event.y - self.content_offset_y + self.scroll_offset.y
        if 0 <= index < len(self._rows):
            chosen = event.chain == 2 or self._rows[index].path == self._key
            self._go_to(index)
            if chosen and (row := self.cursor) is not None:
                self.post_message(self.Chosen(row))

    @property
    def content_offset_y(self) -> int:
        """Lines between the top of the widget and its first row."""
        return self.gutter.top + self.HEADER_LINES

    # -- drawing ---------------------------------------------------------------------------------------------------

    def _columns(self) -> list[_Column]:
        return [column for column in COLUMNS if column.from_width <= self.size.width]

    def header(self) -> Text:
        titles = [
            fit_left(column.title, column.width) if column.left else fit_right(column.title, column.width)
            for column in self._columns()
        ]
        return self.styled(GAP.join(titles), "runs--header")

    def line(self, index: int) -> Text:
        return self._shown.get(index) or self._compose_line(self._rows[index])

    def _compose_line(self, row: RunSummary) -> Text:
        texts = self._cells(row)
        line = Text(no_wrap=True)
        for column in COLUMNS:
            text, style = texts.pop(0)
            if column.from_width <= self.size.width:
                fit = fit_left if column.left else fit_right
                line.append(fit(text, column.width) + GAP, self._style(style))
        room = self.size.width - line.cell_len
        if room >= NOTE_WIDTH:
            line.append(fit_left(_note(row), room), self._style("runs--quiet"))
        if row.path == self._key:
            line.append(" " * max(0, self.size.width - line.cell_len))
            line.stylize(self._style("runs--cursor"))
        return line

    def _cells(self, row: RunSummary) -> list[tuple[str, str]]:
        """Text and style of every column, in their order."""
        progress = f"{row.done:,.0f}/{row.total:,.0f}" if row.total else "—"
        return [
            (label(row.state), f"state--{tone(row.state)}"),
            (plain(row.id), "runs--name"),
            (plain(row.project), "runs--project"),
            (progress, "runs--number"),
            ("—" if row.score is None else fitted(row.score, ".3f", 5), "runs--number"),
            (sparkline(row.scores, 14), "runs--spark"),
            (_spent(row, self._now), "runs--number"),
            (short_duration(self._now - row.created) if row.created else "—", "runs--quiet"),
            (plain(row.device) or "—", "runs--quiet"),
        ]

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(name, partial=True)


def _spent(row: RunSummary, now: float) -> str:
    if not row.spans:
        return "—"
    usd = cost.usd_spent(row.spans, now)
    return short_duration(cost.seconds_spent(row.spans, now)) if usd is None else money(usd)


def _note(row: RunSummary) -> str:
    """A person's label, else why it ended as it did, else what it runs."""
    return plain(row.label or ("" if is_live(row.state) else row.detail) or row.title)
