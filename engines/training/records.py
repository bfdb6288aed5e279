"""What an epoch leaves behind: its event, its metric lines, its line in the log, the review arrays of the best one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from engines.basics import files
from engines.basics.line_writer import LineWriter
from engines.contract.events import Epoch, finite
from engines.contract.rundir import RunDirectory
from engines.contract.tables import encode
from engines.runtime.room import Room
from engines.thresholds.review import About, write_review
from engines.training.project import Result, Table
from engines.training.state import TrainState


class EpochRecorder:
    """Appends one record an epoch, each a single write: the cost does not grow with the run."""

    def __init__(self, run: RunDirectory, room: Room) -> None:
        self._run, self._room = run, room
        self._train, self._validation = LineWriter(run.train_metrics), LineWriter(run.val_metrics)
        self._began = self._now()

    def _now(self) -> float:
        """Seconds of work: the clock stands still in a pause."""
        return time.monotonic() - self._room.paused

    def begin_epoch(self) -> None:
        self._began = self._now()

    def end_epoch(
        self, state: TrainState, stage: str, means: Mapping[str, float | None], result: Result, *, lr: float, best: bool
    ) -> dict[str, Any]:
        """Record the epoch that `state` has just counted; gives its flat row."""
        train, bad_train = finite(means, "train.")
        validation, bad_validation = finite(result.values, "validation.")
        marks, bad_score = finite({"score": result.score})
        score = marks["score"]
        seconds = self._now() - self._began
        common = {"epoch": state.epoch, "step": state.step, "attempt": self._room.attempt, "stage": stage}
        self._append(self._train, {**common, **train, "lr": lr, "seconds": seconds, "nonfinite": bad_train})
        if state.evaluated:
            self.write_validation(state, result)
        self._room.write(
            Epoch(
                epoch=state.epoch,
                step=state.step,
                stage=stage,
                train=train,
                validation=validation,
                score=score,
                lr=lr,
                best=best,
                weights=dict(state.live.weights),
                seconds=seconds,
                nonfinite=bad_train + bad_validation + bad_score,
                evaluated=state.evaluated,
            )
        )
        shown = f"{score:.4f}" if score is not None else "not scored" if state.evaluated else "not evaluated"
        mark = (
            " (best)" if best else f" (best {state.best_score:.4f} at {state.best_epoch})" if state.best_epoch else ""
        )
        print(f"epoch {state.epoch}  step {state.step}  score {shown}{mark}  {seconds:.1f} s", flush=True)
        row = {f"train.{key}": value for key, value in train.items()}
        row |= {f"validation.{key}": value for key, value in validation.items()}
        return {"epoch": state.epoch, "step": state.step, "stage": stage, **row, "score": score, "lr": lr, "best": best}

    def write_validation(self, state: TrainState, result: Result, *, on_demand: bool = False) -> None:
        """One line of val_metrics.jsonl."""
        values, bad = finite({**result.values, "score": result.score})
        line = {"epoch": state.epoch, "step": state.step, "attempt": self._room.attempt, "on_demand": on_demand}
        self._append(self._validation, {**line, **values, "nonfinite": bad})

    def _append(self, file: LineWriter, values: Mapping[str, Any]) -> None:
        line = msgspec.json.encode(values)
        self._room.when_possible(lambda: file.append(line))

    def write_review(self, result: Result, *, step: int, epoch: int) -> None:
        """The arrays of the best epoch and what they belong to, replaced all at once."""
        about = About(checkpoint=self._run.best.name, step=step, epoch=epoch, score=result.score)
        self._room.when_possible(lambda: write_review(self._run.review, result.review, about))

    def write_report(self, tables: Mapping[str, Table]) -> None:
        """Replace report.json: named tables with columns, rows and a note."""
        self._room.when_possible(lambda: files.replace_bytes(self._run.report, encode(tables)))
