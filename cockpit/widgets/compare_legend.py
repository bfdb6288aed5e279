"""The runs of a comparison: the sign each has in the charts, how it stands; lines are hidden and shown here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from cockpit.core.format import four_digits
from cockpit.core.metrics.compare import RunFacts
from cockpit.core.states import GLYPHS
from cockpit.core.text import fit_apart, fit_left
from cockpit.widgets.ascii_filter import glyphs_of

BESIDE_NAME = 54
"""Cells for what stands before and behind a run's name."""
LEAST_NAME = 24


class CompareLegend(OptionList):
    BINDINGS = [
        Binding("enter", "select", "open run", id="compare.open", tooltip="Open the run under the cursor"),
        Binding("space", "hide", "hide, show", id="compare.hide", tooltip="Hide the run's lines, or show them again"),
    ]

    @dataclass
    class Toggled(Message):
        """The lines of the run at this place, from 0, are to be hidden, or shown again."""

        place: int

    def __init__(self) -> None:
        self._words: list[Content] = []
        self._shown: tuple[Sequence[RunFacts], Collection[int]] = ((), ())
        super().__init__(id="legend", markup=False, compact=True)  # which tells already of a style

    def show(self, runs: Sequence[RunFacts], hidden: Collection[int]) -> None:
        """Only lines that differ are painted again."""
        self._shown = runs, hidden
        room = max(self.scrollable_content_region.width - BESIDE_NAME, LEAST_NAME)
        names = fit_apart([run.name for run in runs], min(max(cell_len(run.name) for run in runs), room))
        words = [
            self._line(place, run, name, place in hidden)
            for place, (run, name) in enumerate(zip(runs, names, strict=True))
        ]
        if len(self._words) != len(words):
            self.set_options(Option(line) for line in words)
            self.highlighted = 0
        else:
            for place, (old, new) in enumerate(zip(self._words, words, strict=True)):
                if not old.is_same(new):
                    self.replace_option_prompt_at_index(place, new)
        self._words = words

    def on_resize(self) -> None:
        if self._words:
            self.show(*self._shown)

    def notify_style_update(self) -> None:
        """In ASCII the charts have other signs."""
        super().notify_style_update()
        if self._words:
            self.call_after_refresh(lambda: self.show(*self._shown))  # with what is newest then

    def _line(self, place: int, run: RunFacts, name: str, hidden: bool) -> Content:
        sign = glyphs_of(self.app).runs[place]
        match run.state:
            case "gone":
                state = "✖ gone"
            case _:
                state = f"{GLYPHS[run.state]} {run.state}"
        done = f"{run.epochs:,}" if run.epochs or run.planned else ""
        done += f"/{run.planned:,}" if run.planned else ""
        best = f"  ★ {four_digits(run.best[1]).strip():<7} ep {run.best[0]}" if run.best is not None else ""
        return Content.assemble(
            (f"{sign} ", "$faint" if hidden else f"$run-{place + 1}"),
            (name, "$faint" if hidden else "$foreground"),
            (f"  {fit_left(state, 15)} {done:>9}", "$quiet"),
            (best, "$best"),
            ("  hidden" if hidden else "", "$quiet"),
        )

    def action_hide(self) -> None:
        if self.highlighted is not None:
            self.post_message(self.Toggled(self.highlighted))
