"""The older document's files: the same policy, and weights that load into the author's own class."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from engines.basics.errors import DataError
from engines.training.project import TrainingLog
from projects.controls.config import ControlsConfig
from projects.controls.evaluation import review_arrays, sending_arrays
from projects.controls.export import write_export
from projects.controls.exported import read_exported
from projects.controls.layout import BINARY, CONTROL_NAMES
from projects.controls.losses import PosWeights
from projects.controls.masks import frame_masks
from projects.controls.metrics import Prediction, Truth
from projects.controls.model import ControlTransformer
from projects.controls.policy import ControlPolicy
from tests.projects.controls.exports import SIZES, tiny_model
from tests.projects.controls.sessions import random_session

DOCS = Path(__file__).parents[3] / "docs" / "controls.md"
LOG = TrainingLog(({"epoch": 1, "step": 8, "score": 0.5},), 1, 0.5)
FLAT = {"control_config.json", "control_policy.pt", "training_log.json"}


def export(folder: Path, *, flat: bool, sent: bool = False, **options: Any) -> Path:
    """The export of a tiny model, its thresholds searched on made-up predictions, with rules of its own if `sent`."""
    session, rng = random_session("a", 300, 0), np.random.default_rng(1)
    cfg = ControlsConfig.model_validate(
        {"project": "controls", "data": {"path": "x"}, "model": {**SIZES, "dropout": 0.2, **options},
         "post_processing": {"hysteresis_margin": 0.02, "look_rate_limit": 0.2, "cursor_ema_alpha": 0.7,
                             **({"pulse_margin": 0.0, "kinds": {"attack": "hold"}} if sent else {})}}
    )  # fmt: skip
    prediction = Prediction(*(rng.random((300, width)).astype(np.float32) for width in (12, 2, 9, 2, 3)))
    truth = Truth(session.controls, session.controls, frame_masks(session.controls, session.state))
    weights = PosWeights(torch.ones(12), torch.ones(3), ())
    groups = np.zeros(300, np.int64)
    sending = sending_arrays(np.arange(300) / 20, 20.0, cfg.post_processing.rules) if sent else {}
    review = {**review_arrays(prediction, truth, groups), **sending, **weights.arrays()}
    state = tiny_model().state_dict()
    write_export(folder, cfg, state, review=review, values={"action_f1": 0.5}, log=LOG, flat=flat)
    return folder


def test_they_are_written_where_asked_for_and_gone_where_not(tmp_path: Path) -> None:
    usual = {"control_config_v2.json", "control_policy_v2.pt", "training_log_v2.json"}
    assert {file.name for file in export(tmp_path, flat=False).iterdir()} == usual
    assert {file.name for file in export(tmp_path, flat=True).iterdir()} == usual | FLAT
    assert {file.name for file in export(tmp_path, flat=False).iterdir()} == usual


@pytest.mark.parametrize(
    ("option", "value"), [("readout", "filter"), ("look_residual", 0.5), ("cursor_residual", 0.8), ("whiten", True)]
)
def test_a_model_with_options_has_no_flat_form(tmp_path: Path, option: str, value: Any) -> None:
    export(tmp_path, flat=True)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    said = rf"no such thing as model\.{option} {value}, which this one was trained with; export it without flat=true\."
    with pytest.raises(DataError, match=said):
        export(tmp_path, flat=True, **{option: value})
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    export(tmp_path, flat=False, **{option: value})


@pytest.mark.parametrize("sent", [False, True])
def test_the_flat_files_alone_are_the_same_policy(tmp_path: Path, sent: bool) -> None:
    export(tmp_path / "both", flat=True, sent=sent)
    (tmp_path / "flat").mkdir()
    for name in FLAT:
        shutil.copy(tmp_path / "both" / name, tmp_path / "flat" / name)
    nested, flat = ControlPolicy.load(tmp_path / "both"), ControlPolicy.load(tmp_path / "flat")
    session = random_session("b", 45, 5)
    presses = 0.0
    for k in range(len(session)):  # at 30 frames a second, so that a rate counts
        ours, theirs = (p.step(session.frames[k], session.state[k], k / 30) for p in (nested, flat))
        assert np.array_equal(ours.controls, theirs.controls)
        assert np.array_equal(ours.degrees, theirs.degrees)
        assert np.array_equal(ours.raw.action, theirs.raw.action)
        presses += float(ours.controls.sum())
    assert presses > 0
    configs = [read_exported(tmp_path / name) for name in ("both", "flat")]
    assert configs[0].post == configs[1].post
    assert configs[0].fps == configs[1].fps == (20.0 if sent else None)


def test_the_flat_config_has_the_names_of_the_document(tmp_path: Path) -> None:
    export(tmp_path, flat=True)
    config = json.loads((tmp_path / "control_config.json").read_text())
    nested = json.loads((tmp_path / "control_config_v2.json").read_text())
    wanted = (
        "version input_dim d_model nhead num_layers dim_feedforward dropout max_seq_len num_action_controls "
        "num_look_controls num_hotbar_slots num_cursor_controls num_inv_controls control_names thresholds "
        "look_deadzone look_smoothing_alpha action_history_length action_history_dropout game_state_dim feature_mean "
        "feature_std training"
    ).split()
    assert set(wanted) <= set(config)
    assert config["control_names"] == list(CONTROL_NAMES)
    values = [*nested["thresholds"]["action"], *nested["thresholds"]["inv_click"]]
    assert [config["thresholds"][CONTROL_NAMES[column]] for column in BINARY] == values
    assert (config["num_inv_controls"], config["action_history_length"], config["game_state_dim"]) == (3, 5, 46)
    assert (config["look_smoothing_alpha"], config["look_rate_limit"]) == (0.35, 0.2)
    assert config["feature_std"] == pytest.approx(tiny_model().feature_std.tolist())
    assert config["training"] == {
        "epochs_trained": 1, "best_combined_score": 0.5, "per_head_metrics": {"action_f1": 0.5},
    }  # fmt: skip


class TheirClass(nn.Module):
    """The architecture with the author's names of its parts, and without normalisation."""

    def __init__(self) -> None:
        super().__init__()
        d, n = SIZES["d_model"], SIZES["num_layers"]
        self.input_proj = nn.Linear(671, d)
        self.pos_embedding = nn.Embedding(30, d)
        layer = nn.TransformerEncoderLayer(d, SIZES["nhead"], SIZES["dim_feedforward"], 0.2, batch_first=True)
        self.transformer_encoder = nn.TransformerEncoder(layer, n, enable_nested_tensor=False)
        self.temporal_decay = nn.Parameter(torch.zeros(()))

        def head(outputs: int) -> nn.Sequential:
            return nn.Sequential(nn.Linear(d, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, outputs))

        self.action_head, self.look_head, self.hotbar_head = head(12), head(2), head(9)
        self.cursor_head, self.inv_click_head = head(2), head(3)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        encoded = self.transformer_encoder(self.input_proj(x) + self.pos_embedding.weight)
        weights = (self.temporal_decay * torch.linspace(1, 0, 30)).exp()
        pooled = (encoded * weights[:, None]).sum(1) / weights.sum()
        return {
            "action_logits": self.action_head(pooled),
            "look": self.look_head(pooled).tanh(),
            "hotbar_logits": self.hotbar_head(pooled),
            "cursor": self.cursor_head(pooled).sigmoid(),
            "inv_click_logits": self.inv_click_head(pooled),
        }


