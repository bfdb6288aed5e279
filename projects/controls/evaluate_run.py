"""`cockpit evaluate RUN --data DIR`: a run's best weights scored on another folder of recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from engines.basics.errors import DataError
from engines.contract.rundir import RunDirectory
from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from engines.thresholds.review import read_review
from engines.training.precision import choose_device
from engines.training.project import ENLARGE
from engines.training.trained import open_run
from projects.controls.baselines import Baselines
from projects.controls.batches import WindowSource
from projects.controls.config import ControlsConfig
from projects.controls.demo.task import CEILING
from projects.controls.editions import scoring
from projects.controls.metrics import score_controls
from projects.controls.model import ControlTransformer
from projects.controls.predictions import predict
from projects.controls.recordings import Recording, read_folder, refuse_rate
from projects.controls.report import baseline_table, counted, score_tables
from projects.controls.run_tables import change_table, not_made, session_table
from projects.controls.split import read_parts
from projects.controls.tuning import configured

STEPS = 3
"""Read, predict, compare."""


class _Order(msgspec.Struct):
    run: Path
    data: Path


def evaluate(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Report how the run in the directory `run` does on every session in the folder `data`, at its own thresholds.

    The baselines are fitted on the run's training sessions; where these have gone, the report says so.
    Raises `UserError` for bad arguments, `DataError` for bad recordings and a run without a best checkpoint.
    """
    order = as_struct(arguments, _Order)
    trained = open_run(RunDirectory(order.run))
    cfg = trained.settings
    assert isinstance(cfg, ControlsConfig)
    recordings = read_folder(order.data, cfg.data.look_deadzone)
    _refuse_other_rate(trained.run, order.data, recordings)
    device = choose_device("auto")
    model = trained.load_into(ControlTransformer(**cfg.model.model_dump())).to(device)
    source = WindowSource(recordings, device, 0.0)
    context.log(f"epoch {trained.state.epoch} of {trained.run.info.id} on {len(recordings)} sessions in {order.data}")
    context.progress(1, STEPS, "steps")
    prediction, truth = predict(model, source, ENLARGE * cfg.training.batch_size)
    context.progress(2, STEPS, "steps")
    thresholds = configured(cfg)
    by = scoring(cfg, trained.run.info.edition)
    run = score_controls(prediction, truth, thresholds, scoring=by)
    sessions, counts = {}, []
    for number, recording in enumerate(recordings):
        rows = source.sessions == number
        sessions[recording.name] = score_controls(prediction[rows], truth[rows], thresholds, scoring=by)
        counts.append(int(rows.sum()))
    tables = {**score_tables(run, ()), "sessions": session_table(sessions, counts, run)}
    try:
        train = read_parts(cfg.data, trained.run.info.edition).train
        found = Baselines(train, trees=cfg.report.trees).scores(recordings, order.data / CEILING)
        baselines = {name: scores.by(by) for name, scores in found.items()}
        where = f"On the {len(truth)} windows of {len(recordings)} sessions in {order.data}."
        note = f"{where} {counted(run)}{_seen(read_parts(cfg.data, 1).train, recordings)}"
        tables["baselines"] = baseline_table(run, baselines, note)
        tables["change frames"] = change_table({"this run": run, **baselines})
    except DataError as error:
        tables["baselines"] = not_made(error)
    context.report(tables)
    context.progress(3, STEPS, "steps")


def _refuse_other_rate(run: RunDirectory, folder: Path, recordings: Sequence[Recording]) -> None:
    """Raises `DataError` where the recordings are not of the run's frame rate, as far as it says one."""
    review = read_review(run.review)
    if review is not None and "fps" in review.arrays:
        for recording in recordings:
            file = folder / f"{recording.name}.npz"
            refuse_rate(file, recording, float(review.arrays["fps"]), "the run was trained at")


def _seen(train: Sequence[Recording], recordings: Sequence[Recording]) -> str:
    """What to say of sessions that the run was trained on; empty without any. `train` are whole, without gaps."""
    known = {one.controls.tobytes() for one in train}
    seen = [one.name for one in recordings if one.controls.tobytes() in known]
    return f" The run was trained on {', '.join(seen)}: its scores there say nothing of new sessions." if seen else ""
