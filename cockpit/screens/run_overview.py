"""The first tab of a run: epochs, curves, machine, events and log, as many of them as fit."""

from __future__ import annotations

from dataclasses import replace

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Vertical

from cockpit.core.run.model import RunModel
from cockpit.screens.run_charts import overview_charts
from cockpit.widgets.ascii_filter import glyphs_of
from cockpit.widgets.chart_wall import ChartWall
from cockpit.widgets.epoch_table import EpochTable
from cockpit.widgets.events_view import EventsView
from cockpit.widgets.log_view import LogView
from cockpit.widgets.machine_view import MachineView
from cockpit.widgets.progress_view import ProgressView
from engines.host.machine import Reading

WIDE = 120
"""Columns from which on panes stand side by side."""
LEFT_WIDTH = 80
"""Of events and log on a wide screen, at least."""


class RunOverview(Container):
    def __init__(self) -> None:
        super().__init__(id="overview")
        self._model: RunModel | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="left"):
            yield EpochTable()
            yield ProgressView()
            yield EventsView()
            yield LogView()
        with Vertical(id="right"):
            yield ChartWall()
            yield MachineView()

    @property
    def shows_machine(self) -> bool:
        """Whether the machine fits."""
        return self.query_one(MachineView).display

    @property
    def shows_events(self) -> bool:
        """Whether the events fit."""
        return self.query_one(EventsView).display

    @on(ChartWall.Resized)
    async def _wall_resized(self) -> None:
        await self._show_charts()

    def show(self, model: RunModel) -> None:
        """Take what was followed: tables and charts, for once a second."""
        self._model = model
        table = self.query_one(EpochTable)
        table.show(model)
        self.query_one("#left").styles.width = self._left_width(table.needs_width, is_task=model.is_task)
        self.query_one(EventsView).show(model)
        self.query_one(LogView).show(model.log)
        self.call_later(self._show_charts)

    async def _show_charts(self) -> None:
        if self._model is None or not self.is_attached:  # asked for before its screen was left
            return
        wall, glyphs = self.query_one(ChartWall), glyphs_of(self.app)
        charts = overview_charts(self._model, wall.most)
        await wall.show({name: (group, replace(drawing, glyphs=glyphs)) for name, (group, drawing) in charts.items()})

    def show_numbers(self, model: RunModel, reading: Reading | None, now: float) -> None:
        """Take what changes fast."""
        if reading is not None:
            self.query_one(MachineView).show(reading)
        if model.is_task:
            self.query_one(ProgressView).show(model, now)

    def _left_width(self, needed: int, *, is_task: bool) -> int | str:
        """On a wide screen half for the table, or what it needs up to two thirds; the charts get the rest."""
        width = self.screen.size.width
        wide = width >= WIDE and not is_task
        return min(max(needed, LEFT_WIDTH, width // 2), width * 2 // 3) if wide else "1fr"
