"""Stepping through a drive: what is decided, what moved it, and what the scenes show."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engines.basics.errors import DataError
from engines.contract.scenes import LONGEST_SCENE, Box, Gauge, Image, Line, encode
from projects.sim.decided import Windows
from projects.sim.drives import Drive
from projects.sim.labels import HIGH
from projects.sim.play import SimSession, smaller
from tests.projects.sim.logs import random_drive
from tests.projects.sim.models import SETTINGS, network


def silent(done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def drive() -> Drive:
    return random_drive("yard", 40, 5)


@pytest.fixture(scope="module")
def windows(drive: Drive) -> Windows:
    features = np.random.default_rng(0).normal(size=(40, 10)).astype(np.float32)
    return Windows(network().eval(), SETTINGS, drive, features)


def test_every_window_is_decided_as_alone(windows: Windows) -> None:
    decided = windows.decide(silent)
    model = network().eval()
    assert np.isnan(decided.high[:7]).all()
    for end in (7, 20, 39):
        alone = model(windows.batch(torch.tensor([end])))["action_logits"].softmax(1)[0].tolist()
        assert decided.chances["action"][end].tolist() == pytest.approx(alone, abs=1e-5)


def test_what_moved_it_is_the_change_with_a_part_at_its_mean(windows: Windows) -> None:
    model, end = network().eval(), 20
    moved = windows.moved(end)
    assert list(moved) == ["telemetry", "segment 1", "segment 2", "segment 3", "segment 4"]
    batch = windows.batch(torch.tensor([end]))
    whole = model(batch)["risk_logits"].softmax(1)[0, HIGH]
    hidden = batch["vis_feats"].clone()
    hidden[0, 2:4] = model.feature_mean  # frames 2 and 3 of 8 are the second of 4 segments
    without = model(batch | {"vis_feats": hidden})["risk_logits"].softmax(1)[0, HIGH]
    assert moved["segment 2"] == pytest.approx((whole - without).item(), abs=1e-6)


def test_a_drive_that_the_model_cannot_take_is_said(drive: Drive) -> None:
    with pytest.raises(DataError, match="has no frames, and this model was trained with them"):
        Windows(network().eval(), SETTINGS, drive, None)
    with pytest.raises(DataError, match="has 5 frames, a window of this model 8"):
        Windows(network().eval(), SETTINGS, random_drive("short", 5, 0), np.zeros((5, 10), np.float32))


def test_scenes_show_frame_curve_truth_and_alarms(drive: Drive, windows: Windows) -> None:
    decided = windows.decide(silent)
    threshold = float(np.nanquantile(decided.high, 0.7))
    session = SimSession(drive, windows, decided, threshold)
    assert session.total == 40
    assert session.rate == pytest.approx(10)
    first = session.act("next", 0)
    assert decided.high[first] >= threshold > np.nan_to_num(decided.high[first - 1])
    scene = session.scene(first)
    assert len(encode(scene)) < LONGEST_SCENE
    picture = next(item for item in scene.view.items if isinstance(item, Image))
    assert drive.frames is not None
    assert picture.pixels == drive.frames[first].tobytes()
    assert len([item for item in scene.view.items if isinstance(item, Line)]) == 3
    truths = sum(round(item.width * 40) for item in scene.view.items if isinstance(item, Box))
    assert truths == (drive.labels[:, 0] == HIGH).sum()
    risk = scene.panels[0]
    high = risk.rows[HIGH]
    assert isinstance(high, Gauge)
    assert high.mark == pytest.approx(threshold, abs=1e-3)
    assert high.value == pytest.approx(decided.high[first], abs=1e-3)
    assert session.act("previous", 39) > session.act("previous", int(session.act("previous", 39)))
    assert scene.strip is not None
    assert max(scene.strip.levels) == pytest.approx(np.nanmax(decided.high), abs=1e-3)


def test_the_key_o_shows_what_moved_it_and_telemetry_again(drive: Drive, windows: Windows) -> None:
    session = SimSession(drive, windows, windows.decide(silent), 0.5)
    assert session.scene(10).panels[1].title == "telemetry"
    assert session.act("moved", 10) == 10
    rows = session.scene(10).panels[1].rows
    assert [row.label for row in rows if isinstance(row, Gauge)] == list(windows.moved(10))
    assert session.scene(2).panels[1].note == "too few frames before this one"
    session.act("moved", 10)
    assert session.scene(10).panels[1].title == "telemetry"


def test_large_frames_are_sent_small() -> None:
    frame = np.zeros((160, 320, 3), np.uint8)
    frame[:, :160] = 200
    small = smaller(frame)
    assert small.shape == (32, 64, 3)
    assert small[0, 0].tolist() == [200] * 3
    assert small[31, 63].tolist() == [0] * 3
