"""A minute in the world of a model that was trained for seconds, led by players who press anything."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runtime.attempt import carry_out
from engines.training.engine import train
from engines.training.trained import open_run
from projects.melee.demo.task import make
from projects.melee.frames import ACTION, HITLAG, PERCENT, SHIELD, STOCKS, Frames
from projects.melee.project import Melee, past_frames, true_games
from projects.melee.rollout import roll
from projects.melee.world import WorldModel
from tests.projects.controls.task_context import Listener

MINUTE = 3600
CONFIG = """
project: melee
data: {path: STORE, K: 1, projectiles: 0}
model: {architecture: mlp, d_model: 64, n_layers: 1}
loss_weights: {continuous: 6.0, velocity: 6.0}
training: {epochs: 1, steps_per_epoch: 120, batch_size: 64, warmup_epochs: 0, lr: 4e-3}
rollouts: {starts: 2, windows: 8}
launch: {device: cpu, threads: 1}
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    base = tmp_path_factory.mktemp("dream")
    make({"out": str(base / "store"), "games": 3, "minutes": 0.6}, Listener())
    (base / "config.yaml").write_text(CONFIG.replace("STORE", str(base / "store")))
    run = launch.prepare_training(base / "config.yaml", [], run_dir=base / "runs" / "a-run")
    assert carry_out(run, 1, train) == 0
    return run


def anything(frames: int, seed: int) -> Tensor:
    """Controllers (1, frames, 2, 13) of players who tilt a stick or press something for some frames, at random."""
    random, control = np.random.default_rng(seed), np.zeros((frames, 2, 13), np.float32)
    for player in (0, 1):
        first = 0
        while first < frames:
            held = slice(first, first := first + int(random.integers(1, 30)))
            control[held, player, :4] = random.choice([0, 0.5, 1], 4, p=[0.25, 0.5, 0.25])
            control[held, player, 4:] = random.random(9) < 0.1
    return torch.from_numpy(control)[None]


@pytest.fixture(scope="module")
def dream(trained: RunDirectory) -> Frames:
    opened = open_run(trained)
    project, cfg = Melee(), opened.settings
    project.data(cfg, torch.device("cpu"))
    model = opened.load_into(project.build(cfg))
    assert isinstance(model, WorldModel)
    past = true_games(project.validation, np.array([0]), np.array([200]), past_frames(cfg), horizon=0)
    return roll(model, past, anything(MINUTE, seed=1), seed=0)


def test_a_minute_of_anything_breaks_no_rule(dream: Frames) -> None:
    assert dream.frames == MINUTE
    assert dream.state.isfinite().all()
    assert (dream.value(PERCENT) >= 0).all()
    assert (dream.value(HITLAG) >= 0).all()
    assert (dream.value(SHIELD) >= 0).all()
    assert (dream.value(STOCKS).diff(dim=1) <= 0).all()


def test_the_minute_is_no_picture(dream: Frames) -> None:
    """The players' keys do something, and who is hit is hurt."""
    assert len(set(dream.ints[..., ACTION].flatten().tolist())) > 5
    assert (dream.value(PERCENT).diff(dim=1) > 0).any()
