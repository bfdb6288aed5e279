"""What happened in a run beside its epochs: commands with their outcome, alerts, starts and resumes."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from cockpit.core.model import Notable, Order, RunModel
from cockpit.core.text import plain
from cockpit.core.times import clock, zone
from cockpit.widgets.line_view import LineView
from engines.contract import commands as cmd
from engines.contract.events import Alert


class EventsView(LineView):
    COMPONENT_CLASSES = {
        "events--time", "events--text", "events--edit", "events--order", "events--refused",
        "events--info", "events--warning", "events--error", "events--start",
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__(id="events", title="Events")
        self._lines: list[Notable] = []

    def show(self, model: RunModel) -> None:
        """Take what happened so far; draws only if something is new."""
        lines = model.notable
        if lines == self._lines:
            return
        self._lines = lines
        self.resize_to(len(lines), max((self.line(index).cell_len for index in range(len(lines))), default=0))
        self.refresh()
        self.say(f"times in {zone()}" if lines else "none yet")

    def line(self, index: int) -> Text:
        notable = self._lines[index]
        kind, word, text = _describe(notable)
        when = notable.command.time if isinstance(notable, Order) else notable.time
        line = Text(no_wrap=True)
        line.append(f"{clock(when)} ", self._style("time"))
        line.append(f"{word:<8}", self._style(kind))
        line.append(plain(text), self._style("refused" if kind == "refused" else "text"))
        return line

    def _style(self, kind: str) -> Style:
        return self.get_component_rich_style(f"events--{kind}", partial=True)


def _describe(notable: Notable) -> tuple[str, str, str]:
    """Colour, word and text of a line."""
    match notable:
        case Order():
            refused = notable.answer is not None and notable.answer.state == "refused"
            edit = isinstance(notable.command, cmd.Edit)
            kind = "refused" if refused else "edit" if edit else "order"
            return kind, "edit" if edit else "order", f"{cmd.describe(notable.command)}  {notable.outcome}"
        case Alert():
            return notable.level, notable.level, notable.text
        case started:
            how = f"resumed from step {started.resumed_step:,}" if started.resumed_step else "started"
            return "start", "start", f"{how} on {started.device}"
