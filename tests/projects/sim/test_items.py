"""Samples of a dataset class: shards of both formats, a class in a file, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from engines.basics.errors import DataError, UserError
from projects.sim.config import SimConfig
from projects.sim.items import ItemSource, Shards, dataset_class, read_items

CPU = torch.device("cpu")
CLASS = """
class Samples:
    def __init__(self, path): self.path = path
    def __len__(self): return 3
    def __getitem__(self, k): return {"telemetry": [float(k)] * 8, "risk_id": k, "weight": 0.5}
"""


def arrays(count: int, first: int = 0) -> dict[str, Any]:
    return {
        "telemetry": np.arange(first, first + count, dtype=np.float32)[:, None].repeat(8, 1),
        "vis_feats": np.ones((count, 4, 5), np.float32),
        "risk_id": np.arange(count) % 4,
        "reason_id": np.full(count, -1),
        "action_id": np.arange(count) % 6,
    }


def item(**changes: Any) -> dict[str, Any]:
    return {"telemetry": torch.zeros(8), "vis_feats": torch.zeros(4, 5), "risk_id": 1, **changes}


def test_shards_of_both_formats_are_one_dataset(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **arrays(3))
    save_file(arrays(2, first=3), tmp_path / "b.safetensors")
    shards = Shards(str(tmp_path))
    assert len(shards) == 5
    assert [float(shards[k]["telemetry"][0]) for k in range(5)] == [0, 1, 2, 3, 4]
    source = ItemSource(shards, "x", CPU)
    batch = source.batch(torch.tensor([4, 0]), None)
    assert batch["telemetry"][:, 0].tolist() == [4, 0]
    assert batch["vis_feats"].shape == (2, 4, 5)
    assert batch["weight"].tolist() == [1, 1]
    assert source.labels[:, 1].tolist() == [-1] * 5


def test_a_damaged_shard_and_rows_that_do_not_match_are_said(tmp_path: Path) -> None:
    for name in ("a.npz", "b.safetensors"):
        (tmp_path / name).write_bytes(b"no shard")
        with pytest.raises(DataError, match=f"{name}: cannot be read as a shard"):
            Shards(str(tmp_path / name))
    np.savez(tmp_path / "c.npz", **arrays(3) | {"risk_id": np.zeros(2, int)})
    with pytest.raises(DataError, match="expected telemetry and others with as many"):
        Shards(str(tmp_path / "c.npz"))


def test_d1_a_class_in_a_file_beside_the_data_is_used_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(CLASS)
    data = {"path": str(tmp_path), "dataset": "mine.py:Samples", "train": "one", "validation": "two"}
    train, validation = read_items(SimConfig.model_validate({"project": "sim", "data": data}), CPU)
    assert len(train) == len(validation) == 3
    assert train.batch(torch.tensor([2]), None)["weight"].tolist() == [0.5]
    assert "mine.py:Samples reads one and two" in capsys.readouterr().out


@pytest.mark.parametrize("named", ["projects.sim.items:Shards", "projects.sim.items.Shards"])
def test_a_class_is_named_with_a_colon_or_a_dot(named: str, tmp_path: Path) -> None:
    assert dataset_class(named, tmp_path) is Shards


@pytest.mark.parametrize("named", ["nowhere:X", "projects.sim.items:Nothing", "absent.py:X", "word"])
def test_d1_a_class_that_cannot_be_loaded_is_said(named: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data\.dataset: "):
        dataset_class(named, tmp_path)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (
            {"risk_id": 4},
            r"sample 1: risk_id is 4, expected a whole number from 0 to 3 \(none, low, med, high\), or -1",
        ),
        ({"action_id": 1.5}, r"sample 1: action_id is 1\.5, expected a whole number from 0 to 5"),
        ({"reason_id": "human"}, "sample 1: reason_id is human, expected a whole number"),
        ({"risk_id": np.array([1, 2])}, r"sample 1: risk_id is \[1 2\], expected a whole number"),
        ({"telemetry": torch.zeros(7)}, r"sample 1: telemetry is \(7,\), expected \(8\)"),
        ({"telemetry": torch.full((8,), torch.nan)}, "telemetry has 8 values that are no finite number"),
        ({"telemetry": ["fast"] * 8}, r"telemetry is no array of numbers \(.*\), expected \(8\)"),
        ({"telemetry": None}, "telemetry is no array of numbers"),
        ({"vis_feats": torch.zeros(3, 5)}, "sample 1: is .*, the first sample .*; expected all alike"),
        ({"vis_feats": torch.zeros(5)}, r"vis_feats is \(5,\), expected \(F, dv\)"),
        ({"vis_feats": torch.zeros(0, 5)}, r"vis_feats is \(0, 5\), expected \(F, dv\)"),
        ({"frames": torch.zeros(4, 3, 6, 8)}, "has both vis_feats and frames, expected one of them or neither"),
        ({"weight": -1.0}, "weight is -1, expected at least 0"),
        ({"weight": torch.ones(2)}, r"weight is \(2,\), expected one number"),
    ],
)
def test_d1_a_sample_that_does_not_fit_is_named(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        ItemSource([item(), item(**bad)], "data", CPU)


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        (torch.full((4, 3, 6, 8), 255.0), "frames go up to 255, expected colours from 0 to 1"),
        (torch.zeros(4, 6, 8, 3), r"frames is \(4, 6, 8, 3\), expected \(F, 3, H, W\)"),
    ],
)
def test_frames_of_another_order_or_range_are_said(frames: torch.Tensor, said: str) -> None:
    given = {"telemetry": torch.zeros(8), "frames": frames, "risk_id": 1}
    with pytest.raises(DataError, match=f"data: sample 0: {said}"):
        ItemSource([given], "data", CPU)


class Failing:
    """A dataset of the user's own: two samples, then an error."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, place: int) -> dict[str, Any]:
        return {0: item(), 1: item()}[place]


def test_a_dataset_that_fails_is_said_with_the_sample() -> None:
    with pytest.raises(DataError, match=r"data: sample 2 of 3 cannot be had \(KeyError: 2\)"):
        ItemSource(Failing(), "data", CPU)
    with pytest.raises(DataError, match=r"data: has no length \(TypeError: .*\), expected a number of samples"):
        ItemSource(iter([item()]), "data", CPU)


def test_what_validates_is_like_what_trains(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **arrays(3))
    np.savez(tmp_path / "b.npz", **arrays(3) | {"vis_feats": np.ones((3, 4, 6), np.float32)})
    data = {"path": str(tmp_path), "train": "a.npz", "validation": "b.npz"}
    with pytest.raises(DataError, match=r"b\.npz: sample 0: is .*\(4, 6\).*, a training sample .*\(4, 5\)"):
        read_items(SimConfig.model_validate({"project": "sim", "data": data}), CPU)


def test_samples_without_any_label_and_none_at_all_are_said() -> None:
    with pytest.raises(DataError, match="data: no sample has a label"):
        ItemSource([item(risk_id=-1)], "data", CPU)
    with pytest.raises(DataError, match="data: holds no sample"):
        ItemSource([], "data", CPU)
    with pytest.raises(DataError, match="expected a dict with telemetry"):
        ItemSource([[1, 2]], "data", CPU)
    with pytest.raises(DataError, match=r"sample 0: expected a dict with telemetry, .* got a dict of risk_id"):
        ItemSource([{"risk_id": 1}], "data", CPU)
