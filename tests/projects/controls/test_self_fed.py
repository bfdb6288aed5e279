"""The model on its own past outputs: all sessions at once equal one session after another, frame by frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from projects.controls import self_fed as module
from projects.controls.baselines import target_rows
from projects.controls.batches import WindowSource
from projects.controls.features import target_frames, window_features
from projects.controls.layout import ACTION, CONTROL_NAMES, CURSOR, HOTBAR, HOTBAR_SLOT, INV, LOOK, SCREEN_OPEN
from projects.controls.metrics import Prediction, Thresholds, score_controls
from projects.controls.model import ControlTransformer
from projects.controls.predictions import predict
from projects.controls.recordings import Recording
from projects.controls.self_fed import answers, as_recorded, first_windows, self_fed
from tests.projects.controls.sessions import random_session

THRESHOLDS = Thresholds(np.linspace(0.4, 0.6, 12), np.array([0.3, 0.5, 0.6]), 0.15)


def session(name: str, frames: int, seed: int) -> Recording:
    recording = random_session(name, frames, seed)
    recording.state[:, HOTBAR_SLOT] = 3 / 8
    return recording


def one_by_one(model: nn.Module, recording: Recording, most: int) -> Prediction:
    """The readable reference: windows from `window_features`, decisions written out control by control."""
    own = recording.controls.copy()
    slot, said = 3, []
    for last in target_frames(len(recording))[:most]:
        features, mask = window_features(replace(recording, controls=own), last)
        with torch.inference_mode():
            outputs = model(torch.from_numpy(features)[None], torch.from_numpy(mask)[None])
        action, inv = (outputs[f"{head}_logits"][0].sigmoid().numpy() for head in ("action", "inv_click"))
        hotbar = outputs["hotbar_logits"][0].softmax(0).numpy()
        look, cursor = outputs["look"][0].numpy(), outputs["cursor"][0].numpy()
        said.append((action, look, hotbar, cursor, inv))
        screen = recording.state[last, SCREEN_OPEN] > 0
        own[last] = 0
        for k, column in enumerate(ACTION):
            if not screen or CONTROL_NAMES[column] == "open_inventory":
                own[last, column] = action[k] >= THRESHOLDS.action[k]
        if screen:
            own[last, CURSOR] = cursor
            own[last, INV] = inv >= THRESHOLDS.inv
        else:
            own[last, CURSOR] = 0.5
            own[last, LOOK] = look
            if hotbar.max() >= THRESHOLDS.hotbar and hotbar.argmax() != slot:
                slot = int(hotbar.argmax())
                own[last, HOTBAR[slot]] = 1
    return Prediction(*(np.array(column) for column in zip(*said, strict=True)))


def test_all_sessions_at_once_equal_one_frame_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FRAMES", 14)
    torch.manual_seed(5)
    model = ControlTransformer(d_model=16, nhead=2, num_layers=1, dim_feedforward=16).eval()
    with torch.no_grad():
        model.project.weight.mul_(4)  # so that what the history says matters
    recordings = [session("a", 60, 1), session("b", 33, 2), session("short", 20, 3)]
    fed = self_fed(answers(model), recordings, THRESHOLDS)
    slow = [one_by_one(model, recording, 14) for recording in recordings]
    for head in ("action", "look", "hotbar", "cursor", "inv"):
        expected = np.concatenate([getattr(one, head) for one in slow])
        assert len(expected) == 14 + 4 + 1
        np.testing.assert_allclose(getattr(fed, head), expected, atol=2e-6)
    forced, _ = predict(model, WindowSource(recordings, torch.device("cpu"), 0.0), 8)
    rows = first_windows(np.repeat([0, 1, 2], [31, 4, 1]))
    assert not np.allclose(forced[rows].action, fed.action, atol=1e-3), "its own history must have mattered"


def test_the_windows_are_the_first_of_the_first_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FRAMES", 3)
    monkeypatch.setattr(module, "MOST_SESSIONS", 2)
    chosen = first_windows(np.array([0, 0, 0, 0, 1, 1, 2, 2, 2]))
    assert chosen.tolist() == [True, True, True, False, True, True, False, False, False]
    fed = self_fed(answers(Copycat()), [session("a", 40, 1), session("b", 31, 2), session("c", 40, 3)], THRESHOLDS)
    assert len(fed.action) == 3 + 2


class Copycat(nn.Module):
    """Says on every frame what the history says of the frame before: the shortcut that self-feeding exposes."""

    def __init__(self) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.zeros(1))  # where it is

    def forward(self, features: Tensor, mask: Tensor) -> dict[str, Tensor]:
        past = features[:, -1, -28:]
        return {
            "action_logits": 20 * past[:, ACTION] - 10,
            "look": past[:, LOOK],
            "hotbar_logits": past[:, HOTBAR],
            "cursor": past[:, CURSOR],
            "inv_click_logits": 20 * past[:, INV] - 10,
        }


def test_a_copycat_is_stuck_on_what_it_saw_before_its_first_frame() -> None:
    recording = session("a", 200, 4)
    recording.state[:, SCREEN_OPEN] = 0
    recording.controls[:, 0] = np.arange(200) % 40 < 20  # forward, held for 20 frames in turn
    truth = target_rows([recording]).truth
    fed = score_controls(self_fed(answers(Copycat()), [recording], Thresholds()), truth)
    forced = score_controls(Prediction.of_controls(truth.previous), truth)
    assert (forced.controls[0].f1 or 0) > 0.9, "with the recording's history it looks like a good model"
    assert fed.controls[0].f1 == 0, "on frame 28 forward was up, and so it stays"
    assert recording.controls[28, 0] == 0


def test_outputs_become_history_as_a_recording_would_hold_them() -> None:
    said = Prediction(
        action=np.full((3, 12), 0.5, np.float32),
        look=np.full((3, 2), -0.4, np.float32),
        hotbar=np.eye(9, dtype=np.float32)[[2, 2, 5]],
        cursor=np.full((3, 2), 0.9, np.float32),
        inv=np.full((3, 3), 0.5, np.float32),
    )
    rows, slot = as_recorded(said, Thresholds(), np.array([False, True, False]), np.array([2, 0, 0]))
    game, screen = rows[0], rows[1]
    assert game[list(ACTION)].all()
    assert not game[list(INV)].any()
    assert not game[list(HOTBAR)].any()
    assert game[list(LOOK)] == pytest.approx([-0.4, -0.4])
    assert game[list(CURSOR)] == pytest.approx([0.5, 0.5])
    assert [CONTROL_NAMES[column] for column in ACTION if screen[column]] == ["open_inventory"]
    assert screen[list(INV)].all()
    assert not screen[list(LOOK)].any()
    assert not screen[list(HOTBAR)].any()
    assert screen[list(CURSOR)] == pytest.approx([0.9, 0.9])
    assert rows[2, HOTBAR].tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0]
    assert slot.tolist() == [2, 0, 5]
    unsure, kept = as_recorded(said, Thresholds(hotbar=1.5), np.zeros(3, np.bool_), np.zeros(3, np.int64))
    assert not unsure[:, HOTBAR].any()
    assert kept.tolist() == [0, 0, 0]
