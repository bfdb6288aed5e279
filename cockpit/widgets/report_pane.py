"""The tables that a run wrote at its end: a list of their names, the chosen one aligned, its note under it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from cockpit.core.run.report import NamedTable, no_report, read_report
from cockpit.core.text import plain
from cockpit.core.text_table import BETWEEN, TextTable
from cockpit.widgets.heading import literal
from cockpit.widgets.lines_or_sentence import LinesOrSentence
from cockpit.widgets.pane import Pane
from engines.basics.errors import UserError
from engines.contract.rundir import RunDirectory
from engines.runs.state import RunReader

POLL_SECONDS = 0.5
WIDE = 110
"""Cells from which on the list of tables stands beside the table."""


class TableLines(LinesOrSentence):
    COMPONENT_CLASSES = {"report--header", "report--row"}
    DEFAULT_CSS = """
    TableLines {
        height: 1fr;
        .report--header { color: $quiet; }
        .report--row { color: $foreground; }
    }
    """
    FOLLOWS = False
    HEADER_LINES = 1

    def __init__(self) -> None:
        super().__init__(id="report-table", title="Report")
        self._table = TextTable((), ())

    def show(self, title: str, table: TextTable, instead: str) -> None:
        """Take a table; `instead` of one, a sentence."""
        self._table = table
        self.ends = table.ends
        self.fixed = self.ends[0] + len(BETWEEN) if len(self.ends) > 1 else 0
        self.fill(len(table.rows), table.width, instead)
        self.entitle(title)
        self.scroll_home(animate=False)

    def header(self) -> Text:
        return self.styled(BETWEEN.join(self._table.header), "report--header")

    def line(self, index: int) -> Text:
        if self.sentence:
            return super().line(index)
        return self.styled(BETWEEN.join(self._table.rows[index]), "report--row")

    def copyable(self) -> str:
        """The whole table as Markdown; else the sentence."""
        return " ".join(self.sentence) or "\n".join(self._table.markdown)


class ReportPane(Pane):
    DEFAULT_CSS = """
    ReportPane {
        #report-names { height: auto; max-height: 6; background: $surface; }
        #report-names.-none { display: none; }
        #report-note { height: auto; max-height: 4; padding: 0 2; color: $quiet; }
        #report-side { height: auto; }
        #report-right { height: 1fr; }
        &.-beside {
            layout: horizontal;
            #report-side { width: 30; height: 1fr; }
            #report-names { height: 1fr; max-height: 100%; }
            #report-right { width: 1fr; }
        }
    }
    """
    BINDINGS = [
        Binding("right_square_bracket", "other(1)", "next table", id="report.next", tooltip="Next table",
                key_display="]"),
        Binding("left_square_bracket", "other(-1)", "previous table", show=False, id="report.before",
                tooltip="Previous table", key_display="["),
    ]  # fmt: skip

    @dataclass
    class Found(Message):
        """The report is there, was replaced, or cannot be read."""

        tables: Sequence[NamedTable]
        problem: str
        inherited: str = ""
        """What is to be known of a fork that has not beaten its parent."""

    def __init__(self, run: RunDirectory) -> None:
        super().__init__(id="report-pane")
        self._run = run
        self._reader = RunReader(run)
        self._read_at = -1
        self._told = ""
        self._tables: Sequence[NamedTable] = ()
        self._inherited = ""

    def compose(self) -> ComposeResult:
        names = OptionList(id="report-names", classes="pane -none", markup=False, compact=True)
        names.border_title = "Tables"
        with Vertical(id="report-side"):
            yield names
        with Vertical(id="report-right"):
            yield TableLines()
            yield Static(id="report-note", markup=False)

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= WIDE, "-beside")

    def copyable(self) -> str:
        """The table beside the list of tables."""
        return self.query_one(TableLines).copyable()

    # -- in the poller's thread ------------------------------------------------------------------------------------

    def look(self) -> float:
        try:
            changed = self._run.report.stat().st_mtime_ns
        except OSError:
            changed = 0
        problem = "" if changed else no_report(self._run, self._reader.status().state)
        if (changed, problem) != (self._read_at, self._told):
            self._read_at, self._told = changed, problem
            self.post_message(self._found(problem))
        return POLL_SECONDS

    def _found(self, problem: str) -> Found:
        if problem:
            return self.Found((), problem)
        try:
            tables = read_report(self._run)
        except (UserError, OSError) as error:
            return self.Found((), str(error))
        self._reader.poll()
        inherited = self._reader.history.inherited
        none = "The report has no tables: its project writes none."
        return self.Found(tables, "" if tables else none, inherited)

    # -- showing ---------------------------------------------------------------------------------------------------

    @on(Found)
    def _take(self, message: Found) -> None:
        names = self.query_one(OptionList)
        chosen = names.highlighted or 0
        self._tables, self._inherited = message.tables, message.inherited
        names.set_class(len(self._tables) < 2, "-none")
        self.query_one("#report-side").display = len(self._tables) > 1
        if len(self._tables) < 2 and names.has_focus:
            self.query_one(TableLines).focus()
        names.set_options(Option(literal(table.name)) for table in self._tables)
        if self._tables:
            names.highlighted = min(chosen, len(self._tables) - 1)
            self._show(names.highlighted)
        else:
            self.query_one(TableLines).show("Report", TextTable((), ()), plain(message.problem))
            self.query_one("#report-note", Static).update("")
        self.refresh_bindings()

    def _show(self, index: int) -> None:
        table = self._tables[index]
        title = plain(table.name).replace("[", r"\[")
        view = self.query_one(TableLines)
        view.show(title, TextTable.of(table.columns, table.rows), "" if table.rows else "no rows")
        view.say(f"{len(table.rows)} rows" if len(table.rows) > 1 else "")
        self.query_one("#report-note", Static).update(
            Text(plain(" · ".join(filter(None, (self._inherited, table.note)))))
        )

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        if event.option_index < len(self._tables):
            self._show(event.option_index)

    # -- keys ------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return len(self._tables) > 1 or None if action == "other" else super().check_action(action, parameters)

    def action_other(self, by: int) -> None:
        names = self.query_one(OptionList)
        names.highlighted = ((names.highlighted or 0) + by) % len(self._tables)
