"""features.json as the extractor writes it: its quirks, and one sentence for each fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.basics.errors import DataError
from projects.agent.features import read_features, write_features
from projects.agent.layout import NONE, UNKNOWN
from tests.projects.agent.recorded import features_of


def frame(number: int, **changed: Any) -> dict[str, Any]:
    """A frame as the extractor writes it."""
    return {
        "frame_idx": number, "timestamp_ms": number * 50, "movement_dx": 0.0, "movement_dy": 0.0, "movement_slice": 0,
        "movement_confidence": 0.9, "ability_q": False, "ability_w": False, "ability_e": False, "ability_r": False,
        "summoner_d": False, "summoner_f": False, "item_used": False, "recall_b": False, "gold_gained": 0,
        "health_bar_x": 128, "health_bar_y": 99,
    } | changed  # fmt: skip


def written(folder: Path, *frames: dict[str, Any], **changed: Any) -> Path:
    """A file with these frames; NaN is written as Python does."""
    video = {
        "video_id": "v", "source_resolution": "1920x1080", "source_fps": 60.0, "output_fps": 20,
        "output_resolution": "256x256", "team_side": "blue", "num_frames": len(frames), "frames": list(frames),
    } | changed  # fmt: skip
    path = folder / "features.json"
    path.write_text(json.dumps(video))
    return path


def test_no_movement_is_slice_0_without_a_step_and_null_is_not_known(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        frame(7),
        frame(8, movement_dx=2.5),
        frame(9, movement_slice=4),
        frame(12, movement_slice=17, movement_dy=-1.0, ability_q=True, recall_b=True),
        frame(13, movement_slice=None, movement_dx=None, movement_dy=None, summoner_f=True, gold_gained=21.5),
    )
    features = read_features(path)
    assert features.name == "v"
    assert features.number.tolist() == [7, 8, 9, 12, 13]
    assert features.movement.tolist() == [NONE, 0, 4, 17, UNKNOWN]
    assert np.argwhere(features.abilities).tolist() == [[3, 0], [3, 7], [4, 5]]
    assert features.gold.tolist() == [0, 0, 0, 0, 21.5]


def test_an_absent_bar_is_null_or_0_0(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        frame(0),
        frame(1, health_bar_x=0, health_bar_y=0),
        frame(2, health_bar_x=None, health_bar_y=None),
        frame(3, health_bar_x=None),
        frame(4, health_bar_x=0),
    )
    assert np.isnan(read_features(path).bar).any(axis=1).tolist() == [False, True, True, True, False]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features = features_of(
        [3, 4, 9, 10],
        movement=np.array([NONE, 0, 9, UNKNOWN], np.int8),
        abilities=rng.random((4, 8)) < 0.5,
        gold=np.array([0.0, 1.1, 300.0, 0.0]),
        bar=np.array([[1.5, 2.25], [np.nan, np.nan], [0.0, 7.0], [3.0, 0.0]]),
    )
    step = np.array([[5.0, 5.0], [0.5, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    write_features(tmp_path / "a.json", features, step, side="blue")
    write_features(tmp_path / "b.json", features, step, side="blue")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    again = read_features(tmp_path / "a.json")
    for name in ("number", "movement", "abilities", "gold", "bar"):
        np.testing.assert_array_equal(getattr(again, name), getattr(features, name))
    first = json.loads((tmp_path / "a.json").read_text())["frames"][0]
    assert set(first) == set(frame(0))
    assert (first["movement_slice"], first["movement_dx"], first["timestamp_ms"]) == (0, 0, 150)


@pytest.mark.parametrize(
    ("frames", "changed", "said"),
    [
        ([frame(0)], {"num_frames": 2}, r"num_frames is 2 but frames has 1; .* extract it again"),
        ([], {}, "frames is empty"),
        ([frame(5), frame(6), frame(6)], {}, r"frame_idx is 6 after 6 \(frames\[2\]\); expected rising"),
        ([frame(5), frame(4)], {}, r"frame_idx is 4 after 5 \(frames\[1\]\)"),
        ([frame(-1)], {}, "frame_idx is -1, expected 0 or more"),
        ([frame(0), frame(10**12)], {}, "expected at most 10,000,000 frames"),
        ([frame(0), frame(1, movement_slice=18)], {}, "movement_slice is 18 in frame 1, expected 0 to 17"),
        ([frame(0), frame(1, gold_gained=float("nan"))], {}, "gold_gained is NaN in frame 2 of frames"),
        ([frame(0, health_bar_x=float("-inf"))], {}, "health_bar_x is -Infinity in frame 1 of frames"),
        ([frame(0), {k: v for k, v in frame(1).items() if k != "gold_gained"}], {}, r"frames\[1\]: .*`gold_gained`"),
        ([frame(0, ability_w="yes")], {}, r"frames\[0\]\.ability_w: Expected `bool`, got `str`"),
        ([frame(0), frame(10**20)], {}, r"frames\[1\]\.frame_idx: "),
        ([frame(0, gold_gained=1e300)], {}, r"frames\[0\]\.gold_gained: Expected `float` <= 1000000"),
        ([frame(0)], {"frames": 3}, "frames: Expected `array`"),
    ],
)
def test_each_fault_is_one_sentence(tmp_path: Path, frames: Any, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        read_features(written(tmp_path, *frames, **changed))
    assert "\n" not in str(caught.value)


def test_a_cut_file_and_none_are_said(tmp_path: Path) -> None:
    path = written(tmp_path, frame(0), frame(1))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match="is no JSON"):
        read_features(path)
    with pytest.raises(DataError, match="no such file"):
        read_features(tmp_path / "none.json")
