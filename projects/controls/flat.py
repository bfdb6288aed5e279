"""The export in the form of the older document: its flat config, and weights without the normalisation in them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from engines.basics.errors import DataError
from engines.tasks.exporting import as_json
from engines.training.trained import serialised
from projects.controls.config import PLAIN
from projects.controls.exported import (
    FLAT_OUTPUTS,
    FLAT_POST,
    OLD_CONFIG_FILE,
    OLD_LOG_FILE,
    OLD_POLICY_FILE,
)
from projects.controls.layout import BINARY, CONTROL_NAMES, HISTORY, STATE_SIZE

STATISTICS = ("feature_mean", "feature_std")


def flat_files(nested: Mapping[str, Any], state: Mapping[str, Tensor], log: bytes, dropout: float) -> dict[str, bytes]:
    """Its files by name: weights, config and log.

    nested: our config of the same export. state: the weights, with mean and deviation of the features among them. log:
    the training log. dropout: of the history in training.

    Raises `DataError` where the model has options: their class may load such weights, but would answer otherwise.
    """
    model = nested["model"]
    if others := [f"model.{name} {model[name]}" for name in PLAIN if name in model]:
        raise DataError(
            f"flat=true: the older document's model has no such thing as {', '.join(others)}, which this one was "
            "trained with; export it without flat=true."
        )
    weights = serialised({name: value for name, value in state.items() if name not in STATISTICS})
    config = flat_config(nested, state, dropout) | {"policy_sha256": hashlib.sha256(weights).hexdigest()}
    return {OLD_POLICY_FILE: weights, OLD_CONFIG_FILE: as_json(config), OLD_LOG_FILE: log}


def flat_config(nested: Mapping[str, Any], state: Mapping[str, Tensor], dropout: float) -> dict[str, Any]:
    """The config; what the document has no name for, from the margins to the frame rate, has ours."""
    model, thresholds, training = nested["model"], nested["thresholds"], nested["training"]
    post, features = nested["post_processing"], nested["features"]
    values = [*thresholds["action"], *thresholds["inv_click"]]
    sizes = ("input_dim", "d_model", "nhead", "num_layers", "dim_feedforward", "dropout", "max_seq_len")
    return {
        "version": 2,
        **{name: model[name] for name in sizes},
        **{name: len(columns) for name, columns in FLAT_OUTPUTS.items()},
        "control_names": list(CONTROL_NAMES),
        "thresholds": {
            **{CONTROL_NAMES[column]: value for column, value in zip(BINARY, values, strict=True)},
            "hotbar_min_confidence": thresholds["hotbar_min_confidence"],
        },
        **{theirs: post[ours] for ours, theirs in {**FLAT_POST, "kinds": "kinds"}.items() if ours in post},
        "action_history_length": HISTORY,
        "action_history_dropout": dropout,
        "game_state_dim": STATE_SIZE,
        **{name: features[name] for name in ("state_lagged_one_frame", "frames_per_second") if name in features},
        **{name: state[name].cpu().double().tolist() for name in STATISTICS},
        "training": {name: training[name] for name in ("epochs_trained", "best_combined_score", "per_head_metrics")},
    }
