"""When and what a training saves, and how it is put back."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import msgspec
import torch

from engines.basics import files
from engines.basics.errors import UserError
from engines.contract.alerts import CHECKPOINT_FAILED
from engines.contract.events import Alert, Checkpoint
from engines.contract.rundir import RunDirectory
from engines.runs.keeping import KeepRule, Scored
from engines.runs.saved import epoch_of
from engines.thresholds.review import keep_review
from engines.training import checkpoint
from engines.training.ranks import local, random_of_ranks, restore_random_of_ranks
from engines.training.state import TrainState
from engines.training.step import TrainStep
from engines.training.sums import EpochSums
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
class _Save:
    """What is to be written, and the names it gets beside last.pt."""

    content: Callable[[], dict[str, Any]]
    step: int
    epoch: int
    best: bool = False
    keep: bool = False
    dropped: frozenset[int] = frozenset()
    """Epochs whose checkpoints go once this one is written."""

    def write(self, run: RunDirectory) -> Checkpoint:
        """Raises OSError with the older checkpoints untouched."""
        content = self.content()
        return checkpoint.write(run, content, step=self.step, epoch=self.epoch, best=self.best, keep=self.keep)


class Checkpoints:
    """Saves a training and restores it; use it around the training: no save is under way after it.

    Saves are written in their order, so that best.pt always holds the best epoch that last.pt knows of. The snapshot of
    an epoch with a name of its own (best.pt, epoch_NNN.pt) that could not be written is kept and written before the
    next save, at the latest when its stage or the run ends, which waits for space. So the host's memory holds at most
    the newest best and the newest such epoch beside the save under way. Rank 0 writes; the others have no snapshot.

    `flush` puts on disk what was logged up to the step that is saved. Raises `UserError` for metadata that is no JSON.
    """

    def __init__(self, work: Work, step: TrainStep, sums: EpochSums, flush: Callable[[], None]) -> None:
        self._work, self._step, self._sums, self._flush = work, step, sums, flush
        self._metadata = _as_json(work.project.metadata(work.settings, work.data), type(work.project).__name__)
        self._saved = time.monotonic()
        self._saved_at: tuple[int, int] | None = None
        self._thread = ThreadPoolExecutor(1, "save")
        self._waiting: list[_Save] = []
        """Oldest first."""
        self._writing: Future[Checkpoint] | None = None
        """The first of them."""

    @property
    def due(self) -> bool:
        """Whether the last save is longer ago than the settings want."""
        return time.monotonic() - self._saved > self._work.settings.training.checkpoint_minutes * 60

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """No save is under way afterwards; what waits is tried once more, for a run that fails has no last save."""
        try:
            self.settle()
            with contextlib.suppress(OSError):
                self._write_all(list(self._waiting), patient=False)
        finally:
            self._thread.shutdown()

    def save(self) -> None:
        """Write last.pt, after what waits, and wait for it; on a full disk until there is space.

        Raises OSError or `Diverged` with the older ones untouched.
        """
        saves = self._saves_now()
        with self._work.phases.during("saving"):
            self._write_all(saves)

    def try_save(self) -> str:
        """The same without waiting for space: why it could not be written, empty where it was.

        What else is refused, as the log of steps, is raised: all ranks are in this together until rank 0 writes.
        """
        saves = self._saves_now()
        with self._work.phases.during("saving"):
            try:
                self._write_all(saves, patient=False)
            except OSError as error:
                return error.strerror or str(error) or type(error).__name__
        return ""

    def _saves_now(self) -> list[_Save]:
        """What waits and what stands now; nothing on the ranks beside the first."""
        self._prepare()
        content, state = self.content(whole=False), self._work.state
        now = _Save(lambda: content, state.step, state.epoch)
        return [*self._waiting, now] if self._work.ranks.first else []

    def complete(self) -> None:
        """See that what waits and what stands now is on disk; waits on a full disk until there is space."""
        self.settle()
        self._write_all(list(self._waiting))
        state = self._work.state
        if not self._work.ranks.from_first(self._saved_at == (state.step, state.epoch)):
            self.save()

    def end_epoch(self, *, best: bool) -> None:
        """Save the epoch that was logged last, in the background; its checkpoint and older ones are kept by rule.

        Raises as `save_in_background`.
        """
        output = self._work.settings.output
        epochs = [Scored(row["epoch"], row["stage"], row["score"]) for row in self._work.state.log]
        keep, dropped = KeepRule(every=output.keep_epochs, best=output.keep_best).after(epochs)
        self.save_in_background(best=best, keep=keep, dropped=dropped)

    def save_in_background(self, *, best: bool = False, keep: bool = False, dropped: Collection[int] = ()) -> None:
        """Copy the training to the host's memory and write that while it goes on; never two at once.

        `dropped`: epochs whose checkpoints go once this one is written. A disk that refuses it does not end the
        training: an alert says so. Raises `Diverged`, or OSError where what was logged cannot be written.
        """
        self._prepare()
        content, state = self.content(whole=best or keep), self._work.state
        if not self._work.ranks.first:
            return
        if best:
            self._waiting = [one for one in self._waiting if one.keep]
        snapshot = checkpoint.Snapshot(content)
        self._waiting.append(_Save(snapshot.content, state.step, state.epoch, best, keep, frozenset(dropped)))
        self._write_next()

    def look(self) -> None:
        """Record how the save under way ended, if it has, and begin the next."""
        if self._writing is None or not self._writing.done():
            return
        writing, self._writing = self._writing, None
        error = writing.exception()  # raising it here would make a cycle that keeps the snapshot in memory
        if error is None:
            self._done(self._waiting[0], writing.result())
            self._write_next()
        elif isinstance(error, OSError):
            self._refused(error)
        else:
            self._waiting.clear()  # another try would fail too
            raise error

    def settle(self) -> None:
        """Wait until no save is under way, and record how they ended."""
        while self._writing is not None:
            wait([self._writing])
            self.look()

    def _write_next(self) -> None:
        if self._waiting:
            self._writing = self._thread.submit(self._waiting[0].write, self._work.run)

    def _write_all(self, saves: Iterable[_Save], *, patient: bool = True) -> None:
        """Write them here and now. Raises OSError as `save` does."""
        for one in saves:
            self._done(one, self._written(one, patient=patient))

    def _written(self, save: _Save, *, patient: bool) -> Checkpoint:
        run, written = self._work.run, list[Checkpoint]()
        if not patient:
            return save.write(run)
        self._work.room.when_possible(lambda: written.append(save.write(run)))
        return written[0]

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

    def _done(self, save: _Save, event: Checkpoint) -> None:
        self._waiting = [one for one in self._waiting if one is not save]
        self._saved_at = event.step, event.epoch
        self._work.room.write(event)
        for epoch in save.dropped:
            with contextlib.suppress(OSError):  # it only takes space
                checkpoint.kept(self._work.run, epoch).unlink(missing_ok=True)

    def _refused(self, error: OSError) -> None:
        """Say that nothing of what waits was written, and keep what is worth another try."""
        step, reason = self._waiting[-1].step, error.strerror or str(error) or type(error).__name__
        self._waiting = worth_keeping(self._waiting)
        text = f"no checkpoint at step {step}: {reason}; the older one is kept; free some space"
        if best := [one.epoch for one in self._waiting if one.best]:
            text += f"; epoch {best[0]}, the best, is written with the next save"
        self._work.room.write(Alert(code=CHECKPOINT_FAILED, level="error", text=text, step=step))

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
            "sums": torch.from_numpy(self._sums.numbers),
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
            torch.from_numpy(self._sums.numbers).copy_(content["sums"])
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

        It waits on a full disk. None where the stage has no best, or best.pt is not it: somebody took it away.
        """
        self.settle()
        self._write_all(list(self._waiting))
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


def worth_keeping(saves: Sequence[_Save]) -> list[_Save]:
    """Of `saves` that could not be written the newest best, and the newest with a name of its own, in their order.

    It takes over what the others would have dropped.
    """
    named = [one for one in saves if one.best or one.keep]
    if not named:
        return []
    bests = [one for one in named if one.best]
    newest = replace(named[-1], dropped=frozenset().union(*(one.dropped for one in saves)))
    return [newest] if newest.best or not bests else [bests[-1], newest]
