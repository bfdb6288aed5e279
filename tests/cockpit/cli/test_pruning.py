"""prune: what it would remove, what it removes, and what it never does."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from pathlib import Path

import msgspec
import pytest

from cockpit.core.runs import prune
from engines.runs.keeping import KeepRule, Scored
from tests.cockpit.cli.conftest import Cockpit
from tests.support.fake_run import FakeRun, epoch

SIZE = 1 << 20
SCORES = (0.1, 0.5, 0.3, 0.4)


def trained(runs: Path, word: str = "amber", end: str = "finished") -> FakeRun:
    """Four epochs with a checkpoint each; best.pt and last.pt are links to theirs."""
    fake = FakeRun(runs, f"controls-20261127-201400-{word}").begin().started()
    for number, score in enumerate(SCORES, 1):
        fake.say(msgspec.structs.replace(epoch(number), score=score))
        (fake.run.checkpoints / f"epoch_{number:03d}.pt").write_bytes(os.urandom(SIZE))
    os.link(fake.run.checkpoints / "epoch_002.pt", fake.run.best)
    os.link(fake.run.checkpoints / "epoch_004.pt", fake.run.last)
    return fake.end("finished") if end else fake


def left(fake: FakeRun) -> list[str]:
    return sorted(file.name for file in fake.run.checkpoints.iterdir())


@pytest.mark.behaviour("prune-shows-first")
def test_it_says_first_and_removes_only_when_told(cockpit: Cockpit, runs: Path) -> None:
    fake = trained(runs)
    (fake.run.checkpoints / "stage_1_best.pt").touch()
    (fake.run.checkpoints / "epoch_099.pt").touch()  # of no epoch that is on record
    before = left(fake)
    shown = cockpit("prune", "--keep-best", "1")
    assert "would remove 3 checkpoints, 2.1 MB; add --yes to do it" in shown.stderr
    assert left(fake) == before
    done = json.loads(cockpit("prune", "--yes", "--json").stdout)
    assert ([row["epoch"] for row in done["files"]], done["freed"], done["removed"]) == ([1, 3, 4], 2 * SIZE, True)
    assert left(fake) == ["best.pt", "epoch_002.pt", "epoch_099.pt", "last.pt", "stage_1_best.pt"]
    assert "no checkpoint to remove" in cockpit("prune", "--yes").stderr


def test_the_last_one_goes_only_where_asked_and_the_run_is_over(cockpit: Cockpit, runs: Path) -> None:
    over, alone = trained(runs), trained(runs, "birch")
    alone.run.best.unlink()
    assert cockpit("prune", "--yes", "--keep-every", "2", "--keep-best", "0", "--last").returncode == 0
    assert left(over) == ["best.pt", "epoch_002.pt", "epoch_004.pt"]
    assert left(alone) == ["epoch_002.pt", "epoch_004.pt", "last.pt"]


def test_a_live_run_keeps_all_it_has(cockpit: Cockpit, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = trained(runs)
    before = left(fake)
    monkeypatch.setattr(prune, "lock_holder", lambda path: 1)
    assert "no checkpoint to remove" in cockpit("prune", "--yes").stderr
    assert left(fake) == before
    assert "expected a number of 0 or more" in cockpit("prune", "--keep-best", "-1").stderr


def saved(file: Path, shards: str = "") -> Path:
    """A checkpoint that names a folder of shards, with two shards of one block each in it; the folder."""
    live = {"weights": {}, "lr_scale": 1.0, "epochs": 4, "patience": None}
    state = {"step": 6, "epoch": 4, "step_in_epoch": 0, "live": live}
    with zipfile.ZipFile(file, "w") as archive:
        content = {"state": state, "shards": {"folder": shards} if shards else {}}
        archive.writestr("last/data.pkl", pickle.dumps(content, 2))
    folder = file.with_name(shards or file.stem)
    folder.mkdir()
    for number in (1, 2):
        (folder / f"shard-{number:05d}.safetensors").write_bytes(bytes(4096))
    return folder


@pytest.mark.behaviour("prune-removes-unnamed-shards")
def test_only_shards_that_no_checkpoint_names_go_and_nothing_strange_stops_it(cockpit: Cockpit, runs: Path) -> None:
    fake = trained(runs)
    there = fake.run.checkpoints
    for file in there.iterdir():
        file.unlink()
    saved(fake.run.best)
    last, moved = saved(fake.run.last, "shards_6_1"), saved(there / "last.pt.bak", "shards_5_1")
    refused = saved(there / "refused.pt", "shards_7_1")
    (there / "refused.pt").unlink()
    for folder in (last, refused):
        (folder / "stray.safetensors").mkdir()
        (folder / "stray.safetensors" / "notes").touch()
    (there / "epoch_001.pt").mkdir()
    (there / "shards_8_1").write_text("a file")
    (there / "shards_9_1").symlink_to(moved)
    (there / ".last.pt.0a1b2c3d.tmp").write_bytes(b"cut")  # by a kill
    before = set(left(fake))
    for name in ("epoch_099.pt", "last.pt.old"):
        (there / name).write_bytes(b"cut")
        assert "no checkpoint to remove" in cockpit("prune").stderr
        (there / name).unlink()
    (there / "away.pt").symlink_to("/not/mounted.pt")
    assert "no checkpoint to remove" in cockpit("prune").stderr
    (there / "away.pt").unlink()
    assert "removed 1 folder of shards that no checkpoint names, 8.2 kB" in cockpit("prune", "--yes").stderr
    assert set(left(fake)) == before - {refused.name}
    cockpit("prune", "--yes", "--last")
    assert set(left(fake)) == before - {refused.name, last.name, "last.pt"}


def test_a_run_without_an_end_on_record_keeps_its_shards(cockpit: Cockpit, runs: Path) -> None:
    """A machine that shares the volume, without its locks, cannot see that it is live."""
    fake = trained(runs, end="")
    (fake.run.checkpoints / "shards_7_1").mkdir()
    for file in fake.run.checkpoints.glob("*.pt"):
        file.unlink()
    assert "no checkpoint to remove" in cockpit("prune").stderr
    fake.end("stopped")
    assert "would remove 1 folder of shards" in cockpit("prune").stderr


def test_the_best_are_those_of_each_stage() -> None:
    epochs = [Scored(1, "a", 3.0), Scored(2, "a", 3.0), Scored(3, "a", None), Scored(4, "b", 0.1), Scored(5, "b", 0.2)]
    assert KeepRule(every=0, best=1).kept(epochs) == {1, 5}
    assert KeepRule(every=2, best=0).kept(epochs) == {2, 4}
    assert KeepRule(every=0, best=1).after(epochs) == (True, {4})
    assert KeepRule(every=4, best=1).after(epochs) == (True, set())
    assert KeepRule(every=0, best=0).after(epochs[:1]) == (False, set())
