"""One line of numbers as they come: the newest step, what became of the last order, and the machine in short."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.widget import Widget

from cockpit.core.format import count, fitted, rate
from cockpit.core.run.advice import Advice
from cockpit.core.run.model import RunModel
from cockpit.core.run.orders import Order
from cockpit.widgets.machine_view import in_short
from engines.contract import commands as cmd
from engines.host.machine import Reading

GAP = "   "


class StatusLine(Widget):
    COMPONENT_CLASSES = {"status--number", "status--quiet", "status--order", "status--refused"}

    def __init__(self) -> None:
        super().__init__(id="status")
        self._numbers: list[Text] = []
        self._rest: list[Text] = []

    def show(self, model: RunModel, reading: Reading | None, advice: Advice | None, order: Order | None) -> None:
        """Take the newest numbers; draws only if a character changes. An order in flight hides all to the right.

        `reading` and `advice` are None where another pane in view shows them.
        """
        rest = [self._order(order)] if order else [*self._machine(reading), *self._advice(advice, bool(reading))]
        numbers = self._newest(model)
        if (numbers, rest) != (self._numbers, self._rest):
            self._numbers, self._rest = numbers, rest
            self.refresh()

    def render(self) -> Text:
        """Numbers to the left, the rest to the right, each as far as it fits; what became of an order always."""
        width = self.size.width
        right = Text()
        left = Text(no_wrap=True, overflow="ellipsis")
        needed = sum(part.cell_len for part in self._numbers)
        for place, part in enumerate(self._rest):
            if place == 0 or needed + right.cell_len + part.cell_len <= width:
                right.append_text(part)
        for part in self._numbers:
            if left.cell_len + part.cell_len + right.cell_len <= width:
                left.append_text(part)
        left.append(" " * max(width - left.cell_len - right.cell_len, 0))
        return left.append_text(right)

    def _newest(self, model: RunModel) -> list[Text]:
        steps = model.steps
        if not steps.newest:
            return []
        pairs = [("step ", count(steps.newest))]
        if (loss := steps.last("loss")) is not None:
            pairs.append(("loss ", fitted(loss, ".4f", 7)))
        if speed := model.speed:
            pairs.append(("", rate(speed, "steps")))
        quiet, number = self._style("quiet"), self._style("number")
        return [Text.assemble((name, quiet), (f"{value}{GAP}", number)) for name, value in pairs]

    def _machine(self, reading: Reading | None) -> list[Text]:
        words = in_short(reading) if reading else []
        return [
            Text().append(f" · {word}" if place else word, self._style("quiet")) for place, word in enumerate(words)
        ]

    def _advice(self, advice: Advice | None, beside: bool) -> list[Text]:
        """The first to be left out: the events have it too."""
        return [] if advice is None else [Text(f"{' · ' if beside else ''}{advice}", self._style("quiet"))]

    def _order(self, order: Order) -> Text:
        text = Text().append(f"{cmd.describe(order.command)} ", self._style("order"))
        return text.append(order.outcome, self._style("refused" if order.refused else "number"))

    def _style(self, kind: str) -> Style:
        return self.get_component_rich_style(f"status--{kind}", partial=True)
