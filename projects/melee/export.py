"""What a run delivers: the weights, and a file that says how to build the model and what its columns mean."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from torch import Tensor

from engines.contract.rundir import RunDirectory
from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from engines.tasks.exporting import alone, log_files, replace_export
from engines.training.project import TrainingLog
from engines.training.trained import open_run, serialised
from projects.melee.config import MeleeConfig
from projects.melee.frames import CLASSES, CONTROL, INTS, SCALE, STATE, VOCABULARY

WEIGHTS, ABOUT = "world_model.pt", "world_model.json"


class _Order(msgspec.Struct):
    run: Path
    stage: int | None = None


def layout() -> dict[str, Any]:
    """Columns, scales and vocabularies that the weights were trained on."""
    return {
        "state": list(STATE), "scales": list(SCALE), "control": list(CONTROL), "ints": list(INTS),
        "classes": list(CLASSES), "vocabularies": VOCABULARY,
    }  # fmt: skip


def write_export(folder: Path, cfg: MeleeConfig, state: Mapping[str, Tensor], log: TrainingLog) -> None:
    """Write both files into `folder`, all or nothing."""
    about = {
        "model": cfg.model.model_dump(), "data": cfg.data.model_dump(exclude={"path"}), "layout": layout(),
        "best_epoch": log.best_epoch, "best_score": log.best_score,
    }  # fmt: skip
    content = msgspec.json.format(msgspec.json.encode(about)) + b"\n"
    replace_export(folder, {WEIGHTS: serialised(state), ABOUT: content}, (WEIGHTS, ABOUT))


def export(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Write the export of a run from its best checkpoint. Raises `UserError`; `DataError` where there is none yet."""
    order = as_struct(arguments, _Order)
    run = RunDirectory(order.run)
    if order.stage is not None:
        run = run.at_stage(order.stage)
    trained = open_run(run)
    with alone(run):
        write_export(run.export, trained.settings, trained.weights, trained.log)
    context.log(f"epoch {trained.log.best_epoch}, score {trained.log.best_score:.4f}")
    log_files(context, run.export, (WEIGHTS, ABOUT))
