"""`cockpit export RUN`: a run's export made anew from its best checkpoint, be the run in training, stopped or done."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from engines.basics.errors import DataError, UserError
from engines.basics.files import remove_stale_temporaries
from engines.basics.lock import RunLock
from engines.contract.config import load_config
from engines.contract.rundir import RunDirectory
from engines.tasks import TaskContext
from engines.thresholds.review import SAVE_LOCK, Review, read_review
from engines.training import checkpoint
from engines.training.project import TrainingLog
from engines.training.state import TrainState
from projects.controls.config import ControlsConfig
from projects.controls.export import write_export
from projects.controls.exported import CONFIG_FILE, GRAPH_FILE, LOG_FILE, POLICY_FILE
from projects.controls.layout import FEATURE_SIZE, WINDOW
from projects.controls.model import ControlTransformer

FILES = (POLICY_FILE, GRAPH_FILE, CONFIG_FILE, LOG_FILE)
LARGEST_BATCH = 4096
"""Windows that the graph takes at once, from 1 on."""
STEPS = 3
"""Read, make the graph, write."""
MATCH_TRIES = 25
MATCH_SECONDS = 0.2
_VALUES = "validation."


def export(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Write the export of the run in the directory `run`, from its records alone: its data is not needed.

    Raises `UserError` for bad arguments, `DataError` where the run has nothing to export yet or cannot be read.
    """
    if not {"run"} <= set(arguments) <= {"run", "stage"}:
        raise UserError(f"An export takes the directory of a run, and a stage; got {', '.join(sorted(arguments))}.")
    run = RunDirectory(Path(arguments["run"]))
    if "stage" in arguments:
        run = run.at_stage(arguments["stage"])
    cfg = load_config(run.config).settings
    assert isinstance(cfg, ControlsConfig)
    if not run.best.is_file():
        raise DataError(
            f"{run.path} has no {run.best.name} yet: it is written when the first epoch has been scored; "
            "export again after that."
        )
    best, review = _matching(run, context)
    model = ControlTransformer(**cfg.model.model_dump())
    try:
        model.load_state_dict(best["model"])
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{run.best} does not fit the model of {run.config} ({reason}).") from None
    context.progress(1, STEPS, "steps")
    graph = export_graph(model.eval().requires_grad_(False))
    context.progress(2, STEPS, "steps")
    log, values = _log(run, TrainState.load(best["state"]))
    with _alone(run):
        sentence = write_export(
            run.export, cfg, model.state_dict(), review=review.arrays, values=values, log=log, graph=graph
        )
    context.log(f"epoch {log.best_epoch}, score {log.best_score:.4f}")
    for name in FILES:
        context.log(f"{run.export / name}  {(run.export / name).stat().st_size:,} bytes")
    if sentence:
        context.log(sentence)
    context.progress(3, STEPS, "steps")


def export_graph(model: ControlTransformer) -> bytes:
    """The model as a file of `torch.export`: features (batch, 30, 671) and mask (batch, 30) to the five heads.

    The batch is variable, from 1 to 4096; the window is always 30 rows, padded on the left.
    """
    # traced with two windows: torch would take a batch of one for a constant
    example = torch.zeros(2, WINDOW, FEATURE_SIZE), torch.ones(2, WINDOW, dtype=torch.bool)
    batch = torch.export.Dim("batch", min=1, max=LARGEST_BATCH)
    program = torch.export.export(model, example, dynamic_shapes=({0: batch}, {0: batch}))
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    return buffer.getvalue()


def _matching(run: RunDirectory, context: TaskContext) -> tuple[dict[str, Any], Review]:
    """best.pt and the review of the same step. Raises `DataError`.

    A run in training writes its review just before its best.pt, so a pair that does not match is read again.
    """
    for _ in range(MATCH_TRIES):
        best, review = checkpoint.load(run.best), read_review(run.review)
        if review is None:
            raise DataError(f"{run.review} holds no review; the next best epoch of a resumed run writes it.")
        step, reviewed = best["state"]["step"], review.about.step
        if reviewed == step:
            return best, review
        context.progress(0, STEPS, "steps")
        time.sleep(MATCH_SECONDS)
    raise DataError(
        f"The review in {run.review} is of step {reviewed} and {run.best.name} of step {step}: "
        "the disk was full when the newer one was saved; resume the run until its next best."
    )


@contextmanager
def _alone(run: RunDirectory) -> Iterator[None]:
    """Without anyone who saves thresholds or exports meanwhile. Raises `DataError`."""
    lock = RunLock(run.review / SAVE_LOCK)
    if not lock.acquire():
        raise DataError(f"The thresholds of {run.path} are being saved at this moment; export again.")
    try:
        remove_stale_temporaries(run.export)  # of an export that was killed
        yield
    finally:
        lock.release()


def _log(run: RunDirectory, best: TrainState) -> tuple[TrainingLog, dict[str, float | None]]:
    """What happened up to now, and the validation values of the best epoch."""
    newest = TrainState.load(checkpoint.load(run.last)["state"]) if run.last.is_file() else best
    rows = newest.log if newest.epoch >= best.epoch else best.log
    chosen = best.log[-1]
    values = {key.removeprefix(_VALUES): value for key, value in chosen.items() if key.startswith(_VALUES)}
    return TrainingLog(tuple(rows), best.epoch, float(chosen["score"])), values
