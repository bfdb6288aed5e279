"""When and what a training saves, and how it is put back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import torch

from engines.basics import files
from engines.basics.errors import UserError
from engines.contract.alerts import CHECKPOINT_FAILED
from engines.contract.events import Alert
from engines.runs.saved import epoch_of
from engines.thresholds.review import keep_review
from engines.training import checkpoint
from engines.training.ranks import random_of_ranks, restore_random_of_ranks
from engines.training.state import TrainState
from engines.training.step import TrainStep
from engines.training.work import Work


class Diverged(Exception):
    """Too many steps in a row were not finite, or a weight is not: no further step makes that good."""

    def __init__(self, what: str, advice: str, run: str) -> None:
        """Weights may be ruined, and saved, long before a step is infinite: then a resume fails too."""
        super().__init__(
            f"{what}; the last good checkpoint is kept: {advice}, then resume; "
            f"if that fails too, `cockpit fork {run} --epoch best` goes back to the best"
        )


def _as_json(metadata: Mapping[str, Any], project: str) -> Any:
    """As it is read from a checkpoint again. Raises `UserError` for what JSON cannot say."""
    try:
        return msgspec.json.decode(msgspec.json.encode(metadata))
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise UserError(
            f"{project}.metadata returned what a checkpoint cannot store ({error}); expected words, numbers, lists and "
            "mappings of them."
        ) from None


class Checkpoints:
    """Saves a training and restores it. `flush` puts on disk what was logged up to the step that is saved.

    Raises `UserError` for metadata that is no JSON.
    """

    def __init__(self, work: Work, step: TrainStep, flush: Callable[[], None]) -> None:
        self._work, self._step, self._flush = work, step, flush
        self._metadata = _as_json(work.project.metadata(work.settings, work.data), type(work.project).__name__)
        self._saved = time.monotonic()
        self._saved_at: tuple[int, int] | None = None

    @property
    def due(self) -> bool:
        """Whether the last save is longer ago than the settings want."""
        return time.monotonic() - self._saved > self._work.settings.training.checkpoint_minutes * 60

    @property
    def current(self) -> bool:
        """Whether the newest save holds what stands now."""
        holds = self._saved_at == (self._work.state.step, self._work.state.epoch)
        return self._work.ranks.from_first(holds)

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
            if patient or not work.ranks.first:
                work.room.when_possible(write)
            else:
                write()
        self._saved_at = state.step, state.epoch

    def save_or_warn(self, *, best: bool = False, keep: bool = False) -> bool:
        """A full disk must not end the training: say so, keep the older checkpoint. False when it was full."""
        saved = False
        try:
            self.save(best=best, keep=keep, patient=False)
            saved = True
        except OSError as error:
            step = self._work.state.step
            text = f"no checkpoint at step {step}: {error.strerror or error}; the older one is kept; free some space"
            self._work.room.write(Alert(code=CHECKPOINT_FAILED, level="error", text=text, step=step))
        return self._work.ranks.from_first(saved)

    def content(self) -> dict[str, Any]:
        """Everything a checkpoint holds; `restore` puts it back."""
        work, step = self._work, self._step
        return {
            "model": work.project.trainable_state(work.model),
            "optimizer": step.optimizer.state_dict(),
            "scaler": step.precision.scaler.state_dict(),
            **random_of_ranks(work.ranks),
            "sums": step.sums,
            "state": work.state.dump(),
            "metadata": self._metadata,
        }

    def restore(self, content: dict[str, Any]) -> None:
        """Put everything a checkpoint holds back."""
        work, step = self._work, self._step
        work.project.load_trainable_state(work.model, content["model"])
        self._restore_optimizer(content["optimizer"])
        work.state.become(TrainState.load(content["state"]))
        if content["scaler"]:  # a fork may turn fp16 on
            step.precision.scaler.load_state_dict(content["scaler"])
        if work.state.step_in_epoch:  # else nothing is summed yet, and a project may have got other metrics
            step.sums.copy_(content["sums"])
        restore_random_of_ranks(content, work.ranks)
        work.ranks.make_equal(work.model)

    def _restore_optimizer(self, saved: dict[str, Any]) -> None:
        optimizer = self._step.optimizer
        groups = [{**group} for group in optimizer.param_groups]
        optimizer.load_state_dict(saved)
        for group, own in zip(optimizer.param_groups, groups, strict=True):
            # the config's: a fork may have others than its checkpoint
            group.update({key: own[key] for key in ("weight_decay", "lr_scale") if key in own})

    def keep_best(self) -> Path | None:
        """Keep the best of the stage that is over, and its review, under the stage's number; where it lies.

        None where the stage has no best, or best.pt is not it: a disk was full, or somebody took it away.
        """
        run, state = self._work.run, self._work.state
        number = state.stage + 1
        if not state.best_epoch or epoch_of(run.best) != state.best_epoch:
            return None

        def keep() -> None:
            files.replace_by_link(run.best, run.stage_best(number))
            keep_review(run.review, run.stage_review(number))

        self._work.room.when_possible(keep)
        return run.stage_best(number)

    def go_back(self, best: Path | None) -> None:
        """Take weights and optimizer of the `best` checkpoint; without one they stay the last, with an alert."""
        if best is None:
            text = "the stage starts with the last weights: the previous stage's best is missing"
            self._work.room.write(Alert(code="stage", level="warning", text=text, step=self._work.state.step))
            return
        content = checkpoint.load(best)
        self._work.project.load_trainable_state(self._work.model, content["model"])
        self._restore_optimizer(content["optimizer"])
