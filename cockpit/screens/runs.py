"""All runs, live: what is running, how far, how good, what it costs; to filter, order, mark, compare and delete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from cockpit.core import titles
from cockpit.core.poller import Poller
from cockpit.core.run.control import Action
from cockpit.core.runs import removal, run_order
from cockpit.core.runs.away import Lookout
from cockpit.core.runs.baseline import Pins
from cockpit.core.runs.chosen import ChosenRuns
from cockpit.core.runs.fleet import PIECE, Fleet, FleetNews
from cockpit.core.runs.listed import ListedRuns
from cockpit.core.settings import SettingsFile
from cockpit.core.states import is_live
from cockpit.core.text import plain
from cockpit.core.typed import program
from cockpit.notice import Notice
from cockpit.screens import queueing, steering
from cockpit.screens.changing_keys import ChangingKeysScreen
from cockpit.screens.hosts import HostNews
from cockpit.screens.keeping import Keeping
from cockpit.screens.order import OrderScreen
from cockpit.screens.palette import ActionProvider
from cockpit.screens.polling import PollingScreen
from cockpit.screens.queueing import Queueing
from cockpit.screens.steering import Steering
from cockpit.screens.working import in_thread
from cockpit.widgets.away_panel import AwayPanel
from cockpit.widgets.filter_line import FilterLine
from cockpit.widgets.footer import Footer
from cockpit.widgets.runs_detail import RunsDetail
from cockpit.widgets.runs_table import RunsTable
from cockpit.widgets.runs_title import RunsTitle
from cockpit.widgets.throttle import Throttle
from engines.contract.rundir import RunDirectory
from engines.host.queue import Where

POLL_SECONDS = 0.25
SHOW_SECONDS = 1.0
KEYS_SECONDS = 0.25
"""The footer is built again when keys are greyed, 50 ms: not for every line that a held key passes."""
KEEP_SECONDS = 60.0
AGES_SECONDS = 30.0
HINTS = ("runs.mark", "runs.compare", "runs.delete", "runs.label", "runs.filter", "runs.order")
"""Keys that do not fit into the footer at 80 columns: they are at the edge of the list."""
EMPTY = """\
[$quiet]No runs yet in[/] $folder

  [b $accent]n[/]   start one from a config
  [b $accent]q[/]   quit, then run [b]$program demo[/] (makes data, trains a model: 3 min)"""


class RunsScreen(PollingScreen, ChangingKeysScreen):
    CSS_PATH = "runs.tcss"
    COMMANDS = {ActionProvider}
    AUTO_FOCUS = "RunsTable"  # the first widget that can have it is the filter, even while nobody sees that
    CHANGING = (*steering.CHANGING, "open", "compare", "delete", "close")
    BINDINGS = [
        Binding("enter", "open", "open", id="runs.open", tooltip="Open the run under the cursor"),
        Binding("n", "new", "new", id="runs.new", tooltip="Start a run from a config"),
        *steering.KEYS,
        steering.FORK,
        Binding("c", "compare", "compare", show=False, id="runs.compare", tooltip="Compare the marked runs"),
        Binding("space", "mark", "mark", show=False, id="runs.mark", tooltip="Mark or unmark the run, then move down"),
        Binding(
            "asterisk,ctrl+a", "mark_all", "mark all", show=False, id="runs.mark-all", tooltip="Mark all runs shown"
        ),
        Binding(
            "slash", "filter", "filter", show=False, id="runs.filter", tooltip="Filter the runs, as tag:good, kind:task"
        ),
        Binding("o", "order", "order", show=False, id="runs.order", tooltip="Sort the runs: newest, by score, …"),
        Binding("e", "describe", "label", show=False, id="runs.label", tooltip="Give the run a label, notes and tags"),
        Binding(
            "b",
            "pin",
            "baseline",
            show=False,
            id="runs.baseline",
            tooltip="Pin or unpin the run as baseline",
        ),
        Binding("d", "delete", "delete", show=False, id="runs.delete", tooltip="Delete the marked runs, or this one"),
        *queueing.KEYS,
        Binding(
            "escape", "close", "close", show=False, id="runs.close", tooltip="Close the filter, or clear all marks"
        ),
    ]

    class Filled(Message):
        """All runs are on the screen."""

    @dataclass
    class Open(Message):
        """The user wants to see this run."""

        run: RunDirectory

    @dataclass
    class New(Message):
        """The user wants to start a run."""

    @dataclass
    class Compare(Message):
        """The user wants to see these runs side by side."""

        runs: tuple[RunDirectory, ...]

    @dataclass
    class Looked(Message):
        """The fleet has news."""

        news: FleetNews

    @dataclass
    class Ordered(Message):
        """Another order is in force."""

    def __init__(self, folder: Path, clock: Callable[[], float], settings: SettingsFile) -> None:
        super().__init__()
        self._hosts = HostNews(self)
        self.fleet = Fleet(folder, PIECE, self._hosts.folders)
        self._pins = Pins(folder)
        self._clock, self._settings = clock, settings
        self._lookout = Lookout(folder, clock)
        self._listed = ListedRuns()
        self._loading = True
        self._any_live, self._shown_at = False, 0.0
        self._throttle = Throttle(self, SHOW_SECONDS, self._show)
        self._keys_throttle = Throttle(self, KEYS_SECONDS, self.refresh_keys)
        self._title, self._table, self._filter, self._away = RunsTitle(), RunsTable(), FilterLine(), AwayPanel()
        self._detail = RunsDetail(self.key_of)
        self._keeper = Poller("seen", self._keep)
        self._tidied = False
        self.chosen = ChosenRuns(lambda: self._table.cursor)
        self._steering = Steering(self, lambda: self.chosen.target)
        self._queueing = Queueing(self, self.chosen)
        self._keeping = Keeping(self, self.chosen, folder, self.fleet.scan_now)

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._filter
        with Vertical(id="list"):
            yield self._table
            yield Static(
                Content.from_markup(EMPTY, folder=plain(str(self.fleet.folder)), program=program()), id="empty"
            )
        yield self._detail
        yield self._away
        yield Footer()

    def on_mount(self) -> None:
        self.follow(Poller("runs", self._look), tick=self.set_interval(SHOW_SECONDS, self._second_passed))
        self._table.focus()
        self._keeper.start()

    def on_screen_resume(self) -> None:
        self._throttle.ask()

    def on_unmount(self) -> None:
        self._keeper.stop()
        self._lookout.keep(self.fleet)

    # -- following -------------------------------------------------------------------------------------------------

    def _look(self) -> float:
        """Runs in the poller's thread."""
        news, pins, hosts = self.fleet.poll(), self._pins.poll(), self._hosts.poll()
        if news.changed or news.gone or pins or hosts or self._loading != news.loading:
            self.post_message(self.Looked(news))
        return 0.0 if news.loading else POLL_SECONDS

    def _keep(self) -> float:
        """Runs in a thread of its own, also while another screen is shown."""
        if self._tidied:
            self._lookout.keep(self.fleet)
        else:
            removal.remove_leftovers(self.fleet.folder)
            self._tidied = True
        return KEEP_SECONDS

    @on(Looked)
    def _take(self, message: Looked) -> None:
        for path, alert in self._listed.take(message.news):  # beyond the screen, on which it shows
            self.post_message(Notice(path.name, alert))
        for summary in message.news.changed:
            self._steering.stopping.note(summary.path, summary.state)
        self.chosen.marked.difference_update(message.news.gone)
        self._hosts.notify()
        self._arrange()
        if self._loading and not message.news.loading:
            self._loading = False
            if (away := self._lookout.away(self.chosen.rows)) is not None:
                self._away.show(away)
            self._throttle.hurry()  # all that is there, not a second later
            self.call_after_refresh(lambda: self.post_message(self.Filled()))
        else:
            self._throttle.ask()

    def _arrange(self) -> None:
        now = self._clock()
        self.chosen.rows = self._listed.ordered(self._settings.value.runs_sort, now)
        self._any_live = any(is_live(row.state) for row in self.chosen.rows)
        self._title.take(self.chosen.rows, now)

    # -- showing ---------------------------------------------------------------------------------------------------

    def _second_passed(self) -> None:
        """What the clock alone changes: money and ages of live runs; without one, only ages of minutes and more."""
        if self._any_live or self._clock() - self._shown_at >= AGES_SECONDS:
            self._throttle.ask()

    def _show(self) -> None:
        if not self.is_active or not self.query(RunsDetail):
            return  # under another screen every change would paint that one whole; a closing one has no widgets
        self._shown_at = self._clock()
        chosen = self._filter.filter
        rows, table = run_order.matching(self.chosen.rows, chosen), self._table
        order, descending = run_order.parse(self._settings.value.runs_sort)
        table.show(
            rows, self._clock(), order=(order.name, descending), marked=self.chosen.marked, pinned=self._pins.paths
        )
        shown = f"{len(rows):,} of {len(self.chosen.rows):,}" if chosen.active else f"{len(self.chosen.rows):,}"
        by = ("newest first" if descending else "oldest first") if order is run_order.DEFAULT else f"by {order.name}"
        runs = "run" if len(self.chosen.rows) == 1 else "runs"
        table.entitle(
            " · ".join((f"{shown} {runs}", by, *([f"{len(self.chosen.marked)} marked"] if self.chosen.marked else [])))
        )
        if len(hints := self.hints(HINTS)) == len(HINTS):  # not while a person types
            table.say("   ".join(hints))
        self.set_class(not self.chosen.rows and not self._loading, "-empty")
        if self.focused is None:  # the table loses it when the list is empty
            self._table.focus()
        self._title.show(self._clock(), reading=self._loading, hosts=self._hosts.words)
        self._show_detail()
        self.refresh_keys()

    def terminal_title(self) -> str:
        return titles.of_runs(self.chosen.rows)

    def _show_detail(self) -> None:
        row = self._table.cursor
        baseline = row is not None and row.path in self._pins.paths
        hint = self._queueing.hint() if row is not None and row.queued else ""
        self._detail.show(row, self._filter.filter, is_baseline=baseline, hint=hint)

    @on(RunsTable.Highlighted)
    def _moved(self) -> None:
        self._show_detail()
        self._keys_throttle.ask()

    # -- what can be done ------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        chosen = self.chosen
        match action, parameters:
            case "steer", _:
                return self._steering.check(parameters)
            case "move_queued", (where,):
                return self._queueing.check_move(earlier=where in ("up", "first"))
            case "cancel_queued", _:
                return self._queueing.check_cancel()
            case "open", _:
                return (chosen.one is not None and chosen.one.state != "broken") or None
            case (("mark" | "mark_all" | "describe" | "pin"), _):
                return chosen.one is not None or None
            case (("compare" | "delete"), _):
                return not self.why_not(action, parameters) or None
            case "close", _:
                return self._filter.there or self._away.there or bool(chosen.marked)
        return True

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        match action:
            case "steer":
                return self._steering.why_not(parameters)
            case "compare":
                return self.chosen.why_not_compare()
            case "delete":
                return self.chosen.why_not_delete()
        return ""

    # -- doing it --------------------------------------------------------------------------------------------------

    @on(RunsTable.Chosen)
    def _chosen(self) -> None:
        if self.check_action("open", ()):
            self.action_open()

    def action_open(self) -> None:
        if (row := self.chosen.one) is not None:
            self.post_message(self.Open(RunDirectory(row.path)))

    def action_new(self) -> None:
        self.post_message(self.New())

    def action_compare(self) -> None:
        rows = self.chosen.compared
        if left_out := len(self.chosen.meant) - len(rows):
            self.notify(f"{left_out} marked {'task is' if left_out == 1 else 'tasks are'} left out.", markup=False)
        self.post_message(self.Compare(tuple(RunDirectory(row.path) for row in rows)))

    def action_steer(self, action: Action) -> None:
        self._steering.do(action)

    def action_move_queued(self, where: Where) -> None:
        self._queueing.move(where)

    def action_cancel_queued(self) -> None:
        self._queueing.cancel()

    def action_describe(self) -> None:
        self._keeping.describe()

    def action_pin(self) -> None:
        self._keeping.pin()

    def action_delete(self) -> None:
        self._keeping.delete()

    def action_mark(self) -> None:
        if (row := self.chosen.one) is not None:
            self.chosen.marked ^= {row.path}
            self._table.action_move(1)
            self._show()

    def action_mark_all(self) -> None:
        """All that are shown; when they are marked already, none of them."""
        shown = {row.path for row in self._table.rows}
        marked = self.chosen.marked
        self.chosen.marked = marked - shown if shown <= marked else marked | shown
        self._show()

    def action_filter(self) -> None:
        self._filter.open()

    @on(FilterLine.Changed)
    def _filtered(self) -> None:
        self._show()

    @on(FilterLine.Done)
    def _back_to_list(self) -> None:
        self._show()

    def action_close(self) -> None:
        """One thing at a press, the nearest first."""
        line, panel = self._filter, self._away
        if line.there:
            line.action_close()
        elif panel.there:
            panel.close()
        else:
            self.chosen.marked.clear()
        self._show()

    def action_order(self) -> None:
        self.app.push_screen(OrderScreen(self._settings.value.runs_sort), self._take_order)

    @on(RunsTable.OrderAsked)
    def _order_by_title(self, message: RunsTable.OrderAsked) -> None:
        self._take_order(run_order.choose(message.order, self._settings.value.runs_sort))

    def _take_order(self, written: str | None) -> None:
        if written is None:
            return

        def change() -> None:
            self._settings.change(runs_sort=written)
            self.post_message(self.Ordered())

        in_thread(self, change)

    @on(Ordered)
    def _reorder(self) -> None:
        self._arrange()
        self._show()
