"""The epoch table of a run: numbers right-aligned in fixed places, the best epoch marked, the newest in view."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from cockpit.core.format import number
from cockpit.core.metrics.steps import Steps
from cockpit.core.metrics.weight_sets import WeightSets
from cockpit.core.run.model import RunModel
from cockpit.core.table.columns import FoundColumns
from cockpit.core.table.rows import Row, TableRows
from cockpit.core.table.table import TableText
from cockpit.core.text_table import markdown
from cockpit.widgets.line_view import LineView
from engines.contract.events import Epoch, RunStarted
from engines.contract.spec import Column
from engines.runs.history import History

BEST = "★"
FRAME = 5
"""Cells beside a row: border, padding and scrollbar."""
USUAL_WIDTH = 80
"""Of a pane that shows the columns of the project."""


class EpochTable(LineView):
    COMPONENT_CLASSES = {
        "table--header", "table--row", "table--new", "table--best", "table--mark", "table--bad", "table--step",
        "table--weights",
    }  # fmt: skip
    HEADER_LINES = 1

    def __init__(self, *, id: str = "epochs") -> None:
        super().__init__(id=id, title="Epochs")
        self._columns: tuple[Column, ...] = ()
        self._text = TableText(())
        self._last = (0, 0)
        """The last epoch and step there will be, as far as is known."""
        self._started: RunStarted | None = None
        self._found = FoundColumns(())
        self._rows = TableRows()
        self._weights = WeightSets()
        self._newest: Epoch | None = None
        self._best: Epoch | None = None

    def show(self, model: RunModel) -> None:
        """Take the rows in force; only lines that changed are drawn again."""
        started = model.history.started
        if started is not self._started and started is not None:
            self._started, self._found = started, FoundColumns(started.columns)
            self.use(started.columns)
        if self._found.look(list(model.history.epochs.values())):
            self.use(self._columns)
        self.take(model, model.steps, every=0)

    def use(self, columns: Sequence[Column]) -> None:
        """Show these columns from now on."""
        self._columns = tuple(columns)
        self._text = self.fitting()
        self.ends = self._text.ends
        self.refresh()

    def fitting(self) -> TableText:
        """The columns that have space, in a wide pane others too than those of the project."""
        width = self.outer_size.width
        more = self._found.all if width > USUAL_WIDTH else ()
        return TableText.within(self._columns, width - FRAME, *self._last, more=more)

    def on_resize(self) -> None:
        if self.fitting().columns != self._text.columns:
            self.use(self._columns)
            self.resize_to(len(self.rows), self._text.width)

    def take(self, model: RunModel, steps: Steps, *, every: int) -> None:
        """Take the epochs in force, and a row of the steps after every so many (0: none)."""
        history = model.history
        newest_before, best_before, count = self._newest, self._best, self.count
        self._newest, self._best = history.newest, history.best
        if (last := _last(history)) != self._last:
            self._last = last
            self.use(self._columns)
        changed = self._rows.update(list(history.epochs.values()), steps, every)
        rows = self._rows.rows
        self._weights.note(row for row in rows[changed:] if isinstance(row, Epoch))
        if (legend := self._weights.legend()) != (str(self.tooltip) if self.tooltip else ""):
            self.tooltip = Text(legend) if legend else None
        self.resize_to(len(rows), self._text.width)
        self.refresh_indices(changed, max(len(rows), count))
        others = {id(row) for row in (newest_before, self._newest) if newest_before is not self._newest}
        others |= {id(row) for row in (best_before, self._best) if best_before is not self._best}
        if others:
            for index, row in enumerate(rows[:changed]):
                if id(row) in others:
                    self.refresh_index(index)
        self.say(self.subtitle(model))

    @property
    def rows(self) -> list[Row]:
        return self._rows.rows

    @property
    def needs_width(self) -> int:
        """Cells the widget needs to show every column."""
        return TableText(self._columns, *self._last).width + FRAME

    def subtitle(self, model: RunModel) -> str:
        if self._best is None or self._newest is None or model.history.started is None:
            return model.history.inherited or ("no epoch yet" if self._newest is None else "")
        parts = [f"best {self._best.epoch}", f"score {number(self._best.score)}"]
        parts += _against(model.baseline, self._best.score)
        if patience := model.history.patience:
            parts.append(f"patience {self._newest.epoch - self._best.epoch}/{patience}")
        if words := self._weights.words(self._newest):
            parts.append(words)
        return " · ".join(parts)

    def header(self) -> Text:
        return self.styled(self._text.header(), "table--header")

    def copyable(self) -> str:
        """The epochs and columns that are shown, as Markdown."""
        cells = [[cell.strip() for cell in self._text.cells(row)] for row in self.rows if isinstance(row, Epoch)]
        return "\n".join(markdown([column.title for column in self._text.columns], cells))

    def line(self, index: int) -> Text:
        row = self.rows[index]
        best = self.is_best(row)
        line = self.cells(row, best=best)
        if best:
            line.append(f" {BEST}", self.get_component_rich_style("table--mark", partial=True))
        return line

    def cells(self, row: Row, *, best: bool) -> Text:
        """A row's numbers in the style of its kind."""
        if not isinstance(row, Epoch):
            return self.styled(" ".join(self._text.cells(row)), "table--step")
        name = "best" if best else "new" if row is self._newest else "row"
        mark = self._weights.mark(row)
        line = self.styled(" ".join(self._text.cells(row, mark)), f"table--{name}")  # a piece costs 40 bytes a line
        if mark and (place := self._text.mark_place) is not None:
            line.stylize(self.get_component_rich_style("table--weights", partial=True), place, place + 1)
        line.highlight_words(["nan"], self.get_component_rich_style("table--bad", partial=True))
        return line

    def is_best(self, row: Row) -> bool:
        return isinstance(row, Epoch) and self._best is not None and row.epoch == self._best.epoch


def _last(history: History) -> tuple[int, int]:
    """The last epoch and step, of the plan or beyond; no step where the plan says none, as of other programs."""
    planned = history.planned * history.started.steps_per_epoch if history.started else 0
    reached = history.newest.step if history.newest else 0
    return max(history.planned, history.done), max(planned, reached) if planned else 0


def _against(baseline: tuple[float | None, str], score: float | None) -> list[str]:
    """`+0.012 vs slate`."""
    other, words = baseline
    if other is None or score is None:
        return [words] if words and other is None else []
    return [f"{score - other:+.3f} vs {words}"]
