"""The machine that a run is on: bars for now, a row for each rank, and charts of the hours in which the run went on."""

from __future__ import annotations

from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import Static

from cockpit.core.metrics.system_metrics import SystemMetrics
from cockpit.core.run.rank_rows import rank_rows
from cockpit.widgets.charts_panel import ChartsPanel
from cockpit.widgets.machine_view import MachineView
from cockpit.widgets.pane import Pane
from engines.contract.rank_loads import RankLoad, read_loads
from engines.contract.rundir import RunDirectory
from engines.host.machine import Machine, Reading

POLL_SECONDS = 2.0
NOTHING = "No machine history: the run has just started, or was made by another program or an older version."


class SystemPane(Pane):
    DEFAULT_CSS = """
    SystemPane {
        MachineView { display: block; height: auto; min-height: 5; max-height: 40%; }
        #system-nothing { display: none; height: auto; padding: 0 2; color: $quiet; }
        #system-ranks { display: none; height: auto; max-height: 30%; padding: 0 2; overflow-y: auto; }
        #system-charts { height: 1fr; }
        &.-ranks #system-ranks { display: block; }
        &.-nothing #system-nothing { display: block; }
    }
    """

    @dataclass
    class Measured(Message):
        """The machine was read."""

        reading: Reading
        missing: bool
        ranks: list[RankLoad]

    def __init__(self, run: RunDirectory, machine: Machine) -> None:
        super().__init__(id="system-pane")
        self._run, self._machine = run, machine
        self._metrics = SystemMetrics(run)

    def compose(self) -> ComposeResult:
        yield MachineView()
        yield Static(id="system-ranks", markup=False)
        yield Static(NOTHING, id="system-nothing", markup=False)
        yield ChartsPanel(self._metrics, axis="time", smoothing=0.0, id="system-charts")

    @property
    def charts(self) -> ChartsPanel:
        return self.query_one(ChartsPanel)

    def on_mount(self) -> None:
        self.charts.following = self.active

    def activate(self) -> None:
        super().activate()
        if self.is_mounted:
            self.charts.following = True

    def deactivate(self) -> None:
        super().deactivate()
        self.charts.following = False

    def look(self) -> float:
        reading = self._machine.read(self._run.path)
        self.post_message(self.Measured(reading, self._metrics.missing, read_loads(self._run)))
        return POLL_SECONDS

    @on(Measured)
    def _take(self, message: Measured) -> None:
        self.query_one(MachineView).show(message.reading)
        self.set_class(message.missing, "-nothing")
        self.set_class(bool(message.ranks), "-ranks")
        self.query_one("#system-ranks", Static).update("\n".join(rank_rows(message.ranks)))
