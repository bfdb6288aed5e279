"""Commands: what a person asks of a running engine, one JSON object a line in `commands.jsonl`.

Each carries an id and the attempt it is meant for, so a stale `stop` cannot end a resumed run.
"""

from __future__ import annotations

import secrets
import time
from typing import Annotated, Literal, TypeVar

import msgspec


def new_id() -> str:
    return secrets.token_hex(6)


class Order(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """What every command carries."""

    attempt: int
    id: str = msgspec.field(default_factory=new_id)
    time: float = msgspec.field(default_factory=time.time)
    at_step: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Wait for this step before applying; at once where absent."""
    at_epoch: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Wait until so many epochs are done, too: the boundaries before and after an evaluation have the same step."""

    def due(self, step: int, epoch: int) -> bool:
        """Whether it is to be applied before step `step` with `epoch` epochs done."""
        return (self.at_step or 0) <= step and (self.at_epoch or 0) <= epoch


class Pause(Order, frozen=True, kw_only=True, tag="pause"):
    """Hold before the next step, keeping everything in memory."""


class Continue(Order, frozen=True, kw_only=True, tag="continue"):
    """End a pause."""


class Stop(Order, frozen=True, kw_only=True, tag="stop"):
    """Save and leave."""

    when: Literal["after_step", "after_epoch"] = "after_step"


class SetLossWeights(Order, frozen=True, kw_only=True, tag="set_loss_weights"):
    """Change some or all loss weights."""

    weights: dict[str, float]


class SetLrScale(Order, frozen=True, kw_only=True, tag="set_lr_scale"):
    """Multiply the whole learning-rate schedule by `scale` (not cumulative)."""

    scale: float


class SetEpochs(Order, frozen=True, kw_only=True, tag="set_epochs"):
    """Change how many epochs the run has in all."""

    epochs: int


class SetPatience(Order, frozen=True, kw_only=True, tag="set_patience"):
    """Change how many epochs without a better score end the run."""

    patience: int


class StopEarly(Order, frozen=True, kw_only=True, tag="stop_early"):
    """Finish the epoch and end as if the patience had run out there: evaluated, the best kept and exported.

    No edit: whoever resumes the run wants it to go on.
    """


class SaveCheckpoint(Order, frozen=True, kw_only=True, tag="save_checkpoint"):
    """Save last.pt now."""


class Evaluate(Order, frozen=True, kw_only=True, tag="evaluate"):
    """Evaluate now; the result is logged and changes neither best nor early stopping."""


class MeasureGradients(Order, frozen=True, kw_only=True, tag="measure_gradients"):
    """Measure each head's gradient on the shared parameters; the result is an event, the training stays as it is."""


Steer = Pause | Continue | Stop | StopEarly
Look = SaveCheckpoint | Evaluate | MeasureGradients
"""Commands that leave the training as it is."""
Edit = SetLossWeights | SetLrScale | SetEpochs | SetPatience
"""Commands that change the training itself: applied again at their steps after a resume."""
Command = Steer | Edit | Look
Kind = TypeVar("Kind", bound=Command)

decoder: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
encode = msgspec.json.Encoder().encode


def left_of(edit: Kind, newer: Command) -> Kind | None:
    """`edit` without what `newer` sets too: the loss weight of the same head, or the same other setting."""
    match edit, newer:
        case SetLossWeights(weights=weights), SetLossWeights(weights=taken):
            others = {head: weight for head, weight in weights.items() if head not in taken}
            return msgspec.structs.replace(edit, weights=others) if others else None
        case _:
            return None if type(edit) is type(newer) else edit


def describe(command: Command) -> str:
    """The command in words, for tables and logs."""
    match command:
        case SetLossWeights(weights=weights):
            return "loss weights " + ", ".join(f"{head} {weight:g}" for head, weight in weights.items())
        case SetLrScale(scale=scale):
            return f"learning rate × {scale:g}"
        case SetEpochs(epochs=epochs):
            return f"epochs {epochs}"
        case SetPatience(patience=patience):
            return f"patience {patience}"
        case Stop(when=when):
            return when.replace("_", " ").replace("after", "stop after")
        case SaveCheckpoint():
            return "save a checkpoint"
        case StopEarly():
            return "stop early after this epoch"
        case Evaluate():
            return "evaluate now"
        case MeasureGradients():
            return "measure the gradients"
        case Pause():
            return "pause"
        case Continue():
            return "continue"
