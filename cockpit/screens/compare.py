"""Runs side by side: a table of any number of them, and of up to eight lines their curves, values and settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Static, Tab, Tabs

from cockpit.core.compare.drawn import Comparison, DrawnLines, Slot
from cockpit.core.compare.lines import Key, Line
from cockpit.core.compare.model import CompareModel
from cockpit.core.compare.table import Choice, LineTable, turned, word
from cockpit.core.compare.tables import config_table, values_table
from cockpit.core.metrics.overlay import MOST, by_metric
from cockpit.core.poller import Poller
from cockpit.core.runs.chosen import ChosenRuns
from cockpit.core.runs.fleet import Fleet
from cockpit.core.runs.summary import RunSummary
from cockpit.core.settings import SettingsFile
from cockpit.screens.columns import ColumnsScreen
from cockpit.screens.keeping import Keeping
from cockpit.screens.order_by import OrderByScreen
from cockpit.screens.palette import ActionProvider
from cockpit.screens.polling import PollingScreen
from cockpit.screens.working import in_thread
from cockpit.widgets.charts_panel import ChartsPanel
from cockpit.widgets.compare_legend import CompareLegend
from cockpit.widgets.compare_lines import CompareLines
from cockpit.widgets.compare_table import CompareTable
from cockpit.widgets.footer import Footer
from cockpit.widgets.heading import heading
from cockpit.widgets.throttle import Throttle
from engines.contract.rundir import RunDirectory

WIDE = 160
"""Columns from which on all parts are there at once."""
POLL_SECONDS = 0.5
SHOW_SECONDS = 1.0
PARTS = ("table", "charts", "values", "config")
AROUND_LINES = 3
"""Rows of the table beside its lines: frame and titles."""


class CompareScreen(PollingScreen):
    CSS_PATH = "compare.tcss"
    COMMANDS = {ActionProvider}
    AUTO_FOCUS = "CompareLines"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
    BINDINGS = [
        Binding("escape", "back", "runs", id="compare.runs", tooltip="Back to the list of runs, their marks kept"),
        *(
            Binding(str(place), f"part('{name}')", name, show=False, id=f"compare.{name}", tooltip=f"Show {name}")
            for place, name in enumerate(PARTS, 1)
        ),
    ]

    class Back(Message):
        """The user wants the list of runs."""

    @dataclass
    class Open(Message):
        """The user wants to see one of them alone."""

        run: RunDirectory

    @dataclass
    class Polled(Message):
        """The model has a new table."""

        table: LineTable

    class Kept(Message):
        """Words on a run, or a baseline, were written."""

    def __init__(
        self, runs: Sequence[RunDirectory], fleet: Fleet, settings: SettingsFile, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__()
        self._runs = tuple({run.path: run for run in runs}.values())
        self._settings = settings
        self.model = CompareModel(self._runs, fleet, clock)
        self.source = DrawnLines()
        self._table = LineTable()
        """The newest that was taken in: the model's own changes in another thread."""
        self._slots: list[Slot | None] = [None] * MOST
        self._picked = False
        """Whether lines to draw were chosen, by the user or once all runs were read."""
        self._throttle = Throttle(self, SHOW_SECONDS, self._show)
        self._follower = Poller("compare", self._poll)
        self.chosen = ChosenRuns(lambda: self._summary)
        self._keeping = Keeping(self, self.chosen, fleet.folder, lambda: self.post_message(self.Kept()))

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Tabs(*(Tab(name.title(), id=f"tab-{name}") for name in PARTS))
        yield CompareLines()
        yield CompareLegend()
        with Horizontal(id="parts"):
            yield ChartsPanel(self.source, grouping=by_metric, id="charts")
            with Vertical(id="tables"):
                yield CompareTable(id="values", title="Values")
                yield CompareTable(id="config", title="Config")
        yield Footer()

    @property
    def panel(self) -> ChartsPanel:
        return self.query_one(ChartsPanel)

    @property
    def lines(self) -> CompareLines:
        return self.query_one(CompareLines)

    @property
    def _summary(self) -> RunSummary | None:
        """Of the run under the cursor; None on a group."""
        line = self.lines.cursor
        return line.entries[0].summary if line is not None and not line.is_group else None

    def on_mount(self) -> None:
        self.query_one(Tabs).can_focus = False
        self.model.choose(Choice(columns=self._settings.value.compare_columns))
        self.follow(self._follower)
        self._show()

    def on_screen_suspend(self) -> None:
        super().on_screen_suspend()
        self.panel.following = False

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        self.panel.following = True
        self._throttle.ask()

    # -- following -------------------------------------------------------------------------------------------------

    def _poll(self) -> float:
        """Runs in the poller's thread."""
        if self.model.poll():
            self.post_message(self.Polled(self.model.table))
        return 0.0 if self.model.loading else POLL_SECONDS

    @on(Polled)
    def _take(self, message: Polled) -> None:
        table = self._table = message.table
        there = {line.key: line for line in table.lines}
        if not self._picked and not self.model.loading:
            self._picked = True
            first = [line for line in table.lines if not line.inside and _can_be_drawn(line)][:MOST]
            self._slots = [*map(Slot, first), *[None] * (MOST - len(first))]
            self._throttle.hurry()
        self._slots = [Slot(there[slot.line.key]) if slot and slot.line.key in there else None for slot in self._slots]
        self._draw()
        self._throttle.ask()

    def _draw(self) -> None:
        self.source.draw(self._slots)
        self.panel.look_at_once()

    @on(ChartsPanel.Grown)
    def _grown(self) -> None:
        self._throttle.ask()

    # -- showing ---------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        if not self.is_active or not self.query(CompareLegend):
            return  # under another screen every change would paint that one whole; a closing one has no widgets
        table, drawn = self._table, [(place, slot.line) for place, slot in enumerate(self._slots) if slot]
        self.lines.show(table, {line.key: place for place, line in drawn})
        self.lines.say(table.note.replace("[", r"\["))
        self.query_one("#title", Static).update(heading("Compare", (self._about(table, len(drawn)), "$quiet")))
        self.query_one(CompareLegend).show([(place, *_in_words(line, table)) for place, line in drawn])
        compared: Comparison = self.source.comparison
        self.query_one("#values", CompareTable).show(values_table(compared), compared.places)
        self.query_one("#config", CompareTable).show(config_table(compared), compared.places)
        self._share_room()

    def _about(self, table: LineTable, drawn: int) -> str:
        """`40 runs in 8 lines · 8 drawn`, or how many are read."""
        runs, lines = len(self._runs), sum(not line.inside for line in table.lines)
        if self.model.loading:
            read = sum(entry.summary is not None for entry in self.model.compared.entries)
            return f"reading, {read:,} of {runs:,} runs"
        return f"{runs:,} runs" + (f" in {lines:,} lines" if lines < runs else "") + f" · {drawn} drawn"

    def _share_room(self) -> None:
        """On a wide screen the table has up to two fifths of the height; below it half of the width is for tables.

        Up to two thirds, where that lets every drawn line be seen.
        """
        (width, height), wide = self.size, self.size.width >= WIDE
        rows = len(self.lines.table.lines) + AROUND_LINES
        self.lines.styles.height = min(max(rows, AROUND_LINES + 1), height * 2 // 5) if wide else "1fr"
        needed = self.query_one("#values", CompareTable).needs_width
        tables = min(max(needed, width // 2), width * 2 // 3) if wide else "1fr"
        self.query_one("#tables").styles.width = tables

    def on_resize(self) -> None:
        if self.query(CompareTable):
            self._share_room()

    @on(Tabs.TabActivated)
    def _open_part(self, event: Tabs.TabActivated) -> None:
        part = str(event.tab.id).removeprefix("tab-")
        for name in PARTS:
            self.set_class(name == part, f"-{name}")
        self._focus(part)
        self.call_after_refresh(self._show_charts)

    def _show_charts(self) -> None:
        """They had no size to be drawn in while they were hidden."""
        self.panel.following = True

    def _focus(self, part: str) -> None:
        if part == "charts":
            self.panel.take_focus()
        elif part == "table":
            self.lines.focus()
        else:
            self.query_one(f"#{part}").focus()

    # -- keys ------------------------------------------------------------------------------------------------------

    def action_part(self, name: str) -> None:
        """In a wide terminal all parts are there: only the focus moves."""
        tabs = self.query_one(Tabs)
        if tabs.active == f"tab-{name}":
            self._focus(name)
        tabs.active = f"tab-{name}"

    def action_back(self) -> None:
        self.post_message(self.Back())

    @on(CompareLines.Asked)
    def _asked(self, message: CompareLines.Asked) -> None:
        line = message.line
        match message.what:
            case "draw":
                self._toggle(line)
            case "open" if line.is_group:
                choice = self.model.choice
                self._choose(replace(choice, open=choice.open ^ {line.key}))
            case "open" if line.gone:
                self.notify("The run was deleted.", severity="warning", markup=False)
            case "open":
                self.post_message(self.Open(line.entries[0].run))
            case _ if line.is_group:
                self.notify("These are several runs: enter shows them; choose one of those.", markup=False)
            case "pin":
                self._keeping.pin()
            case "describe":
                self._keeping.describe()

    def _toggle(self, line: Line) -> None:
        """Draw a line in the first free place, or free its place."""
        keys: list[Key | None] = [slot.line.key if slot else None for slot in self._slots]
        if line.key in keys:
            self._slots[keys.index(line.key)] = None
        elif None not in keys:
            self.notify(f"{MOST} lines are drawn, and more cannot be told apart: take one off.", severity="warning")
            return
        else:
            self._slots[keys.index(None)] = Slot(line)
        self._picked = True
        self._draw()
        self._show()

    def _choose(self, choice: Choice) -> None:
        """Show something else: at once, for a key was pressed."""
        self.model.choose(choice)
        self._follower.hurry()

    @on(CompareLines.FoldAsked)
    def _fold(self) -> None:
        self._picked = False  # other lines than before: the best of them are drawn
        self._choose(replace(self.model.choice, apart=not self.model.choice.apart, open=frozenset()))

    @on(CompareLines.OrderAsked)
    def _order(self, message: CompareLines.OrderAsked) -> None:
        def take(source: str | None) -> None:
            if source is not None:
                self._choose(replace(self.model.choice, order=turned(source, self._table.order)))

        if message.source:
            take(message.source)
        else:
            columns = [(title.source, title.text) for title in self._table.titles]
            self.app.push_screen(OrderByScreen(columns, self._table.order), take)

    @on(CompareLines.ColumnsAsked)
    def _columns(self) -> None:
        table = self._table

        def take(sources: list[str] | None) -> None:
            if sources is None:
                return
            chosen = sources or [column.source for column in table.values]
            kept = {**self._settings.value.compare_columns, table.projects: chosen}
            self._choose(replace(self.model.choice, columns=kept))
            in_thread(self, lambda: self._settings.change(compare_columns=kept))

        self.app.push_screen(ColumnsScreen(table.values, table.shown), take)

    @on(Kept)
    def _look_again(self) -> None:
        self._follower.hurry()


def _can_be_drawn(line: Line) -> bool:
    return any(entry.summary is not None and entry.summary.state != "broken" for entry in line.entries)


def _in_words(line: Line, table: LineTable) -> tuple[str, str, str]:
    """Name, state and score of a line, as the table has them."""
    place = next(place for place, other in enumerate(table.lines) if other.key == line.key)
    cells = {title.source: cell for title, cell in zip(table.titles, table.cells[place], strict=True)}
    score = cells.get("score")
    return line.name, word("state", line), (score.text + score.aside).strip() if score and score.text != "—" else ""
