"""Where a run stands: counters, live edits, early stopping. What a checkpoint needs beside model, optimizer, random
state and the sums of the running epoch."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class LiveSettings:
    """What a person can change while the run goes on."""

    weights: dict[str, float]
    lr_scale: float
    epochs: int
    patience: int | None = None
    """None until it is changed: then the config's holds, a stage's own before the run's."""


@dataclass
class TrainState:
    live: LiveSettings
    step: int = 0
    """Batches done, skipped ones too; also the number of the next step."""
    epoch: int = 0
    """Epochs done."""
    step_in_epoch: int = 0
    stage: int = 0
    stage_epoch: int = 0
    """Epochs done in this stage."""
    stage_over: bool = False
    """Its last epoch is saved, and the next stage has not begun: that comes before anything else."""
    schedule_stage: int = 0
    """Stage in which the learning-rate schedule began."""
    schedule_epoch: int = 0
    """Epochs done when it began."""
    best_score: float | None = None
    best_epoch: int = 0
    epochs_without_best: int = 0
    micro_batches: int = 1
    """Parts that each batch is computed in; with training.micro_batches auto, what has turned out to fit."""
    evaluated: bool = True
    """Whether the last epoch done was; the run cannot end where it was not."""
    bad_steps: int = 0
    """Non-finite steps in a row."""
    log: list[dict[str, Any]] = field(default_factory=list)
    """One flat row an epoch, for the exporter: a resumed run's log is whole without reading anything back."""

    def dump(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def load(cls, saved: dict[str, Any]) -> TrainState:
        """The state that `dump` gave."""
        return cls(**{**saved, "live": LiveSettings(**saved["live"])})

    def become(self, other: TrainState) -> None:
        """Take another one's values, in place: the parts of a training share this object."""
        vars(self).update(vars(other))

    def note_score(self, score: float | None) -> bool:
        """Early stopping: whether this is the best score so far. Any number beats none, nothing else counts."""
        best = score is not None and math.isfinite(score) and (self.best_score is None or score > self.best_score)
        if best:
            self.best_score, self.best_epoch, self.epochs_without_best = score, self.epoch, 0
        else:
            self.epochs_without_best += 1
        return best
