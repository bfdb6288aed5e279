"""What a run delivers: the weights, how to use them, and how they came about.

One path for the end of a training and for `cockpit export`: everything comes from the run's own records, the review
arrays of the best epoch among them, so that no data is read again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from numpy.typing import NDArray
from torch import Tensor

from engines.basics.reading import read_json
from engines.tasks.exporting import as_json, replace_export
from engines.training.project import TrainingLog
from engines.training.trained import serialised
from projects.controls.config import ControlsConfig
from projects.controls.exported import (
    CONFIG_FILE,
    GRAPH_FILE,
    LOG_FILE,
    OLD_CONFIG_FILE,
    OLD_LOG_FILE,
    OLD_POLICY_FILE,
    POLICY_FILE,
)
from projects.controls.flat import flat_files
from projects.controls.layout import (
    ACTION,
    CONTROL_NAMES,
    CURSOR,
    FEATURE_SIZE,
    HISTORY,
    HOTBAR,
    INV,
    LEAKING_STATE,
    LOOK,
    STATE_NAMES,
)
from projects.controls.thresholds import search_thresholds

FILES = (POLICY_FILE, GRAPH_FILE, CONFIG_FILE, LOG_FILE)
FLAT_FILES = (OLD_POLICY_FILE, OLD_CONFIG_FILE, OLD_LOG_FILE)
Arrays = Mapping[str, NDArray[Any]]
REVIEWED = ("thresholds", "thresholds_unsupported", "thresholds_reviewed")
"""Keys of the config that a person's review settles."""
REVIEW = "thresholds_review"
"""Who reviewed them when, of which checkpoint and with which support."""


def write_export(
    folder: Path,
    cfg: ControlsConfig,
    state: Mapping[str, Tensor],
    *,
    review: Arrays,
    values: Mapping[str, float | None],
    log: TrainingLog,
    graph: bytes | None = None,
    flat: bool = False,
) -> str:
    """Write the export into `folder`, all or nothing, and say in a sentence what became of reviewed thresholds.

    state: the best weights. review: arrays of that epoch, as an evaluation of the project gives them. values: its
    validation values. graph: the same weights as a graph, where there is one; an older graph is removed. flat: the
    files of the older document too; older ones are removed.

    Raises, with the older files untouched, OSError, and `DataError` where the older document has no such model.
    """
    weights = serialised(state)
    config = policy_config(cfg, review, values, log) | {"policy_sha256": hashlib.sha256(weights).hexdigest()}
    reviewed, sentence = _reviewed_before(folder / CONFIG_FILE, config)
    contents = {POLICY_FILE: weights, CONFIG_FILE: as_json(config | reviewed), LOG_FILE: as_json(training_log(log))}
    if flat:
        contents |= flat_files(config | reviewed, state, contents[LOG_FILE], cfg.data.history_dropout)
    if graph is not None:
        contents[GRAPH_FILE] = graph
    replace_export(folder, contents, (*FILES, *FLAT_FILES))
    return sentence


def policy_config(
    cfg: ControlsConfig, review: Arrays, values: Mapping[str, float | None], log: TrainingLog
) -> dict[str, Any]:
    """How to run the policy: sizes, thresholds and post-processing, with the training that made it."""
    weights = [float(weight) for weight in review["pos_weights"]]
    return {
        "version": 2,
        "model": {
            "input_dim": FEATURE_SIZE,
            **cfg.model.exported(),
            "num_action": len(ACTION),
            "num_look": len(LOOK),
            "num_hotbar": len(HOTBAR),
            "num_cursor": len(CURSOR),
            "num_inv_click": len(INV),
        },
        "features": {
            "history_frames": HISTORY,
            "state_lagged_one_frame": [STATE_NAMES[column] for column in LEAKING_STATE],
            "normalisation": "inside the model",
            **({"frames_per_second": float(review["fps"])} if "fps" in review else {}),
        },
        "control_names": CONTROL_NAMES,
        **search_thresholds(review, cfg.thresholds.hotbar_min_confidence, cfg.thresholds.search),
        "thresholds_reviewed": False,
        "post_processing": cfg.post_processing.exported(),
        "training": {
            "epochs": cfg.training.epochs,
            "batch_size": cfg.training.batch_size,
            "lr": cfg.training.lr,
            "weight_decay": cfg.training.weight_decay,
            "combined_score_weights": cfg.score_weights.model_dump(),
            "epochs_trained": len(log.epochs),
            "best_epoch": log.best_epoch,
            "best_step": next((row.get("step") for row in log.epochs if row["epoch"] == log.best_epoch), None),
            "best_combined_score": log.best_score,
            "per_head_metrics": values,
            "pos_weights": {
                "action": weights[: len(ACTION)],
                "inv_click": weights[len(ACTION) :],
                "unsupported": review["unsupported"].tolist(),
            },
        },
    }


def training_log(log: TrainingLog) -> dict[str, Any]:
    return {"version": 2, "best_epoch": log.best_epoch, "best_score": log.best_score, "epochs": log.epochs}


def _reviewed_before(path: Path, config: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Thresholds in the config at `path` that a person reviewed for the checkpoint of `config`, and a sentence."""
    try:
        before = read_json(path, dict[str, Any])
        if before["thresholds_reviewed"] is not True:
            return {}, ""
        reviewed = {key: before[key] for key in REVIEWED} | {REVIEW: before.get(REVIEW)}
        theirs, ours = ([made["training"][key] for key in ("best_epoch", "best_step")] for made in (before, config))
    except (OSError, msgspec.DecodeError, KeyError, TypeError):  # none, or nothing that could be kept
        return {}, ""
    if theirs == ours:
        return reviewed, "The reviewed thresholds are kept."
    return {}, (
        f"The thresholds reviewed for epoch {theirs[0]} are not kept, since the best epoch is {ours[0]} now: review "
        "them again with `cockpit thresholds RUN`."
    )
