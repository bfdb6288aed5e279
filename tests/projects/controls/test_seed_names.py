"""The names and settings of the source documents: taken, honoured, or refused with a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engines.basics.errors import UserError
from engines.contract.config import load_config
from engines.training.project import Context
from projects.controls.baselines import target_rows
from projects.controls.config import ControlsConfig
from projects.controls.layout import LOOK
from projects.controls.metrics import combined_score
from projects.controls.project import ControlsProject
from projects.controls.recordings import read_folder, write_recording
from projects.controls.spec import SPEC
from tests.projects.controls.sessions import random_session

CONTEXT = Context(0, 0, 0.0, "", frozenset(head.name for head in SPEC.heads))
SEED = """\
project: controls
data: {path: /data}
training:
  learning_rate: 3e-4
  max_epochs: 200
  early_stop_patience: 30
  gradient_clip: 2.0
  action_history_dropout: 0.4
  batch_size: 128
  weight_decay: 1e-3
  warmup_epochs: 7
"""


def config(path: Path, **sections: Any) -> ControlsConfig:
    model = {"d_model": 16, "nhead": 2, "num_layers": 1, "dim_feedforward": 16}
    data = {"path": str(path), **sections.pop("data", {})}
    return ControlsConfig.model_validate({"project": "controls", "data": data, "model": model, **sections})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("recordings")
    for k in range(3):
        write_recording(base / f"s{k}.npz", random_session(f"s{k}", 500, k))
    return base


def evaluated(cfg: ControlsConfig) -> tuple[ControlsProject, Any, Any, Any]:
    """Project, split, losses of the first validation windows, and the result."""
    project = ControlsProject()
    split = project.data(cfg, torch.device("cpu"))
    torch.manual_seed(0)
    model = project.model(cfg, split).eval()
    evaluation = project.evaluation(cfg, split)
    batch = split.validation.batch(torch.arange(len(split.validation)), None)
    with torch.inference_mode():
        losses = evaluation.add(model, batch, CONTEXT)
        assert {name: float(loss.total) for name, loss in project.losses(model, batch, CONTEXT).items()} == {
            name: float(loss.total) for name, loss in losses.items()
        }
    return project, split, (model, batch, losses), evaluation.result()


def test_the_training_settings_go_by_the_names_of_the_document(tmp_path: Path) -> None:
    (tmp_path / "seed.yaml").write_text(SEED)
    settings = load_config(tmp_path / "seed.yaml").settings
    training = settings.training
    assert (training.lr, training.epochs, training.patience, training.grad_clip) == (3e-4, 200, 30, 2.0)
    assert settings.data.model_dump()["history_dropout"] == 0.4
    changed = load_config(tmp_path / "seed.yaml", ["training.learning_rate=1e-3", "training.patience=4"]).settings
    assert (changed.training.lr, changed.training.patience) == (1e-3, 4)
    (tmp_path / "both.yaml").write_text(SEED + "  lr: 1e-3\n")
    with pytest.raises(UserError, match=r"training\.learning_rate is another name for training\.lr"):
        load_config(tmp_path / "both.yaml")


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("data.window=20", "window is 20, expected 30: an exported policy buffers as many frames"),
        ("data.history_length=3", "history_length is 3, expected 5: the 671 features of a row hold the controls of 5"),
        ("score_weights.idle=-1", "score_weights.idle"),
    ],
)
def test_a_value_that_cannot_work_is_a_sentence(tmp_path: Path, section: str, said: str) -> None:
    (tmp_path / "seed.yaml").write_text(SEED)
    with pytest.raises(UserError) as caught:
        load_config(tmp_path / "seed.yaml", [section])
    assert said in str(caught.value)
    nothing = [f"score_weights.{name}=0" for name in ("action_f1", "look", "hotbar", "cursor", "inv", "idle")]
    with pytest.raises(UserError, match="score_weights are all 0"):
        load_config(tmp_path / "seed.yaml", nothing)
    load_config(tmp_path / "seed.yaml", ["data.window=30", "data.history_length=5"])


def test_score_weights_make_the_score_of_the_run_and_of_its_report(folder: Path) -> None:
    weights = {"action_f1": 1.0, "look": 3.0, "hotbar": 0.0, "cursor": 0.0, "inv": 0.0, "idle": 4.0}
    cfg = config(folder, score_weights=weights)
    project, split, (model, _, _), result = evaluated(cfg)
    values = result.values
    assert values["action_f1"] is not None
    by_hand = (values["action_f1"] + 3 * (1 - values["look_mse"]) + 4 * values["idle_accuracy"]) / 8
    assert result.score == pytest.approx(by_hand)
    assert result.score != pytest.approx(combined_score(values), abs=1e-3)
    table = project.report(cfg, split, model, result)["baselines"]
    rows: dict[Any, dict[str, Any]] = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert rows["this run"]["score"] == result.score
    zero = rows["all-zero"]
    assert zero["score"] == pytest.approx((zero["action_f1"] + 3 * (1 - zero["look_mse"]) + 4) / 8)


def test_a_weight_of_nothing_that_can_be_judged_gives_no_score() -> None:
    weights = {"action_f1": 0.0, "look": 0.0, "hotbar": 0.0, "cursor": 1.0, "inv": 0.0, "idle": 0.0}
    values = {"action_f1": 0.5, "look_mse": 0.1, "hotbar_accuracy": 0.2, "cursor_mse": None, "inv_f1": 0.3}
    assert combined_score({**values, "idle_accuracy": 1.0}, weights) is None


def test_the_dead_zone_decides_what_is_trained_on_and_judged(folder: Path) -> None:
    assert not np.isclose(0.4, 0.08)
    _, _, (_, batch, losses), result = evaluated(config(folder, data={"look_deadzone": 0.4}))
    look = batch["target"][:, LOOK[0] : LOOK[-1] + 1]
    active = (look.square().sum(1).sqrt() > 0.4) & batch["gameplay"]
    assert 0 < int(active.sum()) < int(((look.square().sum(1).sqrt() > 0.08) & batch["gameplay"]).sum())
    assert torch.equal(batch["look_active"] & batch["gameplay"], active)
    assert int(losses["look"].count) == 2 * int(active.sum())
    kept = active.numpy()
    errors = (result.prediction.look[kept] - look.numpy()[kept]).astype(np.float64) ** 2
    assert result.values["look_mse"] == pytest.approx(errors.mean())
    baseline = target_rows(read_folder(folder, 0.4)).truth.masks.look
    assert baseline.sum() < target_rows(read_folder(folder)).truth.masks.look.sum()


def test_the_loss_of_look_is_the_one_that_is_named(folder: Path) -> None:
    _, _, (model, batch, square), _ = evaluated(config(folder, loss={"look": "mse"}))
    _, _, (_, _, smooth), _ = evaluated(config(folder))
    active = batch["look_active"] & batch["gameplay"]
    with torch.inference_mode():
        errors = model(batch["features"], batch["mask"])["look"] - batch["target"][:, LOOK[0] : LOOK[-1] + 1]
    errors = errors[active].double()
    assert float(square["look"].total) == pytest.approx(float(errors.square().sum()), rel=1e-5)
    small = errors.abs() < 1
    by_hand = torch.where(small, errors.square() / 2, errors.abs() - 0.5).sum()
    assert float(smooth["look"].total) == pytest.approx(float(by_hand), rel=1e-5)
    assert int(square["look"].count) == int(smooth["look"].count) == 2 * int(active.sum())
    others = [name for name in square if name != "look"]
    assert [float(square[name].total) for name in others] == [float(smooth[name].total) for name in others]
