"""Stepping through a drive: what is decided, what moved it, and what the scenes show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from cockpit.core.ascii import text_in_ascii
from engines.basics.errors import DataError
from engines.contract.rundir import RunDirectory
from engines.contract.scenes import LONGEST_SCENE, Box, Gauge, Image, Line, encode
from projects.sim.decided import Windows, open_recording
from projects.sim.drives import Drive, write_drive
from projects.sim.labels import HIGH
from projects.sim.play import SimSession, smaller
from tests.projects.controls.task_context import Listener
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


def test_a_recording_is_a_drive_or_a_folder_of_one_and_nothing_else(drive: Drive, tmp_path: Path) -> None:
    def opened(path: Path) -> tuple[Drive, object]:
        return open_recording(RunDirectory(tmp_path / "run"), str(path), {"model": {"dv": 0}}, Listener())

    folder = tmp_path / "drives"
    folder.mkdir()
    write_drive(folder / "yard.npz", drive)
    for path in (folder, folder / "yard.npz"):
        assert np.array_equal(opened(path)[0].labels, drive.labels)
    write_drive(folder / "alley.npz", drive)
    with pytest.raises(DataError, match=r"drives: holds 2 drives, expected one; name it, as in .*alley\.npz"):
        opened(folder)
    (tmp_path / "words.txt").write_text("none")
    with pytest.raises(DataError, match=r"words\.txt: no drive .* and no log: robot_log\.csv"):
        opened(tmp_path / "words.txt")
    with pytest.raises(DataError, match=r"nowhere: is not there, expected a drive \(\.npz\) or a log: robot_log\.csv"):
        opened(tmp_path / "nowhere")
    (tmp_path / "broken.npz").write_bytes(b"none")
    with pytest.raises(DataError, match=r"broken\.npz: cannot be read as a drive"):
        opened(tmp_path / "broken.npz")


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
    signs = [[span.text for span in row.signs] for row in risk.rows if isinstance(row, Gauge)]
    said, truth = int(decided.chances["risk"][first].argmax()), int(drive.labels[first, 0])
    assert signs == [["◆" if k == truth else "·", "●" if k == said else "·"] for k in range(4)]
    assert text_in_ascii("◆") != text_in_ascii("●")  # the two differ by shape, there too
    assert risk.title == "risk: ◆ truth ● model"
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
