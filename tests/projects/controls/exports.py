"""Exported files for the tests: a tiny model with random weights, in either form of config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from projects.controls.layout import BINARY, CONTROL_NAMES
from projects.controls.model import ControlTransformer

SIZES: dict[str, Any] = {"d_model": 32, "nhead": 2, "num_layers": 2, "dim_feedforward": 32, "max_seq_len": 30}
THRESHOLDS = [round(0.3 + 0.02 * k, 2) for k in range(15)]


def tiny_model(seed: int = 0) -> ControlTransformer:
    """Random weights, larger than at the start of a training so that its answers differ from frame to frame."""
    torch.manual_seed(seed)
    model = ControlTransformer(**SIZES, dropout=0.2).eval().requires_grad_(False)
    for head in (model.action, model.look, model.hotbar, model.cursor, model.inv):
        head[-1].weight.mul_(6)  # type: ignore[operator]
    model.normalise(torch.randn(671) * 0.1, torch.rand(671) + 0.5)
    return model


def nested() -> dict[str, Any]:
    return {
        "version": 2,
        "model": {
            "input_dim": 671, **SIZES, "dropout": 0.2,
            "num_action": 12, "num_look": 2, "num_hotbar": 9, "num_cursor": 2, "num_inv_click": 3,
        },
        "features": {"history_frames": 5, "state_lagged_one_frame": ["sprinting", "hotbar_slot"]},
        "thresholds": {"action": THRESHOLDS[:12], "hotbar_min_confidence": 0.2, "inv_click": THRESHOLDS[12:]},
        "post_processing": {
            "hysteresis_margin": 0.02, "look_deadzone": 0.1, "look_ema_alpha": 0.4, "look_rate_limit": 0.2,
            "cursor_ema_alpha": 0.6,
        },
    }  # fmt: skip


def flat() -> dict[str, Any]:
    """As the older document writes it."""
    return {
        "version": 2,
        "input_dim": 671,
        **SIZES,
        "dropout": 0.2,
        "num_action_controls": 12,
        "num_look_controls": 2,
        "num_hotbar_slots": 9,
        "num_cursor_controls": 2,
        "num_inv_controls": 3,
        "control_names": list(CONTROL_NAMES),
        "thresholds": {CONTROL_NAMES[column]: THRESHOLDS[k] for k, column in enumerate(BINARY)},
        "look_deadzone": 0.1,
        "look_smoothing_alpha": 0.4,
        "action_history_length": 5,
        "action_history_dropout": 0.3,
        "game_state_dim": 46,
        "training": {"epochs_trained": 150, "best_combined_score": 0.82, "per_head_metrics": {}},
    }


def write(folder: Path, config: dict[str, Any], state: Any = None) -> Path:
    """The files of an export, by the names of their form."""
    folder.mkdir(parents=True, exist_ok=True)
    tag = "_v2" if "model" in config else ""
    torch.save(tiny_model().state_dict() if state is None else state, folder / f"control_policy{tag}.pt")
    (folder / f"control_config{tag}.json").write_text(json.dumps(config))
    return folder
