"""What a finished run delivers: the weights, how to use them, and how they came about."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.contract.files import make_directory, replace_bytes, replace_with
from engines.thresholds.grid import Choice, binary_threshold, confidence_threshold
from engines.training.project import Result, TrainingLog
from projects.controls.config import ControlsConfig
from projects.controls.exported import POLICY_FILE
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
from projects.controls.losses import PosWeights
from projects.controls.metrics import SCORE_WEIGHTS


def write_policy(folder: Path, state: Mapping[str, Tensor]) -> None:
    """The weights as a plain state dict on the CPU, readable with `torch.load(…, weights_only=True)`."""
    on_cpu = {name: tensor.detach().cpu() for name, tensor in state.items()}

    def write(file: IO[bytes]) -> None:
        torch.save(on_cpu, file)

    make_directory(folder)
    replace_with(folder / POLICY_FILE, write)


def write_json(path: Path, content: object) -> None:
    """Indented JSON, whole or not at all; numbers that are not finite become null."""
    replace_bytes(path, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def policy_config(cfg: ControlsConfig, weights: PosWeights, result: Result, log: TrainingLog) -> dict[str, Any]:
    """How to run the policy: sizes, thresholds and post-processing, with the training that made it."""
    return {
        "version": 2,
        "model": {
            "input_dim": FEATURE_SIZE,
            **cfg.model.model_dump(),
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
        },
        "control_names": CONTROL_NAMES,
        **search_thresholds(result.review, cfg.thresholds.hotbar_min_confidence),
        "thresholds_reviewed": False,
        "post_processing": cfg.post_processing.model_dump(),
        "training": {
            "epochs": cfg.training.epochs,
            "batch_size": cfg.training.batch_size,
            "lr": cfg.training.lr,
            "weight_decay": cfg.training.weight_decay,
            "combined_score_weights": SCORE_WEIGHTS,
            "epochs_trained": len(log.epochs),
            "best_epoch": log.best_epoch,
            "best_combined_score": log.best_score,
            "per_head_metrics": result.values,
            "pos_weights": {
                "action": weights.action.tolist(),
                "inv_click": weights.inv.tolist(),
                "unsupported": weights.unsupported,
            },
        },
    }


def training_log(log: TrainingLog) -> dict[str, Any]:
    return {"version": 2, "best_epoch": log.best_epoch, "best_score": log.best_score, "epochs": log.epochs}


def search_thresholds(
    review: Mapping[str, NDArray[np.generic]], hotbar_default: float
) -> dict[str, dict[str, Any] | list[str]]:
    """`thresholds` from the 17-value grid on the validation windows, and the controls that could not be searched.

    Actions: F1 less half the false presses on idle frames. Inventory: F1. Hotbar: accuracy times coverage.
    """
    arrays = {name: np.asarray(array) for name, array in review.items()}
    choices = []
    for k in range(len(ACTION) + len(INV)):
        kept = arrays["masks"][:, k]
        idle = arrays["idle"][kept] if k < len(ACTION) else None
        choices.append(binary_threshold(arrays["scores"][kept, k], arrays["targets"][kept, k], idle))
    asked = arrays["hotbar_mask"]
    hotbar = confidence_threshold(arrays["hotbar_confidence"][asked], arrays["hotbar_correct"][asked])
    named: dict[str, Choice] = dict(zip(arrays["names"].tolist(), choices, strict=True)) | {"hotbar": hotbar}
    return {
        "thresholds": {
            "action": [choice.threshold for choice in choices[: len(ACTION)]],
            "hotbar_min_confidence": hotbar.threshold if hotbar.supported else hotbar_default,
            "inv_click": [choice.threshold for choice in choices[len(ACTION) :]],
        },
        "thresholds_unsupported": [name for name, choice in named.items() if not choice.supported],
    }
