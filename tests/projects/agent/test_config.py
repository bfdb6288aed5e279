"""Settings of an agent run: the configs that come with it, and what cannot work together said in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from engines.basics import yaml12
from engines.basics.errors import DataError, UserError
from projects.agent.config import AgentConfig
from tests.projects.agent.runs import CPU, STAGES, config, games, opened

CONFIGS = Path(__file__).resolve().parents[3] / "configs"
PMPO = {**STAGES[2], "heads": ["policy"]}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return games(tmp_path_factory.mktemp("arena") / "games")


@pytest.mark.parametrize("name", ["agent_demo.yaml", "agent_smoke.yaml", "agent_league.yaml", "agent_medium.yaml"])
def test_the_configs_that_come_with_it_can_be_read(name: str) -> None:
    tree: Any = yaml12.read((CONFIGS / name).read_text())[0]
    stages = AgentConfig.model_validate(tree).training.stages
    assert [stage.heads for stage in stages][:2] == [["dynamics"], ["dynamics", "reward", "bc"]]
    assert all(stage.begin == "best" for stage in stages[1:])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rates": {"agnet": {}}}, "no stage of training.stages is called 'agnet'"),
        ({"imagination": {"context": 40}}, "context 40 must be at most data.frames 10"),
        ({"imagination": {"context": 9}, "model": {"context": 8}}, "context 9 must be at most model.context 8"),
        ({"objective": {"finest": 6}}, "finest 6 must be a power of two"),
        ({"imagination": {"steps": 8}}, "steps 8 must be a power of two, at most objective.finest 4"),
        ({"imagination": {"steps": 3}}, "steps 3 must be a power of two, at most objective.finest 4"),
        ({"imagination": {"noise": 0.8}}, "noise 0.8 leaves nothing to look back at"),
        ({"model": {"offsets": 10}}, "offsets 10 must be below data.frames 10"),
        ({"model": {"reward_range": 2.0}}, r"reward_range 2.0 ends at rewards of ±6.4, but a death is -10"),
        (
            {"model": {"value_range": 2.0}, "imagination": {"discount": 0.9}},
            "value_range 2.0 .* are worth -11 at .* 0.9",
        ),
        ({"model": {"value_range": 5.0}, "imagination": {"discount": 0.997}}, "±147, but .* are worth -171 at"),
        ({"objective": {"shortcut_share": 0.05}}, "shortcut_share 0.05 of a batch of 6 is no row"),
        ({"objective": {"finest": 1}}, "finest\n.*greater than or equal to 2"),
        ({"objective": {"independent": 1.0}}, "independent\n.*less than 1"),
        ({"objective": {"history_dropout": 1.0}}, "history_dropout\n.*less than 1"),
        ({"played": {"windows": 0}}, "windows\n.*greater than or equal to 1"),
        ({"training": {"stages": [STAGES[0], STAGES[2]]}}, "'dream' learns in dreams, .* trains reward, bc"),
        ({"training": {"stages": [*STAGES[:2], PMPO]}}, "'dream' trains the policy without a value"),
        ({"training": {"stages": [{"name": "world", "heads": []}]}}, "heads\n.*at least 1 item"),
    ],
)
def test_settings_that_do_not_fit_are_named(data: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        config(data, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"imagination": {"steps": 4}, "objective": {"shortcut_share": 0.0}},
        {"imagination": {"noise": 0.75, "context": 10}, "model": {"offsets": 9, "reward_range": 2.4}},
        {"imagination": {"discount": 0.997}, "model": {"value_range": 5.2}},
        {"training": {"stages": [*STAGES[:2], {**STAGES[2], "heads": ["value"]}, {**PMPO, "name": "acts"}]}},
        {"training": {"stages": [{"name": "agent", "heads": ["dynamics", "reward", "bc"]}]}},
    ],
)
def test_settings_that_just_fit_are_taken(data: Path, changes: dict[str, Any]) -> None:
    assert config(data, **changes).objective.finest == 4


def test_models_and_data_that_cannot_be_are_said_in_a_sentence(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^model: width 16, 3 heads"):
        opened(config(data, model={"heads": 3}))
    with pytest.raises(UserError, match=r"^model: latents of 3 × 3 cells do not divide into patches of 2\.$"):
        opened(config(data, model={"patch": 2}))
    with pytest.raises(UserError, match=r"^model: of 2 layers none attends over time with time_every 3\.$"):
        opened(config(data, model={"time_every": 3}))
    with pytest.raises(UserError, match=r"^model: context 5000 must be at most 4096 frames\.$"):
        opened(config(data, model={"context": 5000}))
    with pytest.raises(DataError, match="holds no game"):
        opened(config(tmp_path))
    with pytest.raises(DataError, match="holds no game 'demo_009'"):
        opened(config(data, data={"validation": ["demo_009"]}))
    assert torch.device("cpu") == CPU
