"""What a run delivers: the weights, and a file that says how to build the model and what its numbers mean."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from torch import Tensor

from engines.contract.rundir import RunDirectory
from engines.runs.saved import read_saved
from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from engines.tasks.exporting import alone, as_json, log_files, replace_export
from engines.training.project import TrainingLog
from engines.training.trained import open_run, serialised
from projects.agent.config import AgentConfig
from projects.agent.layout import ABILITIES, DEATH_REWARD, EVENT_GOLD, GOLD_REWARD, MOVEMENTS, SLICES

WEIGHTS, ABOUT = "agent.pt", "agent.json"


class _Order(msgspec.Struct):
    run: Path
    stage: int | None = None


def layout() -> dict[str, Any]:
    """What the weights were trained to say."""
    return {
        "movements": MOVEMENTS, "slices": SLICES, "abilities": list(ABILITIES),
        "rewards": {"gold": GOLD_REWARD, "death": DEATH_REWARD, "event_gold": EVENT_GOLD},
        "frame": "action t produced frame t, reward t ended in it; level 1 is clean",
    }  # fmt: skip


def write_export(
    folder: Path, cfg: AgentConfig, metadata: Mapping[str, Any], state: Mapping[str, Tensor], log: TrainingLog
) -> None:
    """Write both files into `folder`, all or nothing."""
    about = {
        "model": cfg.model.model_dump(), "objective": cfg.objective.model_dump(),
        "imagination": cfg.imagination.model_dump(), "data": cfg.data.model_dump(exclude={"path"}), **metadata,
        "best_epoch": log.best_epoch, "best_score": log.best_score,
    }  # fmt: skip
    replace_export(folder, {WEIGHTS: serialised(state), ABOUT: as_json(about)}, (WEIGHTS, ABOUT))


def export(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Write the export of a run from its best checkpoint. Raises `UserError`; `DataError` where there is none yet."""
    order = as_struct(arguments, _Order)
    run = RunDirectory(order.run)
    if order.stage is not None:
        run = run.at_stage(order.stage)
    trained = open_run(run)
    metadata = read_saved(run.best).metadata
    with alone(run):
        write_export(run.export, trained.settings, metadata, trained.weights, trained.log)
    context.log(f"epoch {trained.log.best_epoch}, score {trained.log.best_score:.4f}")
    log_files(context, run.export, (WEIGHTS, ABOUT))
