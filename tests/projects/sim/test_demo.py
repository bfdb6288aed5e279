"""Demo drives: the same for the same seed, resumed, every class in them, and learned well above what telemetry says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from engines.basics.errors import DataError, UserError
from engines.tasks import StopRequested
from projects.sim.demo.road import EDGES, HORIZON, make_drive
from projects.sim.demo.task import NOTES, make
from projects.sim.drives import drive_paths, read_drive
from projects.sim.labels import LABELS
from projects.sim.losses import ClassWeights
from projects.sim.metrics import confusions
from projects.sim.project import SimProject
from projects.sim.report import baselines
from projects.sim.split import support
from tests.projects.controls.task_context import Listener
from tests.projects.sim.test_project import CPU, config


def test_a_drive_is_a_function_of_seed_and_number() -> None:
    one, again, other = make_drive(3, 1, 0.2), make_drive(3, 1, 0.2), make_drive(3, 2, 0.2)
    assert one.frames is not None
    assert again.frames is not None
    assert np.array_equal(one.frames, again.frames)
    assert np.array_equal(one.telemetry, again.telemetry)
    assert not np.array_equal(one.telemetry[:50], other.telemetry[:50])
    assert len(one) == 120


def test_every_class_occurs_and_the_end_has_no_label() -> None:
    labels = np.concatenate([make_drive(0, k, 2.0).labels for k in range(4)])
    assert all(count > 20 for task in ("risk", "reason", "action") for count in support(labels)[task].values())
    assert (make_drive(0, 0, 0.2).labels[-HORIZON:] == -1).all()
    assert len(EDGES) == len(LABELS["risk"]) - 1


def test_stopped_work_is_taken_up_with_the_same_bytes(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    make({"out": str(whole), "drives": 3, "minutes": 0.2}, Listener())
    with pytest.raises(StopRequested):
        make({"out": str(parts), "drives": 3, "minutes": 0.2}, Listener(stop_at=2))
    assert len(list(parts.glob("*.npz"))) == 2
    assert json.loads((parts / NOTES).read_bytes())["complete"] is False
    make({"out": str(parts), "drives": 3, "minutes": 0.2}, Listener())
    for path in drive_paths(whole):
        assert (parts / path.name).read_bytes() == path.read_bytes()
    assert json.loads((parts / NOTES).read_bytes())["complete"] is True


def test_bad_arguments_and_a_foreign_folder_are_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="drives is 1, expected"):
        make({"out": str(tmp_path), "drives": 1}, Listener())
    (tmp_path / "mine.txt").touch()
    with pytest.raises(DataError, match=r"mine\.txt"):
        make({"out": str(tmp_path)}, Listener())


def test_frames_and_telemetry_together_say_more_than_either_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make({"out": str(tmp_path / "data"), "drives": 6, "minutes": 1.0}, Listener())
    project = SimProject()
    project.data(config(tmp_path / "data"), CPU)
    train, validation = project.train, project.validation
    labels = validation.labels.numpy()
    found = baselines(train, validation, ClassWeights.of(train.labels, "balanced", 10))
    risk = {name: confusions(labels, one.predicted)["risk"].macro_f1 or 0 for name, one in found.items()}
    assert risk["telemetry and frames"] > max(risk["telemetry only"], risk["frames only"]) > risk["majority"]
    assert found["majority"].losses["risk"] is None
    losses = [found[name].losses["risk"] or 9 for name in ("telemetry and frames", "frames only", "telemetry only")]
    assert losses == sorted(losses)
    last = found["last label"].predicted[:, 0] == labels[:, 0]
    assert last[labels[:, 0] >= 0].mean() > 0.5
    assert read_drive(drive_paths(tmp_path / "data")[0]).about.source == "demo"
    assert torch.isfinite(train.telemetry).all()
