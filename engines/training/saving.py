"""When and what a training saves, and how it is put back."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import msgspec
import torch

from engines.basics import files
from engines.basics.errors import UserError
from engines.contract.alerts import CHECKPOINT_FAILED
from engines.contract.events import Alert, Checkpoint
from engines.runs.keeping import KeepRule, Scored
from engines.runs.saved import epoch_of
from engines.thresholds.review import keep_review
from engines.training import checkpoint
from engines.training.ranks import local, random_of_ranks, restore_random_of_ranks
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


@dataclass(frozen=True)
class _Pending:
    """A save in the background."""

    writing: Future[Checkpoint] | None
    """Of rank 0."""
    step: int
    dropped: Collection[int]
    failed: Callable[[], None]


class Checkpoints:
    """Saves a training and restores it; use it around the training: no save is under way after it.

    `flush` puts on disk what was logged up to the step that is saved. Raises `UserError` for metadata that is no JSON.
    """

    def __init__(self, work: Work, step: TrainStep, flush: Callable[[], None]) -> None:
        self._work, self._step, self._flush = work, step, flush
        self._metadata = _as_json(work.project.metadata(work.settings, work.data), type(work.project).__name__)
        self._saved = time.monotonic()
        self._saved_at: tuple[int, int] | None = None
        self._thread = ThreadPoolExecutor(1, "save")
        self._pending: _Pending | None = None

    @property
    def due(self) -> bool:
        """Whether the last save is longer ago than the settings want."""
        return time.monotonic() - self._saved > self._work.settings.training.checkpoint_minutes * 60

    @property
    def current(self) -> bool:
        """Whether the newest save holds what stands now."""
        self.settle()
        holds = self._saved_at == (self._work.state.step, self._work.state.epoch)
        return self._work.ranks.from_first(holds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """No save is under way afterwards."""
        try:
            self.settle()
        finally:
            self._thread.shutdown()

    def save(self, *, best: bool = False, keep: bool = False, patient: bool = True) -> None:
        """Write last.pt (and the others asked for) and wait; `patient` waits on a full disk until there is space.

        Raises OSError or `Diverged` with the older ones untouched.
        """
        self._prepare()
        work, state = self._work, self._work.state
        content = self.content(whole=best or keep)
        write = partial(checkpoint.write, work.run, content, step=state.step, epoch=state.epoch, best=best, keep=keep)
        with work.phases.during("saving"):
            if not work.ranks.first:
                return
            if not patient:
                self._done(write())
            else:
                written: list[Checkpoint] = []
                work.room.when_possible(lambda: written.append(write()))
                self._done(written[0])

    def end_epoch(self, *, best: bool, failed: Callable[[], None]) -> None:
        """Save the epoch that was logged last, in the background; its checkpoint and older ones are kept by rule.

        `failed` is called where the disk was full. Raises as `save_in_background`.
        """
        output = self._work.settings.output
        epochs = [Scored(row["epoch"], row["stage"], row["score"]) for row in self._work.state.log]
        keep, dropped = KeepRule(every=output.keep_epochs, best=output.keep_best).after(epochs)
        self.save_in_background(best=best, keep=keep, dropped=dropped, failed=failed)

    def save_in_background(
        self,
        *,
        best: bool = False,
        keep: bool = False,
        dropped: Collection[int] = (),
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        """Copy the training to the host's memory and write that while it goes on; never two at once.

        Several ranks wait for it: whether it was written decides what all of them do next. `dropped`: epochs whose
        checkpoints go once this one is written.
        A full disk must not end the training: `settle` records that, calls `failed` and keeps the older checkpoint.
        Raises `Diverged`, or OSError where what was logged cannot be written.
        """
        self._prepare()
        work, state = self._work, self._work.state
        snapshot = checkpoint.Snapshot(self.content(whole=best or keep))
        place = {"step": state.step, "epoch": state.epoch}

        def write() -> Checkpoint:
            return checkpoint.write(work.run, snapshot.content(), best=best, keep=keep, **place)

        writing = self._thread.submit(write) if work.ranks.first else None
        self._pending = _Pending(writing, state.step, dropped, failed)
        if not work.ranks.alone:
            with work.phases.during("saving"):
                self.settle()

    def look(self) -> None:
        """Record how the save under way ended, if it has."""
        if self._pending is not None and self._pending.writing is not None and self._pending.writing.done():
            self.settle()

    def settle(self) -> None:
        """Wait for the save under way, if there is one, and record how it ended."""
        if self._pending is None:
            return
        pending, self._pending = self._pending, None
        event, refused = None, ""
        try:
            event = pending.writing.result() if pending.writing is not None else None
        except OSError as error:
            refused = error.strerror or str(error) or type(error).__name__
        if refused := self._work.ranks.from_first(refused):
            pending.failed()
            text = f"no checkpoint at step {pending.step}: {refused}; the older one is kept; free some space"
            self._work.room.write(Alert(code=CHECKPOINT_FAILED, level="error", text=text, step=pending.step))
            return
        if event is None:  # rank 0 has written it
            return
        self._done(event)
        for epoch in pending.dropped:
            with contextlib.suppress(OSError):  # it only takes space
                checkpoint.kept(self._work.run, epoch).unlink(missing_ok=True)

    def _prepare(self) -> None:
        """See the last save through, and that this one is worth keeping."""
        self.settle()
        self._flush()
        work, state = self._work, self._work.state
        finite = torch.stack([local(weight).isfinite().all() for weight in work.model.parameters()]).all()
        if not (finite if work.sharding is None else all(work.ranks.gathered(bool(finite)))):
            what = f"the weights are not finite at step {state.step}"
            raise Diverged(what, "lower training.lr", work.run.path.name)
        self._saved = time.monotonic()

    def _done(self, event: Checkpoint) -> None:
        self._saved_at = event.step, event.epoch
        self._work.room.write(event)

    def content(self, *, whole: bool = True) -> dict[str, Any]:
        """Everything a checkpoint holds; `restore` puts it back.

        Of a model that the ranks hold together it is `whole` on rank 0, or else names shards that are written by then;
        where the disk refuses these it is whole too, and goes the way of every checkpoint.
        """
        work, step = self._work, self._step
        content = {
            "model": work.project.trainable_state(work.model),
            "optimizer": step.optimizer.state_dict(),
            "scaler": step.precision.scaler.state_dict(),
            **random_of_ranks(work.ranks),
            "sums": step.sums,
            "state": work.state.dump(),
            "metadata": self._metadata,
        }
        return content if work.sharding is None else work.sharding.saved(work.run, content, whole=whole)

    def read(self, path: Path) -> dict[str, Any]:
        """The content of a checkpoint, for `restore`. Raises `DataError` for one that is damaged."""
        work = self._work
        if work.sharding is None:
            return checkpoint.load(path)
        return work.sharding.read(path, work.project.trainable_state(work.model), self._step.optimizer)

    def restore(self, content: dict[str, Any]) -> None:
        """Put everything a checkpoint holds back."""
        work, step = self._work, self._step
        work.project.load_trainable_state(work.model, content["model"])
        self._restore_optimizer(content["optimizer"])
        cut = work.settings.training.micro_batches
        work.state.become(TrainState.load(content["state"]))
        work.state.micro_batches = work.state.micro_batches if cut == "auto" else cut
        if content["scaler"]:  # a fork may turn fp16 on
            step.precision.scaler.load_state_dict(content["scaler"])
        if work.state.step_in_epoch:  # else nothing is summed yet, and a project may have got other metrics
            step.sums.copy_(content["sums"])
        restore_random_of_ranks(content, work.ranks)
        if work.sharding is None:
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
        self.settle()
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
        content = self.read(best)
        self._work.project.load_trainable_state(self._work.model, content["model"])
        self._restore_optimizer(content["optimizer"])
