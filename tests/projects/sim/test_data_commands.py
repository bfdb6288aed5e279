"""What `cockpit data` and `cockpit task` ask of the project: whose data it is, what it holds, features beforehand."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engines.basics.errors import UserError
from engines.tasks import StopRequested
from projects.sim.drives import write_drive
from projects.sim.features import cache
from projects.sim.project import SimProject
from projects.sim.readers.kinds import why_not
from projects.sim.stats import tables
from tests.projects.controls.task_context import Listener
from tests.projects.sim.logs import archive, random_drive, segment, tub
from tests.projects.sim.test_project import CPU, config


def test_drives_and_logs_are_ours_and_nothing_else_is(tmp_path: Path) -> None:
    write_drive(tmp_path / "drives.npz", random_drive("d", 20, 0))
    ours = [tmp_path / "drives.npz", tmp_path, segment(tmp_path / "seg", 1.0, 9.0, [])]
    folder = tub(tmp_path / "tub", [0.0] * 4, [0.5] * 4)
    ours += [folder, archive(folder)]
    assert [why_not(str(path)) for path in ours] == [""] * 5
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.tar.gz").write_bytes(b"none")
    (tmp_path / "other" / "x.npz").write_bytes(b"none")
    assert why_not(str(tmp_path / "other")).startswith(
        "no drive (.npz with telemetry and labels) and no log: robot_log.csv"
    )
    assert why_not(str(tmp_path / "nowhere")).startswith("no drive")


def test_stats_count_every_drive_and_class(tmp_path: Path) -> None:
    drives = [random_drive(f"d{k}", 20, k) for k in range(2)]
    for drive in drives:
        write_drive(tmp_path / f"{drive.name}.npz", drive)
    found = tables(str(tmp_path))
    assert [row[:3] for row in found["drives"].rows] == [("d0", "test", 20), ("d1", "test", 20)]
    high = sum(int((drive.labels[:, 0] == 3).sum()) for drive in drives)
    assert ("risk", "high", high) in found["classes"].rows


def test_the_cache_is_filled_with_progress_and_a_training_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for k in range(5):
        write_drive(tmp_path / f"d{k}.npz", random_drive(f"d{k}", 40, k))
    cfg = config(tmp_path)
    with pytest.raises(StopRequested):
        cache({"config": cfg.model_dump(mode="json")}, Listener(stop_at=32))
    assert not list((tmp_path / "cache").rglob("*.npz"))
    listener = Listener()
    cache({"config": cfg.model_dump(mode="json")}, listener)
    assert (32, 40, "frames of drive 5 of 5") in listener.told
    assert len(list((tmp_path / "cache").rglob("*.npz"))) == 5
    project = SimProject()
    told: list[tuple[int, int, str]] = []
    project.data_progress = lambda *said: told.append(said)  # type: ignore[method-assign]
    project.data(cfg, CPU)
    assert not told


@pytest.mark.skipif(torch.backends.mps.is_available(), reason="the device that is asked for is there")
def test_the_cache_is_made_on_the_device_of_the_config(tmp_path: Path) -> None:
    write_drive(tmp_path / "d.npz", random_drive("d", 20, 0))
    cfg = config(tmp_path, launch={"device": "mps"})
    with pytest.raises(UserError, match=r"launch\.device 'mps' cannot be used here"):
        cache({"config": cfg.model_dump(mode="json")}, Listener())
