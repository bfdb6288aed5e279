"""Events: what an engine says of itself, one JSON object a line in `events.jsonl`.

Numbers that are not finite are written as null and named in `nonfinite`.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from engines.basics.line_writer import LineWriter
from engines.contract.commands import Command
from engines.contract.spec import Column

PhaseName = Literal["queued", "loading", "compiling", "training", "evaluating", "saving", "paused", "working"]
EndReason = Literal["finished", "early-stopped", "stopped", "failed"]


class Header(msgspec.Struct, kw_only=True, tag_field="type"):
    """What every event carries; the writer fills it in."""

    time: float = 0.0
    """Unix seconds, UTC."""
    attempt: int = 0
    seq: int = 0


class StageInfo(msgspec.Struct, frozen=True):
    """A stage as planned, both epochs included."""

    name: str
    first_epoch: int
    last_epoch: int
    patience: int = 0
    """Epochs without a better score that end it; 0 where it is not known."""


class RunStarted(Header, kw_only=True, tag="run_started"):
    project: str
    device: str
    epochs: int
    steps_per_epoch: int
    columns: list[Column]
    stages: list[StageInfo]
    patience: int = 0
    world_size: int = 1
    resumed_step: int = 0
    """Everything that earlier attempts logged beyond this step is superseded."""
    resumed_epoch: int | None = None
    """Epochs done then: before an epoch's evaluation and after it the step is the same. None where it is not told."""
    parent: str = ""
    """Id of the run whose checkpoint this attempt began with; empty where it is the run's own, or none."""
    best_score: float | None = None
    """The score there was to beat, and the epoch it came from: of a fork its parent's."""
    best_epoch: int = 0

    def undoes(self, one: Epoch | CommandAnswer) -> bool:
        """Whether an earlier attempt logged it beyond where this one goes on."""
        return one.step > self.resumed_step or (self.resumed_epoch is not None and one.epoch > self.resumed_epoch)


class Phase(Header, kw_only=True, tag="phase"):
    phase: PhaseName
    step: int = 0
    detail: str = ""


class Epoch(Header, kw_only=True, tag="epoch"):
    epoch: int
    """From 1, over all stages."""
    step: int
    """Steps done when the epoch ended."""
    stage: str
    train: dict[str, float | None]
    validation: dict[str, float | None]
    score: float | None
    lr: float
    best: bool
    weights: dict[str, float]
    """Loss weights in force when the epoch ended."""
    seconds: float
    """Training and evaluation time of this epoch in this attempt."""
    nonfinite: list[str] = []
    evaluated: bool = True
    """False for an epoch that `training.evaluate_every` passes over: it has no validation values and no score."""


class Checkpoint(Header, kw_only=True, tag="checkpoint"):
    step: int
    epoch: int
    files: list[str]
    size: int
    """Bytes."""
    seconds: float


class CommandAnswer(Header, kw_only=True, tag="command"):
    """The engine's answer to a command: seen, applied (from step `step` on) or refused with a reason."""

    command: Command
    state: Literal["seen", "applied", "refused"]
    step: int
    epoch: int = 0
    """Epochs done then: an edit made before an epoch's evaluation and one made after it share the step."""
    reason: str = ""


class GradientNorms(Header, kw_only=True, tag="gradients"):
    """What one batch says of how hard each head pulls at the parameters that several heads share."""

    step: int
    norms: dict[str, float | None]
    """L2 norm of the gradient of each head's unweighted loss; times its weight it is the head's pull."""
    parameters: int
    """Numbers that are shared; of a single head all that it reaches."""
    nonfinite: list[str] = []


class Alert(Header, kw_only=True, tag="alert"):
    code: str
    level: Literal["info", "warning", "error"]
    text: str
    step: int = 0
    over: bool = False
    """What the last alert with this code reported is over."""


class Progress(Header, kw_only=True, tag="progress"):
    done: float
    total: float
    unit: str
    step: int = 0


class Ended(Header, kw_only=True, tag="ended"):
    reason: EndReason
    step: int
    detail: str = ""


Event = RunStarted | Phase | Epoch | Checkpoint | CommandAnswer | GradientNorms | Alert | Progress | Ended
decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def finite(values: Mapping[str, float | None], prefix: str = "") -> tuple[dict[str, float | None], list[str]]:
    """`values` with non-finite numbers replaced by None, and the names of those (`prefix` before each)."""
    bad = [key for key, value in values.items() if value is not None and not math.isfinite(value)]
    return {key: None if key in bad else value for key, value in values.items()}, [prefix + key for key in bad]


class EventWriter:
    """Writes events with their headers; safe to share between the loop and the listener thread."""

    def __init__(self, path: Path, attempt: int) -> None:
        self.attempt = attempt
        self._lines = LineWriter(path)
        self._encoder = msgspec.json.Encoder()
        self._lock = threading.Lock()
        self._seq = 0

    def write(self, event: Event, *, durable: bool = False) -> None:
        """Append `event` now. Raises OSError when the disk refuses."""
        with self._lock:
            event.time, event.attempt, event.seq = time.time(), self.attempt, self._seq
            self._lines.append(self._encoder.encode(event), durable=durable)
            self._seq += 1

    def close(self) -> None:
        self._lines.close()
