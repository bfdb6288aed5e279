"""The configs that are shipped: they load, and their evaluations are small beside their epochs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engines.contract.config import load_config
from projects.melee.config import MeleeConfig
from projects.melee.project import Melee, past_frames, row_length
from projects.melee.scores import HORIZONS

CONFIGS = Path(__file__).parents[3] / "configs"
SIZES = {
    # K, parameters without what sees projectiles; None where the view is not the original's
    "melee_cpu": (16, None), "melee_demo": (16, None), "melee_mlp": (1, None),
    "melee_medium": (10, 4_282_386), "melee_large": (60, 10_592_546),
}  # fmt: skip
USUAL_WINDOWS = 17 * 8_000
"""Of the games that the shipped configs of a CPU were chosen on."""
BACKWARD, ALONE = 3, 4
"""What a step costs beside a forward pass, and a frame that is computed alone beside one of many, at the most."""


def settings(name: str, *changes: str) -> MeleeConfig:
    cfg = load_config(CONFIGS / f"{name}.yaml", list(changes)).settings
    assert isinstance(cfg, MeleeConfig)
    return cfg


def test_every_config_is_here() -> None:
    assert {path.stem for path in CONFIGS.glob("melee_*.yaml")} == set(SIZES)


@pytest.mark.parametrize("name", SIZES)
def test_a_config_is_what_it_says(name: str) -> None:
    cfg = settings(name, "data.projectiles=0")
    K, parameters = SIZES[name]
    assert cfg.data.K == K
    if parameters is not None:
        with torch.device("meta"):
            assert sum(parameter.numel() for parameter in Melee().build(cfg).parameters()) == parameters


@pytest.mark.parametrize("name", SIZES)
def test_an_evaluation_is_at_most_a_tenth_of_an_epoch(name: str) -> None:
    """By the frames that go through the model. Measured on the real games: .08 of melee_cpu, .03 of melee_mlp."""
    cfg = settings(name)
    steps = cfg.training.steps_per_epoch or USUAL_WINDOWS // cfg.training.batch_size
    seen = row_length(cfg) - 1 if cfg.model.carry else cfg.data.K
    trained = BACKWARD * steps * cfg.training.batch_size * seen
    at_a_time = 1 if cfg.model.carry else cfg.data.K
    rolled = cfg.rollouts.starts * (past_frames(cfg) + ALONE * at_a_time * max(HORIZONS))
    assert rolled + cfg.rollouts.windows * seen <= trained / 10
