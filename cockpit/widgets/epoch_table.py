"""The epoch table of a run: numbers right-aligned in fixed places, the best epoch marked, the newest in view."""

from __future__ import annotations

from rich.text import Text

from cockpit.core.format import number
from cockpit.core.model import RunModel
from cockpit.core.table import TableText
from cockpit.widgets.line_view import LineView
from engines.contract.events import Epoch, RunStarted

BEST = "★"


class EpochTable(LineView):
    COMPONENT_CLASSES = {"table--header", "table--row", "table--new", "table--best", "table--mark", "table--bad"}
    HEADER_LINES = 1

    def __init__(self) -> None:
        super().__init__(id="epochs", title="Epochs")
        self._text = TableText(())
        self._started: RunStarted | None = None
        self._rows: list[Epoch] = []
        self._best: Epoch | None = None

    def show(self, model: RunModel) -> None:
        """Take the rows in force; only lines that changed are drawn again."""
        history = model.history
        if history.started is not self._started and history.started is not None:
            self._started = history.started
            self._text = TableText(history.started.columns)
            self.refresh()
        before, best_before = self._rows, self._best
        self._rows, self._best = list(history.epochs.values()), history.best
        self.resize_to(len(self._rows), self._text.width)
        for index in _changed(before, self._rows, best_before, self._best):
            self.refresh_index(index)
        self.say(self._subtitle(model))

    @property
    def needs_width(self) -> int:
        """Cells the widget needs to show every column: the row, its padding, border and scrollbar."""
        return self._text.width + 5

    def _subtitle(self, model: RunModel) -> str:
        if self._best is None or self._started is None:
            return "no epoch yet" if not self._rows else ""
        parts = [f"best {self._best.epoch}", f"score {number(self._best.score)}"]
        if self._started.patience:
            parts.append(f"patience {self._rows[-1].epoch - self._best.epoch}/{self._started.patience}")
        return " · ".join(parts)

    def header(self) -> Text:
        return self.styled(self._text.header(), "table--header")

    def line(self, index: int) -> Text:
        row = self._rows[index]
        best = self._best is not None and row.epoch == self._best.epoch
        name = "best" if best else "new" if index == len(self._rows) - 1 else "row"
        line = self.styled(" ".join(self._text.cells(row)), f"table--{name}")  # one piece: each costs 40 bytes a line
        line.highlight_words(["nan"], self.get_component_rich_style("table--bad", partial=True))
        if best:
            line.append(f" {BEST}", self.get_component_rich_style("table--mark", partial=True))
        return line

    def row_text(self, index: int) -> str:
        """What the line shows, for tests and for copying."""
        return self.line(index).plain


def _changed(before: list[Epoch], now: list[Epoch], best_before: Epoch | None, best: Epoch | None) -> list[int]:
    """Indices of lines that look different now."""
    changed = [index for index, row in enumerate(now) if index >= len(before) or before[index] is not row]
    if len(now) != len(before) and before:
        changed.append(len(before) - 1)  # no longer the newest
    if best_before is not best:
        changed += [index for index, row in enumerate(now) if row is best_before or row is best]
    return changed
