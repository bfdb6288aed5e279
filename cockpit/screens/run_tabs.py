"""The tabs of a run. A new one is a line in `TABS`; a pane is made when it is first looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from textual import on
from textual.containers import Container
from textual.widget import Widget

from cockpit.core.metrics.run_metrics import RunMetrics
from cockpit.core.run.model import RunModel
from cockpit.core.settings import SettingsFile
from cockpit.screens.choose_runs import ChooseRunScreen
from cockpit.screens.columns import ColumnsScreen
from cockpit.screens.run_overview import RunOverview
from cockpit.widgets.charts_panel import ChartsPanel
from cockpit.widgets.config_pane import ConfigPane
from cockpit.widgets.events_pane import EventsPane
from cockpit.widgets.log_pane import LogPane
from cockpit.widgets.report_pane import ReportPane
from cockpit.widgets.system_pane import SystemPane
from cockpit.widgets.table_pane import TablePane
from engines.contract.rundir import RunDirectory
from engines.host.machine import Machine


@runtime_checkable
class Looking(Protocol):
    """A pane that looks at the run's files by itself, while it is shown."""

    def activate(self) -> None: ...
    def deactivate(self) -> None: ...


@runtime_checkable
class Showing(Protocol):
    """A pane that shows what the screen has followed."""

    def show(self, model: RunModel) -> None: ...


class ChartsTab(ChartsPanel):
    """All metrics of a run, with its marks."""

    def __init__(self, run: RunDirectory) -> None:
        metrics = RunMetrics(run, run.path.name)
        super().__init__(metrics, metrics.marks, id="charts-pane")

    def activate(self) -> None:
        self.following = True
        self.take_focus()

    def deactivate(self) -> None:
        self.following = False


@dataclass(frozen=True)
class Shown:
    """What panes are made of."""

    run: RunDirectory
    machine: Machine
    settings: SettingsFile


@dataclass(frozen=True)
class TabKind:
    """A tab's name and what it shows."""

    name: str
    make: Callable[[Shown], Widget]
    of_tasks: bool = True
    """Whether work without epochs has it too."""

    @property
    def classes(self) -> str:
        return "" if self.of_tasks else "training"


TABS = (
    TabKind("overview", lambda shown: RunOverview()),
    TabKind("table", lambda shown: TablePane(shown.settings), of_tasks=False),
    TabKind("charts", lambda shown: ChartsTab(shown.run), of_tasks=False),
    TabKind("log", lambda shown: LogPane(shown.run)),
    TabKind("system", lambda shown: SystemPane(shown.run, shown.machine)),
    TabKind("report", lambda shown: ReportPane(shown.run)),
    TabKind("config", lambda shown: ConfigPane(shown.run)),
    TabKind("events", lambda shown: EventsPane()),
)


class RunTabs(Container):
    """The pane of the tab in front; the others wait, hidden."""

    DEFAULT_CSS = "RunTabs { height: 1fr; }"

    def __init__(self, shown: Shown) -> None:
        super().__init__(id="body")
        self._shown = shown
        self._panes: dict[str, Widget] = {}
        self.pane: Widget | None = None

    async def open(self, name: str) -> None:
        """Bring a tab to the front and give it the focus."""
        before, pane = self.pane, self._panes.get(name)
        if pane is not None and pane is before:
            return
        if before is not None:
            before.display = False
            if isinstance(before, Looking):
                before.deactivate()
        if pane is None:
            make = next(kind.make for kind in TABS if kind.name == name)
            pane = self._panes[name] = make(self._shown)
            await self.mount(pane)
        self.pane = pane
        pane.display = True
        self._focus(pane)
        if isinstance(pane, Looking):
            pane.activate()

    def show(self, model: RunModel) -> None:
        """Show what was followed, if that is what the pane in front is for."""
        pane: object = self.pane
        if isinstance(pane, Showing):
            pane.show(model)

    @on(TablePane.ColumnsAsked)
    def _choose_columns(self, message: TablePane.ColumnsAsked) -> None:
        self.app.push_screen(ColumnsScreen(message.all, message.shown), message.pane.choose)

    @on(ConfigPane.OtherAsked)
    def _choose_other(self, message: ConfigPane.OtherAsked) -> None:
        def chosen(others: tuple[RunDirectory, ...] | None) -> None:
            if others:
                message.pane.choose(others[0])

        run = self._shown.run
        self.app.push_screen(ChooseRunScreen(run.path.parent, run), chosen)

    def _focus(self, pane: Widget) -> None:
        inside = (widget for widget in self.screen.focus_chain if pane in widget.ancestors_with_self)
        self.screen.set_focus(next(inside, None))
