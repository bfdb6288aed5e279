"""Exported configs, nested and flat: read as they say, or refused with a sentence."""

from __future__ import annotations

import copy
import hashlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engines.basics.errors import DataError
from projects.controls.exported import read_exported
from projects.controls.policy import ControlPolicy
from tests.projects.controls.exports import THRESHOLDS, flat, nested, tiny_model, write


def test_the_nested_form(tmp_path: Path) -> None:
    config = read_exported(write(tmp_path, nested()))
    assert config.policy == tmp_path / "control_policy_v2.pt"
    assert (config.action.tolist(), config.inv.tolist()) == (THRESHOLDS[:12], THRESHOLDS[12:])
    assert config.hotbar_confidence == 0.2
    assert config.lagged_state == (20, 44)
    assert (config.post.hysteresis_margin, config.post.look_ema_alpha, config.post.cursor_ema_alpha) == (0.02, 0.4, 0.6)
    assert config.statistics is None


def test_the_flat_form_with_the_defaults_of_what_it_does_not_say(tmp_path: Path) -> None:
    config = read_exported(write(tmp_path, flat()))
    assert config.policy == tmp_path / "control_policy.pt"
    assert (config.action.tolist(), config.inv.tolist()) == (THRESHOLDS[:12], THRESHOLDS[12:])
    assert config.lagged_state == ()
    assert (config.post.look_deadzone, config.post.look_ema_alpha) == (0.1, 0.4)
    assert (config.post.hysteresis_margin, config.post.look_rate_limit, config.post.cursor_ema_alpha) == (
        0.05,
        0.3,
        0.5,
    )
    assert config.hotbar_confidence == 0.3


def test_a_flat_config_names_only_some_thresholds(tmp_path: Path) -> None:
    config = read_exported(write(tmp_path, {**flat(), "thresholds": {"jump": 0.35}}))
    assert config.action.tolist() == [0.5] * 6 + [0.35] + [0.5] * 5


def test_statistics_of_a_flat_config_stand_in_for_those_in_the_weights(tmp_path: Path) -> None:
    model = tiny_model()
    state = model.state_dict()
    mean, std = state.pop("feature_mean"), state.pop("feature_std")
    config = {**flat(), "feature_mean": mean.tolist(), "feature_std": std.tolist()}
    inside, outside = (
        ControlPolicy.load(write(tmp_path / name, *files))
        for name, files in {"in": (flat(), model.state_dict()), "out": (config, state)}.items()
    )
    frames = np.random.default_rng(0).normal(size=(5, 260)).astype(np.float32)
    for k, frame in enumerate(frames):
        ours, theirs = (policy.step(frame, None, k / 20) for policy in (inside, outside))
        assert np.array_equal(ours.raw.action, theirs.raw.action)
    assert ours.ready
    unscaled = ControlPolicy.load(write(tmp_path / "none", flat(), state))
    for k, frame in enumerate(frames):
        plain = unscaled.step(frame, None, k / 20)
    assert not np.allclose(plain.raw.action, ours.raw.action)


def changed(config: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    config = copy.deepcopy(config)
    *parents, last = path.split(".")
    inner = config
    for key in parents:
        inner = inner[key]
    inner[last] = value
    return config


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("version", 1, "version is 1, expected 2; a version-1 policy"),
        ("version", None, "version is None"),
        ("model.input_dim", 551, "551, expected 671 (551 features are a version-1 model's, of 16 state values"),
        ("model.input_dim", 559, "559 features are a version-1 model's, of 24 state values and 10 controls"),
        ("model.input_dim", 446, "446 features are these without the 225 velocities"),
        ("model.input_dim", "671", "input_dim is '671', expected 671"),
        ("model.num_action", 10, "num_action is 10, expected 12"),
        ("model.num_hotbar", 10, "num_hotbar is 10, expected 9"),
        ("model.d_model", 10**9, "expected a whole number from 1 to 8192"),
        ("model.num_layers", True, "num_layers is True"),
        ("model.num_layers", 0, "num_layers is 0"),
        ("model.nhead", 3, "nhead is 3, expected a divisor of d_model 32"),
        ("model.max_seq_len", 20, "max_seq_len is 20, expected at least 30"),
        ("model", [], "model is [], expected a table"),
        ("thresholds.action", [0.5] * 10, "thresholds.action is '10 values', expected 12 numbers"),
        ("thresholds.inv_click", [0.5, None, 0.5], "thresholds.inv_click is None, expected a number"),
        ("thresholds.hotbar_min_confidence", "high", "hotbar_min_confidence is 'high'"),
        ("features.history_frames", 4, "history_frames is 4, expected 5"),
        ("features.state_lagged_one_frame", ["sprintng"], "did you mean 'sprinting'?"),
        ("post_processing.look_ema_alpha", 0, "look_ema_alpha is 0.0, expected a number above 0"),
        ("post_processing.look_rate_limit", 0, "look_rate_limit is 0.0, expected a number above 0"),
        ("post_processing.look_deadzone", 2, "look_deadzone is 2.0, expected a number up to 1"),
        ("post_processing.hysteresis_margin", -0.1, "hysteresis_margin is -0.1"),
        ("policy_sha256", 7, "policy_sha256 is 7"),
    ],
)
def test_a_nested_config_that_cannot_be_run_is_a_sentence(tmp_path: Path, path: str, value: Any, sentence: str) -> None:
    with pytest.raises(DataError) as refused:
        read_exported(write(tmp_path, changed(nested(), path, value)))
    assert sentence in str(refused.value)
    assert str(refused.value).startswith(f"{tmp_path}/control_config_v2.json: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("input_dim", 551, "551 features are a version-1 model's"),
        ("num_inv_controls", 2, "num_inv_controls is 2, expected 3"),
        ("game_state_dim", 24, "game_state_dim is 24, expected 46"),
        ("action_history_length", 3, "action_history_length is 3, expected 5"),
        ("control_names", ["jump", "attack"], "control_names is ['jump', 'attack'], expected move_forward"),
        ("thresholds", {"jumpp": 0.5}, "did you mean 'jump'?"),
        ("thresholds", {"jump": float("inf")}, "cannot be read as a policy's config"),
        ("feature_mean", [0.0] * 10, "feature_mean is '10 values', expected 671 numbers"),
        ("feature_std", [0.0] * 671, "feature_mean is None"),
    ],
)
def test_a_flat_config_that_cannot_be_run_is_a_sentence(tmp_path: Path, path: str, value: Any, sentence: str) -> None:
    with pytest.raises(DataError) as refused:
        read_exported(write(tmp_path, {**flat(), path: value}))
    assert sentence in str(refused.value)


