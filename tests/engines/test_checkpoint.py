"""Checkpoints: whole or absent, last before best, never running code, a clear sentence when damaged."""

from __future__ import annotations

import errno
import os
import pickle
import random
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from engines.basics import files
from engines.basics.errors import DataError
from engines.basics.jsonl import RecordFollower
from engines.contract import events as ev
from engines.training import checkpoint, engine
from tests.engines.conftest import LiveRun
from tests.engines.toy import ToyProject, ToyRun


class Evil:
    """A pickle that would make a file when loaded."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self._path),))


def test_best_and_last_hold_their_own_epochs(tmp_path: Path) -> None:
    class Falling(ToyProject):
        """Best in the second epoch of three."""

        scores = iter([1.0, 3.0, 2.0])

        def evaluation(self, cfg: Any, data: Any) -> Any:
            self.forced_score = next(self.scores)
            return super().evaluation(cfg, data)

    toy = ToyRun(tmp_path, Falling())
    toy.train()
    best, last = checkpoint.load(toy.run.best), checkpoint.load(toy.run.last)
    assert (best["state"]["epoch"], last["state"]["epoch"]) == (2, 3)
    assert last["state"]["best_score"] == 3.0
    assert not list(toy.run.checkpoints.glob(".*"))


def test_kept_epochs(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, epochs=5)
    toy.settings.output.keep_epochs = 2
    toy.train()
    assert sorted(f.name for f in toy.run.checkpoints.iterdir()) == [
        "best.pt",
        "epoch_002.pt",
        "epoch_004.pt",
        "last.pt",
    ]
    assert checkpoint.load(toy.run.checkpoints / "epoch_002.pt")["state"]["epoch"] == 2


@pytest.mark.behaviour("best-epochs-are-kept")
def test_the_best_epochs_are_kept_and_others_go(tmp_path: Path) -> None:
    class Scored(ToyProject):
        scores = iter([2.0, 5.0, 1.0, 3.0, 4.0, 0.0])

        def evaluation(self, cfg: Any, data: Any) -> Any:
            self.forced_score = next(self.scores)
            return super().evaluation(cfg, data)

    toy = ToyRun(tmp_path, Scored(), epochs=6)
    toy.settings.output.keep_best, toy.settings.output.keep_epochs = 2, 4
    toy.run.checkpoints.joinpath("epoch_900.pt").touch()  # somebody else's, or of another rule
    toy.train()
    kept = {file.name for file in toy.run.checkpoints.glob("epoch_*.pt")}
    assert kept == {"epoch_002.pt", "epoch_004.pt", "epoch_005.pt", "epoch_900.pt"}
    assert checkpoint.load(toy.run.checkpoints / "epoch_005.pt")["state"]["epoch"] == 5


def test_a_hostile_checkpoint_runs_nothing(tmp_path: Path) -> None:
    path, target = tmp_path / "evil.pt", tmp_path / "made by the pickle"
    torch.save({"format": 1, "model": Evil(target)}, path)
    with pytest.raises(DataError, match=r"evil\.pt is not a whole checkpoint"):
        checkpoint.load(path)
    path.write_bytes(pickle.dumps(Evil(target)))
    with pytest.raises(DataError, match=r"evil\.pt is not a whole checkpoint"):
        checkpoint.load(path)
    assert not target.exists()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_checkpoint_cut_short_is_one_sentence(tmp_path: Path, share: float) -> None:
    toy = ToyRun(tmp_path, epochs=1)
    toy.train()
    data = toy.run.last.read_bytes()
    toy.run.last.unlink()
    toy.run.last.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(DataError) as caught:
        checkpoint.load(toy.run.last)
    assert str(toy.run.last) in str(caught.value)
    assert "\n" not in str(caught.value)
    checkpoint.load(toy.run.best)  # made by a hard link, but last.pt was replaced, not changed


def test_resuming_from_a_damaged_checkpoint_fails_clearly_and_loses_nothing(new_run: Callable[..., LiveRun]) -> None:
    live = new_run("training.epochs=2")
    assert live.here() == "finished", live.log()
    whole = live.run.last.read_bytes()
    live.run.last.unlink()
    live.run.last.write_bytes(whole[:1000])
    before = live.run.events.read_bytes()
    assert live.resume_here("training.epochs=3") == "failed"
    assert "last.pt is not a whole checkpoint" in live.reader.status().detail
    assert "Traceback" not in live.log()
    assert live.run.events.read_bytes().startswith(before)
    live.reader.poll()
    assert len(live.reader.history.epochs) == 2  # a resume that never began supersedes nothing
    live.run.last.unlink()
    assert live.resume_here("training.epochs=3") == "finished", live.log()
    live.reader.poll()
    assert len(live.reader.history.epochs) == 3


@pytest.mark.behaviour("full-disk-save-sentence")
def test_a_full_disk_at_a_save_keeps_the_older_checkpoint_and_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = ToyRun(tmp_path, epochs=3)
    real, calls = files.replace_with, []

    def full_at_the_second_checkpoint(path: Path, write: Any) -> None:
        calls.append(path.name)
        if calls.count("last.pt") == 2 and path.name == "last.pt":

            def fill(file: Any) -> None:
                file.write(b"half")
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            real(path, fill)
        real(path, write)

    monkeypatch.setattr(files, "replace_with", full_at_the_second_checkpoint)
    assert toy.train() == "finished"
    assert checkpoint.load(toy.run.last)["state"]["epoch"] == 3
    alert = next(line for line in toy.run.events.read_text().splitlines() if "checkpoint-failed" in line)
    assert "no checkpoint at step 16: No space left on device" in alert
    assert not list(toy.run.checkpoints.glob(".*"))


@pytest.mark.behaviour("full-disk-save-sentence")
def test_a_disk_that_fills_while_a_checkpoint_is_written_keeps_the_training(tmp_path: Path) -> None:
    """No fault injected: the kernel itself refuses the bytes, in the middle of torch's own writing."""
    toy = ToyRun(tmp_path, epochs=2)
    toy.trainer.model.register_buffer("large", torch.zeros(100_000))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):  # both epochs trained, but nothing of them kept
            toy.train()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert toy.trainer.state.epoch == 2
    assert "no checkpoint at step 8: File too large; the older one is kept" in toy.run.events.read_text()
    assert not list(toy.run.checkpoints.iterdir())


