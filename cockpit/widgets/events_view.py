"""What happened in a run beside its epochs, a line each, the newest in view."""

from __future__ import annotations

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from cockpit.core.run.advice import Advice
from cockpit.core.run.model import Notable, RunModel
from cockpit.core.run.notable import CHOICES, Choice, Told, tell
from cockpit.core.text_filter import TextFilter
from cockpit.core.times import clock, zone
from cockpit.widgets.line_view import LineView

WORD_WIDTH = 8
BEFORE_TEXT = len("20:41:07 ") + WORD_WIDTH


class EventsView(LineView):
    COMPONENT_CLASSES = {
        "events--time", "events--text", "events--edit", "events--order", "events--refused", "events--quiet",
        "events--info", "events--warning", "events--error", "events--start", "events--best",
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__(id="events", title="Events")
        self._known: list[Notable] = []
        self._told: list[Told] = []
        self._lines: list[Told] = []
        self._choice: Choice = CHOICES[0]
        self._sought = TextFilter()
        self._advice: Advice | None = None

    def show(self, model: RunModel) -> None:
        """Take what happened so far; only what is new is put into words, and drawn."""
        known, advice = model.notable, model.advice
        if known is self._known and advice == self._advice:
            return
        self._advice = advice
        before, self._known = self._known, known
        same = next((n for n, (old, new) in enumerate(zip(before, known, strict=False)) if old is not new), None)
        kept = min(len(before), len(known)) if same is None else same
        self._told[kept:] = [tell(notable) for notable in known[kept:]]
        self._choose()

    def choose(self, choice: Choice, sought: TextFilter) -> None:
        """Show only these kinds, and of those what a search lets through."""
        self._choice, self._sought = choice, sought
        self._choose()

    def _choose(self) -> None:
        lines = [told for told in self._told if told.among(self._choice) and self._sought.lets_through(_searched(told))]
        self.say(self._subtitle(len(lines)))
        if lines == self._lines:
            return
        self._lines = lines
        self.resize_to(len(lines), BEFORE_TEXT + max((cell_len(told.text) for told in lines), default=0))
        self.refresh()

    def _subtitle(self, shown: int) -> str:
        if not self._told:
            return "none yet"
        if self._choice == CHOICES[0] and not self._sought.active:
            return " · ".join([*([str(self._advice)] if self._advice else []), f"times in {zone()}"])
        return f"{self._choice}: {shown:,} of {len(self._told):,} · times in {zone()}"

    def line(self, index: int) -> Text:
        told = self._lines[index]
        line = Text(no_wrap=True)
        line.append(f"{clock(told.time)} ", self._style("time"))
        line.append(f"{told.word:<{WORD_WIDTH}}", self._style(told.style))
        line.append(told.text, self._style("refused" if told.style == "refused" else "text"))
        return line

    def _style(self, kind: str) -> Style:
        return self.get_component_rich_style(f"events--{kind}", partial=True)


def _searched(told: Told) -> str:
    return f"{clock(told.time)} {told.word} {told.text}"
