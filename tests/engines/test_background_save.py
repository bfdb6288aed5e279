"""Checkpoints that are written while the training continues."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from engines.training import checkpoint
from tests.engines.toy import ToyRun


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Every background write waits until `go` is set; `running` and `most` count those at work at once."""
    seen: dict[str, Any] = {"go": threading.Event(), "running": 0, "most": 0, "begun": threading.Event(), "saves": []}
    real = checkpoint.write

    def write(*arguments: Any, **options: Any) -> Any:
        seen["running"] += 1
        seen["most"] = max(seen["most"], seen["running"])
        if threading.current_thread() is not threading.main_thread():
            seen["begun"].set()
            assert seen["go"].wait(60)
        try:
            seen["saves"].append((options["step"], options["best"]))
            return real(*arguments, **options)
        finally:
            seen["running"] -= 1

    monkeypatch.setattr(checkpoint, "write", write)
    return seen


@pytest.mark.behaviour("saved-while-trains")
def test_a_training_continues_while_it_is_saved_and_the_file_holds_the_step_it_began_at(
    tmp_path: Path, held: dict[str, Any]
) -> None:
    toy = ToyRun(tmp_path, epochs=2)
    at_save: dict[str, torch.Tensor] = {}
    log = toy.trainer.step_log.add

    def add(row: Any, *, step: int, **rest: Any) -> None:
        log(row, step=step, **rest)
        if step == 2:
            toy.trainer.state.step += 1  # as after the step
            toy.trainer.checkpoints.save_in_background()
            toy.trainer.state.step -= 1
            at_save.update({name: value.clone() for name, value in toy.model.state_dict().items()})
        if step == 5:  # three steps later nothing is written yet
            assert held["begun"].wait(60)
            assert not toy.run.last.exists()
            held["go"].set()
            toy.trainer.checkpoints.settle()
            saved = checkpoint.load(toy.run.last)
            assert saved["state"]["step"] == 3
            assert checkpoint.same(saved["model"], at_save)
            assert not checkpoint.same(saved["model"], toy.model.state_dict())

    toy.trainer.step_log.add = add  # type: ignore[method-assign]
    assert toy.train() == "finished"
    assert held["saves"][0] == (3, False)


@pytest.mark.behaviour("saved-while-trains")
def test_there_are_never_two_at_once_and_every_one_is_told(tmp_path: Path, held: dict[str, Any]) -> None:
    held["go"].set()
    toy = ToyRun(tmp_path, epochs=3, checkpoint_minutes=1e-9)  # after every step
    assert toy.train() == "finished"
    assert held["most"] == 1
    assert len(held["saves"]) > 20
    events = map(msgspec.json.decode, toy.run.events.read_bytes().splitlines())
    told = [event["step"] for event in events if event["type"] == "checkpoint"]
    assert told == [step for step, _ in held["saves"]]
    assert checkpoint.load(toy.run.last)["state"]["step"] == 24


def test_another_fault_than_the_disks_ends_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any, **options: Any) -> Any:
        raise ValueError("cannot be pickled")

    monkeypatch.setattr(checkpoint, "write", broken)
    with pytest.raises(ValueError, match="cannot be pickled"):
        ToyRun(tmp_path).train()


def test_a_snapshot_is_what_was_there_and_keeps_what_is_shared_once() -> None:
    weight = torch.arange(6.0).reshape(2, 3)
    content = {"tied": weight, "again": weight, "row": weight[1], "lr": 0.1, "groups": [{"step": torch.tensor(3.0)}]}
    snapshot = checkpoint.Snapshot(content)
    weight.zero_()
    content["groups"][0]["step"] += 1  # type: ignore[index]
    kept = snapshot.content()
    assert kept["tied"] is kept["again"]
    assert kept["tied"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert kept["row"].tolist() == [3, 4, 5]
    assert (kept["groups"][0]["step"], kept["lr"]) == (3.0, 0.1)
