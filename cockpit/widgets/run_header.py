"""What a person asks first: which run, is it alive, how far, when done, what does it cost."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.widget import Widget

from cockpit.core.format import bar, count, percent
from cockpit.core.states import is_live, label
from cockpit.core.text import fit_left, plain, run_word
from engines.basics.amounts import duration, money
from engines.runs import spending
from engines.runs.state import STALLED

if TYPE_CHECKING:  # it brings numpy, for which the list of runs need not wait
    from cockpit.core.run.model import RunModel

BAR_WIDTH = 12
LABEL_WIDTH = 24
GAP = "  "
WIDE = 120
"""From here on everything fits one line of the terminal."""


class RunHeader(Widget):
    COMPONENT_CLASSES = {
        "header--app", "header--name", "header--text", "header--quiet", "header--bar", "header--rest",
        "state--live", "state--waiting", "state--done", "state--bad",
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__(id="header")
        self._parts: tuple[tuple[Text, ...], tuple[Text, ...]] = ((Text(),), (Text(),))
        """Who it is and how far it is, each from the longest to the shortest way to say it."""

    def show(self, model: RunModel, now: float) -> None:
        """Take the newest facts; draws only if a character changes."""
        who = self._who(model), self._who(model, dated=False)
        far = (Text(),) if self._reads(model) else (self._how_far(model, now), self._how_far(model, now, bar_width=0))
        parts = who, far
        if parts != self._parts:
            self._parts = parts
            self.refresh()

    def render(self) -> Text:
        """On one line where there is width for it: the date goes first, then the bar; the money stays."""
        whos, fars = self._parts
        wide, room = self.app.size.width >= WIDE, self.size.width
        if not wide:
            who, far = (next((part for part in parts if part.cell_len <= room), parts[-1]) for parts in (whos, fars))
            return Text.assemble(who, "\n   ", far, no_wrap=True, overflow="ellipsis")
        pairs = [(whos[0], fars[0]), (whos[-1], fars[0]), (whos[-1], fars[-1])]
        fits = (pair for pair in pairs if pair[0].cell_len + 3 + pair[1].cell_len <= room)
        who, far = next(fits, pairs[-1])
        left = room - 3 - far.cell_len
        if who.cell_len > left > 0:
            who = who.copy()
            who.truncate(left, overflow="ellipsis")
        return Text.assemble(who, "   ", far, no_wrap=True, overflow="ellipsis")

    @staticmethod
    def _reads(model: RunModel) -> bool:
        """Whether it is not read to its end yet: any state, and any number, would be a guess."""
        return model.reading or (model.info is None and not model.problem)

    def _who(self, model: RunModel, *, dated: bool = True) -> Text:
        text = Text().append("◢ ", self._style("header--app"))
        info = model.info
        if info or model.problem:
            name = plain(info.id) if info and dated else _undated(plain(info.id)) if info else "…"
            text.append(f"{model.host}:{name}" if model.host else name, self._style("header--name"))
        if words := plain(info.label) if info else "":
            text.append(f"{GAP}{fit_left(words, min(cell_len(words), LABEL_WIDTH))}", self._style("header--text"))
        if info and info.parent and not words.startswith("fork of "):
            text.append(f"{GAP}fork of {run_word(info.parent)}", self._style("header--quiet"))
        if self._reads(model):
            return text.append(f"{GAP if info else ''}reading …", self._style("header--quiet"))
        text.append(f"{GAP}{label(model.status.state)}", self._style(f"state--{tone(model.status.state)}"))
        if model.live and (detail := plain(model.status.detail)) not in ("", "training", "working"):
            bad = detail.startswith(STALLED)
            text.append(f"{GAP}{detail}", self._style("state--bad" if bad else "header--quiet"))
        return text

    def _how_far(self, model: RunModel, now: float, *, bar_width: int = BAR_WIDTH) -> Text:
        fraction = model.fraction
        text = Text().append(f"{_progress(model)} ", self._style("header--text"))
        if bar_width:
            filled = bar(fraction, bar_width)
            text.append(filled, self._style("header--bar"))
            text.append("·" * (bar_width - len(filled)), self._style("header--rest"))
        text.append(f" {percent(fraction):>5}", self._style("header--text"))
        left = model.seconds_left(now)
        if left is not None:
            text.append(f"{GAP}ETA {duration(left)}", self._style("header--quiet"))
        text.append(f"{GAP}{_spent(model, now)}", self._style("header--text"))
        return text

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(name, partial=True)


def _undated(run_id: str) -> str:
    """`controls-amber` of `controls-20261127-100000-amber`; another id as it is."""
    return re.sub(r"-\d{8}-\d{6}-", "-", run_id)


def tone(state: str) -> str:
    """The component class of a state: live, waiting, done or bad."""
    match state:
        case "running":
            return "live"
        case "queued" | "starting" | "paused" | "stopping" | "out-of-budget" | "stale":
            return "waiting"
        case "finished" | "early-stopped" | "stopped" | "reading":
            return "done"
        case _:
            return "bad"


def _progress(model: RunModel) -> str:
    history = model.history
    if model.is_task:
        progress = history.progress
        return f"{count(progress.done)}/{count(progress.total)} {plain(progress.unit)}" if progress else "…"
    total = history.planned
    return f"epoch {history.done:,}/{total:,}" if total else "epoch —"


def _spent(model: RunModel, now: float) -> str:
    """Money where the machine has a price, else time."""
    spans = model.spans
    usd = spending.usd_spent(spans, now)
    if usd is None:
        return f"ran {duration(spending.seconds_spent(spans, now))}" if spans else ""
    price = next(span.usd_per_hour for span in reversed(spans) if span.usd_per_hour > 0)
    budget = f" of ${model.budget_usd:,g}" if model.budget_usd else ""
    rate = f" · {money(price)}/h" if is_live(model.status.state) else ""
    return f"{money(usd)}{budget}{rate}"
