"""The engine's own loop trains all three phases; a run that is killed in the third goes on bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from engines.training import checkpoint
from engines.training.project import Context
from projects.agent.net import SCALED
from projects.agent.project import Agent
from tests.projects.agent.runs import Run, config, flat, games


class KilledError(Exception):
    """What ends a run as a kill would: nothing is saved."""


class Mortal(Agent):
    """An agent whose run is killed after a step."""

    def __init__(self, last: int) -> None:
        self._last = last

    def after_step(self, model: nn.Module, ctx: Context) -> None:
        if ctx.step + 1 == self._last:
            raise KilledError


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return games(tmp_path_factory.mktemp("arena") / "games")


@pytest.fixture(scope="module")
def steady(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of which nothing was killed."""
    run = Run(tmp_path_factory.mktemp("steady") / "run", config(data))
    assert run.train() == "finished"
    return run


@pytest.mark.parametrize("steps", [(7,), (8, 11)])
def test_a_run_that_is_killed_in_its_dreams_goes_on_bit_for_bit(
    data: Path, steady: Run, tmp_path: Path, steps: tuple[int, ...]
) -> None:
    """In the first epoch of phase 3, whose beginning is then done again, and in the second."""
    cfg = config(data)
    for attempt, last in enumerate(steps, 1):
        killed = Run(tmp_path / "run", cfg, Mortal(last), attempt)
        if attempt > 1:
            killed.trainer.restore(checkpoint.load(killed.run.last))
        with pytest.raises(KilledError):
            killed.train()
    again = Run(tmp_path / "run", cfg, attempt=len(steps) + 1)
    again.trainer.restore(checkpoint.load(again.run.last))
    assert again.train() == "finished"
    ours, theirs = (flat(checkpoint.load(run.run.last)) for run in (again, steady))
    assert ours.keys() == theirs.keys()
    different = [
        place for place, value in ours.items()
        if not (torch.equal(value, theirs[place]) if torch.is_tensor(value) else value == theirs[place])
    ]  # fmt: skip
    assert different == []


def test_each_phase_trains_its_own_parts(steady: Run) -> None:
    world, agent = (checkpoint.load(steady.run.stage_best(number))["model"] for number in (1, 2))
    dream = checkpoint.load(steady.run.last)["model"]
    changed = [name for name in agent if not torch.equal(agent[name], dream[name])]
    parts = {name.split(".")[0] for name in changed}
    assert parts == {"policy", "prior", "value", "rms"}
    for name in agent:
        if name.startswith("prior."):
            assert torch.equal(dream[name], agent[name.replace("prior.", "policy.", 1)]), name
    assert {name.split(".")[0] for name in agent if not torch.equal(world[name], agent[name])} == {
        "dynamics", "policy", "reward", "rms",
    }  # fmt: skip
    weights = {name: float(dream[f"rms.{name}.weight"]) for name in SCALED}
    assert all(weight > 0 for weight in weights.values())


def test_the_table_has_every_phase(steady: Run) -> None:
    world, agent, *dreams = steady.trainer.state.log
    assert world["train.dynamics"] > 0
    assert "validation.reward_auc" not in world
    for name in ("reward_r2", "movement_accuracy", "movement_self_fed", "action_gap", "played_return", "bc"):
        assert isinstance(agent[f"validation.{name}"], float), name
    assert agent["train.dynamics.scale"] > 0
    for row in dreams:
        assert row["score"] == row["validation.played_return"]
        assert row["train.kl"] >= -1e-6
        assert 0 <= row["train.gains"] <= 1
        for name in ("value", "policy", "imagined_return", "imagined_deaths", "entropy", "kl"):
            assert isinstance(row[f"validation.{name}"], float), name
    assert dreams[0]["train.dynamics"] is None