def test_a_checkpoint_of_another_model_is_one_sentence(new_run: Callable[..., LiveRun]) -> None:
    live = new_run("training.epochs=1", "training.stages=[]")
    assert live.here() == "finished", live.log()
    content = torch.load(live.run.last, weights_only=True)
    del content["optimizer"]
    torch.save(content, live.run.last)
    assert live.resume_here("training.epochs=2") == "failed"
    detail = live.reader.status().detail
    assert "last.pt does not match the model and the settings of" in detail
    assert "Traceback" not in live.log()


def test_whatever_is_damaged_in_a_checkpoint_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    torch.save({"format": 1, "model": {"weight": torch.zeros(10)}, "state": {"epoch": 1, "best": [1, 2.5, "x"]}}, path)
    whole = path.read_bytes()
    chance = random.Random(0)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 3, 10))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            checkpoint.load(path)
        except DataError:
            refused += 1
    assert refused > 500


def test_a_copy_stands_in_where_links_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    toy = ToyRun(tmp_path, epochs=1)
    toy.train()
    assert toy.run.best.read_bytes() == toy.run.last.read_bytes()
    assert toy.run.best.stat().st_ino != toy.run.last.stat().st_ino


def test_checkpoints_are_private(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path / "run", epochs=1)
    toy.train()
    assert toy.run.last.stat().st_mode & 0o777 == 0o600
    assert toy.run.events.stat().st_mode & 0o777 == 0o600
    assert toy.run.checkpoints.stat().st_mode & 0o777 == 0o700


@pytest.mark.behaviour("best-pt-lost-made")
@pytest.mark.parametrize("keep", [1, 0], ids=["kept", "not kept"])
@pytest.mark.parametrize("damage", ["gone", "cut short"])
def test_a_best_that_was_lost_is_not_promised_any_more(tmp_path: Path, damage: str, keep: int) -> None:
    """Else the run would end with other weights as its best, under the score of those that are gone."""

    class Falling(ToyProject):
        forced_score = 3.0  # in the first epoch, and never better

    toy = ToyRun(tmp_path, Falling())
    toy.settings.output.keep_epochs = keep
    toy.train()
    weights = checkpoint.load(toy.run.best)["model"]
    toy.run.best.rename(tmp_path / "whole.pt")
    if damage == "cut short":
        toy.run.best.write_bytes((tmp_path / "whole.pt").read_bytes()[:-100])
    again = ToyRun(tmp_path, Falling(), attempt=2)
    engine.resume(again.run, again.trainer)
    state = again.trainer.state
    events = RecordFollower(again.run.events, ev.decoder).poll()
    [told] = [event.text for event in events if isinstance(event, ev.Alert) and event.code == "best-lost"]
    assert "best.pt, of epoch 1, was missing or damaged" in told
    if keep:
        assert (state.best_score, state.best_epoch) == (3.0, 1)
        assert checkpoint.same(checkpoint.load(again.run.best)["model"], weights)
    else:
        assert (state.best_score, state.best_epoch) == (None, 0)
        assert not again.run.best.exists()
