"""`data.stage`: data is copied to a local disk, once, whole, and read from there."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engines.basics.errors import DataError
from engines.basics.lock import alone_with
from engines.contract.config import load_config
from engines.contract.settings import Data, RunConfig, Section
from engines.runtime.progress import StopRequested
from engines.runtime.staging import staged
from tests.engines.conftest import LiveRun

Told = list[tuple[int, int, str]]


class Weights(Section):
    action: float = 1.0


def config(source: Path, stage: Path | None) -> RunConfig:
    data = Data(path=str(source), stage=str(stage) if stage else None)
    return RunConfig(project="toy", data=data, model=Section(), loss_weights=Weights())


def nothing(*far: object) -> None: ...


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "volume" / "sessions"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.npz").write_bytes(os.urandom(3_000_000))
    (folder / "deep" / "b.npz").write_bytes(b"b")
    (folder / ".hidden").write_bytes(b"no data")
    return folder


@pytest.mark.behaviour("data-is-staged")
def test_it_is_copied_once_and_follows_what_changes(source: Path, tmp_path: Path) -> None:
    told: Told = []

    def progress(done: int, total: int, unit: str) -> None:
        told.append((done, total, unit))

    settings = staged(config(source, tmp_path / "local"), progress, nothing)
    place = Path(settings.data.path)
    assert place.parent == tmp_path / "local"
    assert files_of(place) == {"a.npz": (source / "a.npz").read_bytes(), "deep/b.npz": b"b"}
    assert told[-1] == (3, 3, "MB copied")
    told.clear()
    assert staged(config(source, tmp_path / "local"), progress, nothing).data.path == str(place)
    assert told == []
    (source / "deep" / "b.npz").write_bytes(b"c")
    os.utime(source / "deep" / "b.npz", (1, 1))  # the same size, another time
    (source / "a.npz").unlink()
    staged(config(source, tmp_path / "local"), progress, nothing)
    assert files_of(place) == {"deep/b.npz": b"c"}
    assert len(told) == 1
    assert config(source, None) == staged(config(source, None), progress, nothing)


def test_a_file_alone_and_two_folders_of_one_name(source: Path, tmp_path: Path) -> None:
    one = staged(config(source / "a.npz", tmp_path / "local"), nothing, nothing)
    assert Path(one.data.path).name == "a.npz"
    assert Path(one.data.path).read_bytes() == (source / "a.npz").read_bytes()
    other = tmp_path / "other" / "sessions"
    other.mkdir(parents=True)
    first, second = (staged(config(folder, tmp_path / "local"), nothing, nothing) for folder in (source, other))
    assert first.data.path != second.data.path


def test_a_stop_and_a_small_disk_leave_no_half_file(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*far: object) -> None:
        raise StopRequested

    with pytest.raises(StopRequested):
        staged(config(source, tmp_path / "local"), stop, nothing)
    assert files_of(tmp_path / "local") == {}
    (place,) = (tmp_path / "local").iterdir()
    with alone_with(place), pytest.raises(StopRequested):  # another run copies it
        staged(config(source, tmp_path / "local"), nothing, stop)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=1000))
    with pytest.raises(DataError, match=r"data.stage: 3.0 MB are to be copied and 1.0 kB are free at"):
        staged(config(source, tmp_path / "local"), nothing, nothing)
    with pytest.raises(DataError, match=r"choose another data\.stage, or none"):
        staged(config(source, Path("/proc/none")), nothing, nothing)


@pytest.mark.behaviour("data-is-staged")
def test_a_training_reads_the_copy_and_records_the_original(
    new_run: Callable[..., LiveRun], source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = new_run(
        f"data.path={source}", f"data.stage={tmp_path / 'local'}", "training.epochs=1", "training.steps_per_epoch=2"
    )
    read: list[str] = []
    project = importlib.import_module("spiral.project").Spiral
    original = project.data

    def data(self: Any, cfg: RunConfig, device: Any) -> Any:
        read.append(cfg.data.path)
        return original(self, cfg, device)

    monkeypatch.setattr(project, "data", data)
    assert live.here() == "finished"
    (copy,) = (tmp_path / "local").iterdir()
    assert read == [str(copy)]
    assert files_of(copy) == {"a.npz": (source / "a.npz").read_bytes(), "deep/b.npz": b"b"}
    assert load_config(live.run.config).settings.data.path == str(source)