def test_the_conversion_in_the_docs_gives_weights_of_the_authors_class() -> None:
    """The lines that `docs/controls.md` shows are run, and the table beside them names every tensor."""
    (code,) = re.findall(r"```python author\n(.*?)```", DOCS.read_text(), re.DOTALL)
    ours = tiny_model()
    space: dict[str, object] = {"state": ours.state_dict(), "config": {"model": SIZES}}
    exec(code, space)
    for option in ({"readout": "filter"}, {"cursor_residual": 0.8}, {"look_residual": 0.1}, {"whiten": True}):
        with pytest.raises(ValueError, match=f"this class has no {next(iter(option))}"):
            exec(code, {"state": ours.state_dict(), "config": {"model": {**SIZES, **option}}})
    theirs = TheirClass().eval()
    theirs.load_state_dict(space["renamed"])  # type: ignore[arg-type]
    features = torch.randn(4, 30, 671)
    with torch.inference_mode():
        expected, found = ours(features, torch.ones(4, 30, dtype=torch.bool)), theirs(features)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        assert torch.allclose(value, found[name], atol=1e-5), name
    table = DOCS.read_text().split("## Names, files and tensors")[1].split("\n## ")[0]
    newest = ControlTransformer(**SIZES, readout="filter", cursor_residual=0.8, whiten=True)
    for part in {name.split(".")[0] for name in (*ours.state_dict(), *newest.state_dict())}:
        assert f"`{part}" in table, part
