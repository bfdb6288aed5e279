"""What happened in a run, in words: a kind to choose by, a word, a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cockpit.core.format import number
from cockpit.core.run.model import Notable, StageBegan, time_of
from cockpit.core.run.orders import Order
from cockpit.core.text import plain
from engines.basics.amounts import duration, size
from engines.contract import commands as cmd
from engines.contract.events import Alert, Checkpoint, Epoch, Phase, RunStarted
from engines.runs.state import describe_end

Kind = Literal["commands", "alerts", "checkpoints", "best", "starts", "phases"]
Choice = Literal["events", Kind]
CHOICES: tuple[Choice, ...] = ("events", "commands", "alerts", "checkpoints", "best", "starts", "phases")
"""`events` are all but phases: of those each epoch has three."""


@dataclass(frozen=True)
class Told:
    """One line: `style` is its colour's name, `word` says the same without colour."""

    kind: Kind
    style: str
    word: str
    text: str
    time: float

    def among(self, choice: Choice) -> bool:
        return self.kind == choice or (choice == "events" and self.kind != "phases")


def tell(notable: Notable) -> Told:
    """`notable` in plain words."""
    kind, style, word, text = _words(notable)
    return Told(kind, style, word, plain(text), time_of(notable))


def _words(notable: Notable) -> tuple[Kind, str, str, str]:
    match notable:
        case Order():
            edit = isinstance(notable.command, cmd.Edit)
            style = "refused" if notable.refused else "edit" if edit else "order"
            return (
                "commands",
                style,
                "edit" if edit else "command",
                f"{cmd.describe(notable.command)}  {notable.outcome}",
            )
        case Alert():
            return "alerts", notable.level, notable.level, notable.text
        case Checkpoint():
            return "checkpoints", "quiet", "saved", _saved(notable)
        case Epoch():
            return "best", "best", "best", f"epoch {notable.epoch:,}, score {number(notable.score)}"
        case StageBegan():
            return "starts", "start", "stage", f"{notable.name}, from epoch {notable.epoch:,}"
        case Phase():
            return (
                "phases",
                "quiet",
                "phase",
                " · ".join(filter(None, [notable.phase, notable.detail, _at(notable.step)])),
            )
        case RunStarted():
            return "starts", "start", "start", f"{_how_begun(notable)} on {notable.device}"
        case attempt:
            end = attempt.ended
            detail = describe_end(end) if end else ""
            bad = end is not None and end.reason == "failed"
            reason = end.reason if end else "running"
            return "starts", "error" if bad else "start", "end", f"{reason}: {detail}" if detail else reason


def _how_begun(event: RunStarted) -> str:
    """A first attempt that does not begin at step 0 is a fork's; older logs do not name its parent."""
    if event.parent or (event.attempt == 1 and event.resumed_step):
        return f"forked from {event.parent or 'another run'} at step {event.resumed_step:,}"
    return f"resumed from step {event.resumed_step:,}" if event.resumed_step else "started"


def _saved(event: Checkpoint) -> str:
    took = f" in {duration(event.seconds)}" if event.seconds >= 1 else ""
    return f"{', '.join(event.files)} · epoch {event.epoch:,} · {_at(event.step)} · {size(event.size)}{took}"


def _at(step: int) -> str:
    return f"step {step:,}"
