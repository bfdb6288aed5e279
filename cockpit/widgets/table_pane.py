"""All columns of the epoch table, chosen and ordered by the person, and how it goes inside long epochs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message

from cockpit.core.run.model import RunModel
from cockpit.core.settings import SettingsFile
from cockpit.core.table.columns import FoundColumns, chosen
from cockpit.core.table.rows import LEVELS, LONG_LEVEL, is_long, steps_between
from cockpit.core.table.table import TableText
from cockpit.widgets.epoch_table import BEST, EpochTable
from engines.contract.events import Epoch, RunStarted
from engines.contract.spec import Column

MARK = f"{BEST} "
NO_MARK = " " * len(MARK)


class FullTable(EpochTable):
    """Its first column, and before it the mark of the best, stay while the others move sideways."""

    DEFAULT_CSS = """
    FullTable {
        height: 1fr;
        .table--step { color: $faint; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="table")

    def fitting(self) -> TableText:
        """All of them: here they move sideways."""
        return TableText(self._columns, *self._last)

    def use(self, columns: Sequence[Column]) -> None:
        super().use(columns)
        ends = self._text.ends
        self.ends = [*(len(MARK) + end for end in ends[:-1]), *ends[-1:]]  # in which the mark is counted
        self.fixed = self.ends[0] + 1 if self.ends else 0

    def header(self) -> Text:
        return self.styled(f"{NO_MARK}{self._text.header()}", "table--header")

    def line(self, index: int) -> Text:
        row = self.rows[index]
        best = self.is_best(row)
        mark = self.styled(MARK if best else NO_MARK, "table--mark")
        return mark.append_text(self.cells(row, best=best))

    def subtitle(self, model: RunModel) -> str:
        return " · ".join(filter(None, (super().subtitle(model), "+ - steps")))

    def top_epoch(self) -> Epoch | None:
        """The first epoch in view."""
        return next((row for row in self.rows[self.scroll_offset.y :] if isinstance(row, Epoch)), None)

    def bring_to_top(self, epoch: Epoch | None) -> None:
        """Have that epoch be the first in view again, whatever came between the epochs."""
        place = next((place for place, row in enumerate(self.rows) if row is epoch), None)
        if place is not None and not self.following:
            self.scroll_to(y=place, animate=False, force=True)


class TablePane(Vertical):
    BINDINGS = [
        Binding("v", "columns", "cols", id="table.columns", tooltip="Choose and reorder columns"),
        Binding("plus,equals_sign", "rows(1)", "steps", show=False, id="table.more", key_display="+",
                tooltip="More rows of steps between epochs; automatic where an epoch takes over two minutes"),
        Binding("minus", "rows(-1)", "fewer", show=False, id="table.fewer", key_display="-",
                tooltip="Fewer rows of steps, or none"),
    ]  # fmt: skip

    @dataclass
    class ColumnsAsked(Message):
        """The person wants to choose columns; `choose` of the pane takes what they chose."""

        pane: TablePane
        all: Sequence[Column]
        shown: Sequence[Column]

    def __init__(self, settings: SettingsFile) -> None:
        super().__init__(id="table-pane")
        self._settings = settings
        self._model: RunModel | None = None
        self._started: RunStarted | None = None
        self._found = FoundColumns(())
        self._level: int | None = None
        """Of `LEVELS`, once a person has chosen one."""

    def compose(self) -> ComposeResult:
        yield FullTable()

    @property
    def table(self) -> FullTable:
        return self.query_one(FullTable)

    @property
    def _project(self) -> str:
        info = self._model.info if self._model else None
        return info.project if info else ""

    @property
    def level(self) -> int:
        if self._level is not None or self._model is None:
            return self._level or 0
        return LONG_LEVEL if is_long(self._model.history, self._model.steps) else 0

    @property
    def every(self) -> int:
        """Steps from one row of them to the next; 0 without any."""
        return steps_between(self._started.steps_per_epoch, LEVELS[self.level]) if self._started else 0

    def show(self, model: RunModel) -> None:
        """Take what was followed."""
        self._model = model
        started, epochs = model.history.started, list(model.history.epochs.values())
        announced = started is not self._started and started is not None
        if announced and started is not None:
            self._started, self._found = started, FoundColumns(started.columns)
        if self._found.look(epochs) or announced:
            self._use_columns()
        self.table.take(model, model.steps, every=self.every)

    @property
    def _chosen(self) -> Sequence[Column]:
        return chosen(self._found.all, self._settings.value.table_columns.get(self._project, ()))

    def _use_columns(self) -> None:
        self.table.use(self._chosen)

    # -- keys ------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "columns":
            return self._started is not None or None
        if action == "rows":
            level = self.level + (1 if parameters[0] == 1 else -1)
            return (self._started is not None and 0 <= level < len(LEVELS)) or None
        return super().check_action(action, parameters)

    def action_rows(self, by: int) -> None:
        top = self.table.top_epoch()
        self._level = self.level + by
        if self._model is not None:
            self.show(self._model)
        self.table.bring_to_top(top)
        self.refresh_bindings()

    def action_columns(self) -> None:
        self.post_message(self.ColumnsAsked(self, self._found.all, self._chosen))

    def choose(self, sources: list[str] | None) -> None:
        """Keep the columns chosen; none: all of them, as before anyone chose."""
        if sources is None:
            return
        columns = {**self._settings.value.table_columns, self._project: sources}
        self.run_worker(
            lambda: self._settings.change(table_columns={name: kept for name, kept in columns.items() if kept}),
            thread=True, group="settings", name="columns",
        )  # fmt: skip
        self.table.use(chosen(self._found.all, sources))
        if self._model is not None:
            self.show(self._model)
