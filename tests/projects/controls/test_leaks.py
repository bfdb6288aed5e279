"""The leak report shows the state in three ways, and finds what each gives away."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from projects.controls.batches import WindowSource
from projects.controls.features import target_frames, window_features
from projects.controls.layout import DEFAULT_STATE, LEAKING_STATE, STATE_FEATURES, STATE_NAMES
from projects.controls.leaks import TRAINED, leaking_windows, logistic_leaks, predict_shown
from projects.controls.recordings import Recording
from tests.projects.controls.sessions import random_session

COLUMNS = [STATE_FEATURES.start + column for column in LEAKING_STATE]
SNEAK, SNEAKING = 5, STATE_NAMES.index("sneaking")


def test_the_columns_are_those_of_the_frame_before_or_of_the_frame_or_none() -> None:
    recordings = [random_session("a", 40, 1), random_session("short", 12, 2)]
    lagged, recorded, dropped = (leaking_windows(recordings, shown) for shown in (TRAINED, "as recorded", "dropped"))
    lasts = [(recording, last) for recording in recordings for last in target_frames(len(recording))]
    assert len(lagged) == len(recorded) == len(dropped) == len(lasts) == 11 + 1
    assert not dropped.any()
    for window, (recording, last) in enumerate(lasts):
        features, mask = window_features(recording, last)
        assert np.array_equal(lagged[window], features[:, COLUMNS])
        for row in range(30):
            frame = last - 29 + row
            expected = recording.state[frame, LEAKING_STATE] if mask[row] else np.zeros(4)
            assert np.array_equal(recorded[window, row], expected)


def leaky(name: str, seed: int) -> Recording:
    """Sneaking is what the state says on the same frame, and nothing else tells it."""
    recording = random_session(name, 300, seed)
    recording.controls[:], recording.state[:] = 0, DEFAULT_STATE
    recording.controls[:, SNEAK] = np.random.default_rng(seed + 50).random(300) < 0.3
    recording.state[:, SNEAKING] = recording.controls[:, SNEAK]
    recording.frames[:, 20:] = 0
    return recording


class ReadsState(nn.Module):
    """Presses sneak where the newest row's state says sneaking."""

    def __init__(self) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.zeros(1))

    def forward(self, features: Tensor, mask: Tensor) -> dict[str, Tensor]:
        action = torch.full((len(features), 12), -9.0)
        action[:, 5] = features[:, -1, STATE_FEATURES.start + SNEAKING] - 0.5
        zeros = torch.zeros(len(features), 9)
        return {
            "action_logits": action,
            "look": zeros[:, :2],
            "hotbar_logits": zeros,
            "cursor": zeros[:, :2],
            "inv_click_logits": zeros[:, :3],
        }


def test_a_model_is_shown_the_state_otherwise_than_it_was_trained() -> None:
    recordings = [leaky("a", 1), leaky("b", 2)]
    source = WindowSource(recordings, torch.device("cpu"), 0.0)
    shown = predict_shown(ReadsState(), source, recordings, 37)
    now = np.concatenate([recording.controls[29:, SNEAK] for recording in recordings])
    assert np.array_equal(shown["as recorded"].action[:, 5] > 0.5, now > 0.5)
    assert not (shown["dropped"].action[:, 5] > 0.5).any()


def test_a_refitted_regression_finds_the_leak_only_as_recorded() -> None:
    scores = logistic_leaks([leaky(f"t{k}", k) for k in range(4)], [leaky("held-out", 9)])
    f1 = {shown: next(c.f1 for c in one.controls if c.name == "sneak") or 0 for shown, one in scores.items()}
    assert list(f1) == ["lagged", "as recorded", "dropped"]
    assert f1["as recorded"] > 0.95
    assert f1["lagged"] < 0.6
    assert f1["dropped"] < 0.6