def test_a_deviation_of_zero_is_refused(tmp_path: Path) -> None:
    config = {**flat(), "feature_mean": [0.0] * 671, "feature_std": [0.0] * 671}
    with pytest.raises(DataError, match=r"feature_std is 0\.0, expected numbers above 0"):
        read_exported(write(tmp_path, config))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null", b'{"version": 2, "model": {}}'])
def test_whatever_stands_in_the_config_is_a_sentence(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, nested())
    (tmp_path / "control_config_v2.json").write_bytes(content)
    with pytest.raises(DataError, match=r"control_config_v2\.json: "):
        read_exported(tmp_path)


def test_a_folder_without_an_export(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no exported policy.*`cockpit export RUN`"):
        ControlPolicy.load(tmp_path / "nowhere")


class Opens:
    """Pickled, it would make a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_weights_run_no_code(tmp_path: Path) -> None:
    write(tmp_path, nested())
    torch.save({"weight": Opens(tmp_path / "ran")}, tmp_path / "control_policy_v2.pt")
    with pytest.raises(DataError, match="is not a whole file of weights"):
        ControlPolicy.load(tmp_path)
    (tmp_path / "control_policy_v2.pt").write_bytes(pickle.dumps(Opens(tmp_path / "ran")))
    with pytest.raises(DataError, match="is not a whole file of weights"):
        ControlPolicy.load(tmp_path)
    assert not (tmp_path / "ran").exists()


def other_size() -> dict[str, torch.Tensor]:
    return {**tiny_model().state_dict(), "decay": torch.zeros(3)}


def not_finite() -> dict[str, torch.Tensor]:
    return {**tiny_model().state_dict(), "decay": torch.tensor(torch.nan)}


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({}, "does not fit the sizes in the config beside it"),
        (other_size(), "does not fit the sizes in the config beside it.*decay"),
        (not_finite(), "decay holds numbers that are not finite"),
        ([torch.zeros(1)], "holds something else than named tensors"),
        ({"model": {"decay": torch.zeros(1)}}, "holds something else than named tensors"),
    ],
)
def test_weights_of_another_model_are_a_sentence(tmp_path: Path, state: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence) as refused:
        ControlPolicy.load(write(tmp_path, nested(), state))
    assert "\n" not in str(refused.value)


def test_damaged_and_missing_weights_are_a_sentence(tmp_path: Path) -> None:
    weights = write(tmp_path, nested()) / "control_policy_v2.pt"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(DataError, match="is not a whole file of weights"):
        ControlPolicy.load(tmp_path)
    weights.unlink()
    with pytest.raises(DataError, match="is missing beside its config"):
        ControlPolicy.load(tmp_path)


@pytest.mark.behaviour("thresholds-saved-checkpoint-epoch")
def test_weights_and_config_of_two_exports_are_not_mixed(tmp_path: Path) -> None:
    weights = write(tmp_path, nested()) / "control_policy_v2.pt"
    write(tmp_path, {**nested(), "policy_sha256": hashlib.sha256(weights.read_bytes()).hexdigest()})
    ControlPolicy.load(tmp_path)
    torch.save(tiny_model(seed=1).state_dict(), weights)
    with pytest.raises(DataError, match="is not the file that the config beside it belongs to"):
        ControlPolicy.load(tmp_path)
