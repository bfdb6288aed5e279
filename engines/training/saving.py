"""When and what a training saves, and how it is put back."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from engines.contract.alerts import CHECKPOINT_FAILED
from engines.contract.events import Alert
from engines.training import checkpoint
from engines.training.precision import random_state, restore_random_state
from engines.training.state import TrainState
from engines.training.step import TrainStep
from engines.training.work import Work


class Diverged(Exception):
    """Too many steps in a row were not finite, or a weight is not: no further step makes that good."""

    def __init__(self, what: str, advice: str, run: str) -> None:
        """Weights may be ruined, and saved, long before a step is infinite: then a resume fails too."""
        super().__init__(
            f"{what}; the last good checkpoint is untouched: {advice}, then resume; "
            f"where that fails too, `cockpit fork {run} --epoch best` goes back to the best"
        )


class Checkpoints:
    """Saves a training and restores it. `flush` puts on disk what was logged up to the step that is saved."""

    def __init__(self, work: Work, step: TrainStep, flush: Callable[[], None]) -> None:
        self._work, self._step, self._flush = work, step, flush
        self._saved = time.monotonic()
        self._saved_at: tuple[int, int] | None = None

    @property
    def due(self) -> bool:
        """Whether the last save is longer ago than the settings want."""
        return time.monotonic() - self._saved > self._work.settings.training.checkpoint_minutes * 60

    @property
    def current(self) -> bool:
        """Whether the newest save holds what stands now."""
        return self._saved_at == (self._work.state.step, self._work.state.epoch)

    def save(self, *, best: bool = False, keep: bool = False, patient: bool = True) -> None:
        """Write last.pt (and the others asked for); `patient` waits on a full disk until there is room.

        Raises OSError or `Diverged` with the older ones untouched.
        """
        self._flush()
        work, state = self._work, self._work.state
        if not torch.stack([weight.isfinite().all() for weight in work.model.parameters()]).all():
            what = f"the weights are not finite at step {state.step}"
            raise Diverged(what, "lower training.lr", work.run.path.name)
        self._saved = time.monotonic()
        write = partial(
            checkpoint.save, work.run, self.content(), work.room,
            step=state.step, epoch=state.epoch, best=best, keep=keep,
        )  # fmt: skip
        with work.phases.during("saving"):
            work.room.when_possible(write) if patient else write()
        self._saved_at = state.step, state.epoch

    def save_or_warn(self, *, best: bool = False, keep: bool = False) -> bool:
        """A full disk must not end the training: say so, keep the older checkpoint. False when it was full."""
        try:
            self.save(best=best, keep=keep, patient=False)
            return True
        except OSError as error:
            step = self._work.state.step
            text = f"no checkpoint at step {step}: {error.strerror or error}; the older one is kept, free some space"
            self._work.room.write(Alert(code=CHECKPOINT_FAILED, level="error", text=text, step=step))
            return False

    def content(self) -> dict[str, Any]:
        """Everything a checkpoint holds; `restore` puts it back."""
        work, step = self._work, self._step
        return {
            "model": work.project.trainable_state(work.model),
            "optimizer": step.optimizer.state_dict(),
            "scaler": step.precision.scaler.state_dict(),
            "random": random_state(),
            "sums": step.sums,
            "state": work.state.dump(),
        }

    def restore(self, content: dict[str, Any]) -> None:
        """Put everything a checkpoint holds back."""
        work, step = self._work, self._step
        work.project.load_trainable_state(work.model, content["model"])
        work.state.become(TrainState.load(content["state"]))
        groups = [{**group} for group in step.optimizer.param_groups]
        step.optimizer.load_state_dict(content["optimizer"])
        for group, own in zip(step.optimizer.param_groups, groups, strict=True):
            # the config's: a fork may have others than its checkpoint
            group.update({key: own[key] for key in ("weight_decay", "lr_scale") if key in own})
        if content["scaler"]:  # a fork may turn fp16 on
            step.precision.scaler.load_state_dict(content["scaler"])
        step.sums.copy_(content["sums"])
        restore_random_state(content["random"])
