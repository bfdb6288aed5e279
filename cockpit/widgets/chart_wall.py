"""The charts of a run's overview: loss and score above one another, in a wide pane a wall of more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.containers import Container
from textual.message import Message

from cockpit.core.plot.lines import Member
from cockpit.widgets.metric_chart import Drawing, MetricChart

WIDE, HIGH = 48, 12
"""Of a chart of the wall, at least: its title has three values, and a curve of two lines more has its shape."""
FIRST = ("Loss", "Score")


class ChartWall(Container):
    DEFAULT_CSS = """
    ChartWall {
        layout: vertical;
        height: 1fr;
        #loss { height: 5fr; }
        #score { height: 4fr; }
        &.-wall {
            layout: grid;
            grid-gutter: 0;
            #loss, #score { height: 1fr; }
        }
    }
    """

    class Resized(Message):
        """Another number of charts may have space."""

    def __init__(self) -> None:
        super().__init__(*(_chart(name, id=name.lower()) for name in FIRST), id="wall")

    def on_resize(self) -> None:
        self.post_message(self.Resized())

    @property
    def most(self) -> int:
        """How many charts have space."""
        columns, rows = self.size.width // WIDE, self.size.height // HIGH
        return columns * rows if columns > 1 and rows > 1 else len(FIRST)

    async def show(self, charts: Mapping[str, tuple[Sequence[Member], Drawing]]) -> None:
        """Draw them: loss and score first, as many as have space."""
        there = {chart.name: chart for chart in self.query(MetricChart)}
        shown = list(charts)[: self.most]
        await self.mount(*(_chart(name) for name in shown if name not in there))
        wall = len(shown) > len(FIRST)
        self.set_class(wall, "-wall")
        self.styles.grid_size_columns = self.size.width // WIDE if wall else 1
        for chart in self.query(MetricChart):
            if chart.name not in FIRST:  # whether these have space says the style sheet of the screen
                chart.display = chart.name in shown
            if chart.name in shown:
                chart.show(*charts[chart.name])


def _chart(name: str, id: str | None = None) -> MetricChart:
    chart = MetricChart(name, id=id)
    chart.can_focus = False
    return chart
