"""`cockpit export RUN`: a run's export made again from its best checkpoint, be the run in training, stopped or done."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch

from engines.contract.rundir import RunDirectory
from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from engines.tasks.exporting import alone, log_files
from engines.training.trained import open_reviewed
from projects.controls.config import ControlsConfig
from projects.controls.export import FILES, FLAT_FILES, write_export
from projects.controls.layout import FEATURE_SIZE, WINDOW
from projects.controls.model import ControlTransformer

LARGEST_BATCH = 4096
"""Windows that the graph takes at once, from 1 on."""
STEPS = 3
"""Read, make the graph, write."""


class _Order(msgspec.Struct):
    run: Path
    stage: int | None = None
    flat: bool = False


def export(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Write the export of the run in the directory `run`, from its records alone: its data is not needed.

    arguments: run, stage (the number of one that is over), flat (false: the older document's files too).

    Raises `UserError` for bad arguments, `DataError` where the run has nothing to export yet or cannot be read.
    """
    order = as_struct(arguments, _Order)
    run = RunDirectory(order.run)
    if order.stage is not None:
        run = run.at_stage(order.stage)
    trained, review = open_reviewed(run, context.check)
    cfg, log = trained.settings, trained.log
    assert isinstance(cfg, ControlsConfig)
    model = ControlTransformer(**cfg.model.model_dump())
    trained.load_into(model)
    context.progress(1, STEPS, "steps")
    graph = export_graph(model)
    context.progress(2, STEPS, "steps")
    with alone(run):
        sentence = write_export(
            run.export,
            cfg,
            model.state_dict(),
            review=review.arrays,
            values=trained.values,
            log=log,
            graph=graph,
            flat=order.flat,
        )
    context.log(f"epoch {log.best_epoch}, score {log.best_score:.4f}")
    log_files(context, run.export, (*FILES, *FLAT_FILES) if order.flat else FILES)
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
