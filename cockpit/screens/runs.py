"""All runs, newest first, live: what is running, how far, how good, what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Footer, Static

from cockpit.core import cost
from cockpit.core.control import Target
from cockpit.core.fleet import Fleet, FleetNews, RunSummary
from cockpit.core.follow import Poller
from cockpit.core.format import money
from cockpit.core.settings import SettingsFile
from cockpit.core.states import Shown
from cockpit.core.text import plain
from cockpit.screens.palette import ActionProvider
from cockpit.screens.start import StartScreen
from cockpit.screens.steering import SteeringScreen
from cockpit.widgets.runs_table import RunsTable
from cockpit.widgets.throttle import Throttle
from engines.contract.rundir import RunDirectory

POLL_SECONDS = 0.25
SHOW_SECONDS = 1.0
COUNTED: tuple[tuple[str, frozenset[Shown]], ...] = (
    ("running", frozenset({"running", "stopping"})),
    ("starting", frozenset({"starting"})),
    ("queued", frozenset({"queued"})),
    ("paused", frozenset({"paused"})),
    ("done", frozenset({"finished", "early-stopped"})),
    ("stopped", frozenset({"stopped", "out-of-budget"})),
    ("failed", frozenset({"failed", "lost", "broken"})),
)
EMPTY = """\
[$quiet]No runs yet in[/] {folder}

  [b $accent]n[/]   start one from a config
  [b $accent]q[/]   leave, then [b]cockpit demo[/]: makes data, trains a small model"""


class RunsScreen(SteeringScreen):
    CSS_PATH = "runs.tcss"
    COMMANDS = {ActionProvider}
    BINDINGS = [
        Binding("enter", "open", "open", id="runs.open", tooltip="Open the run under the cursor"),
        Binding("n", "new", "new run", id="runs.new", tooltip="Start a run from a config"),
        *SteeringScreen.STEERING,
    ]

    @dataclass
    class Open(Message):
        """The person wants to see this run."""

        run: RunDirectory

    @dataclass
    class Looked(Message):
        """The fleet has news."""

        news: FleetNews

    def __init__(self, folder: Path, clock: Callable[[], float], settings: SettingsFile) -> None:
        super().__init__()
        self._fleet = Fleet(folder)
        self._clock, self._settings = clock, settings
        self._runs: dict[Path, RunSummary] = {}
        self._loading = True
        self._throttle = Throttle(self, SHOW_SECONDS, self._show)

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        with Vertical(id="list"):
            yield RunsTable()
            yield Static(EMPTY.format(folder=plain(str(self._fleet.folder)).replace("[", r"\[")), id="empty")
        yield Static(id="detail", markup=False)
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.follow([Poller("runs", self._look)], self.set_interval(SHOW_SECONDS, self._throttle.ask))

    def on_screen_resume(self) -> None:
        self._throttle.ask()

    # -- following -------------------------------------------------------------------------------------------------

    def _look(self) -> float:
        """Runs in the poller's thread."""
        news = self._fleet.poll()
        if news.changed or news.gone or self._loading != news.loading:
            self.post_message(self.Looked(news))
        return 0.0 if news.loading else POLL_SECONDS

    @on(Looked)
    def _take(self, message: Looked) -> None:
        self._loading = message.news.loading
        for summary in message.news.changed:
            self._runs[summary.path] = summary
            self.withdraw_question(summary.path, summary.state)
        for path in message.news.gone:
            self._runs.pop(path, None)
        self._throttle.ask()

    def _show(self) -> None:
        if not self.is_active:
            return  # under another screen every change would paint that one whole
        rows = sorted(self._runs.values(), key=lambda row: (row.created, row.id), reverse=True)
        self.query_one(RunsTable).show(rows, self._clock())
        self.set_class(not rows and not self._loading, "-empty")
        self._show_title(rows)
        self._show_detail()
        self.refresh_keys()

    def _show_title(self, rows: list[RunSummary]) -> None:
        counts = Counter(row.state for row in rows)
        told = [(name, sum(counts[state] for state in states)) for name, states in COUNTED]
        words = " · ".join(f"{number} {name}" for name, number in told if number)
        spent = [usd for row in rows if (usd := cost.usd_spent(row.spans, self._clock())) is not None]
        accent, strong = self.app.theme_variables["accent"], self.app.theme_variables["foreground"]
        title = Text.assemble(("◢ cockpit", f"bold {accent}"), ("   Runs   ", f"bold {strong}"), words or "none")
        if spent:
            title.append(f"   {money(sum(spent))} in all")
        self._update("#title", title)

    def _show_detail(self) -> None:
        row = self.query_one(RunsTable).cursor
        words = [plain(part) for part in (row.label, row.title, row.detail) if part] if row else []
        self._update("#detail", Text(" · ".join(words) or (plain(row.id) if row else "")))

    def _update(self, selector: str, text: Text) -> None:
        """Change a line only where it differs: a repaint costs the connection."""
        line = self.query_one(selector, Static)
        if line.content != text:
            line.update(text, layout=False)

    # -- keys ------------------------------------------------------------------------------------------------------

    def target(self) -> Target | None:
        row = next((table.cursor for table in self.query(RunsTable)), None)  # none yet while the screen is being made
        return None if row is None else Target(RunDirectory(row.path), row.id, row.attempt, row.state, row.is_task)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "open":
            target = self.target()
            return (target is not None and target.state != "broken") or None
        return super().check_action(action, parameters)

    @on(RunsTable.Highlighted)
    def _selected(self) -> None:
        self._show_detail()
        self.refresh_keys()

    def action_open(self) -> None:
        if (target := self.target()) is not None:
            self.post_message(self.Open(target.run))

    @on(RunsTable.Chosen)
    def _chosen(self) -> None:
        if self.check_action("open", ()):
            self.action_open()

    def action_new(self) -> None:
        def started(run: RunDirectory | None) -> None:
            if run is not None:
                self.post_message(self.Open(run))

        self.app.push_screen(StartScreen(), started)
