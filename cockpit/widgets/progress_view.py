"""How far a task is: one large bar, what it counts, how fast."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.widget import Widget

from cockpit.core.format import bar, count, percent, rate
from cockpit.core.run.model import RunModel
from cockpit.core.text import plain
from cockpit.widgets.heading import literal
from engines.basics.amounts import duration


class ProgressView(Widget):
    COMPONENT_CLASSES = {"progress--bar", "progress--rest", "progress--number", "progress--quiet"}

    def __init__(self) -> None:
        super().__init__(id="progress", classes="pane")
        self.border_title = "Progress"
        self._fraction = 0.0
        self._words = ""

    def show(self, model: RunModel, now: float) -> None:
        """Take the newest progress; draws only if something shown changes."""
        if model.info is not None:
            self.border_title = literal(plain(model.info.title) or "Progress")
        fraction, words = round(model.fraction, 3), _in_words(model, now)
        if (fraction, words) != (self._fraction, self._words):
            self._fraction, self._words = fraction, words
            self.refresh()

    def render(self) -> Text:
        share = f" {percent(self._fraction):>5}"
        width = max(1, self.size.width - len(share))
        filled = bar(self._fraction, width)
        text = Text(no_wrap=True)
        text.append(filled, self._style("bar"))
        text.append("·" * (width - len(filled)), self._style("rest"))
        text.append(f"{share}\n", self._style("number"))
        return text.append(self._words, self._style("quiet"))

    def _style(self, kind: str) -> Style:
        return self.get_component_rich_style(f"progress--{kind}", partial=True)


def _in_words(model: RunModel, now: float) -> str:
    progress, attempt = model.history.progress, model.attempt
    if progress is None or attempt is None:
        return model.status.detail or "nothing counted yet"
    unit = plain(progress.unit)
    words = [f"{count(progress.done)} of {count(progress.total)} {unit}"]
    if (elapsed := progress.time - attempt.started) > 0 and progress.done:
        words.append(rate(progress.done / elapsed, unit))
    if (left := model.seconds_left(now)) is not None:
        words.append(f"{duration(left)} left")
    return "   ".join(words)
