"""A full disk holds a training: told while it lasts, over by itself, and afterwards nothing is missing."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from engines.basics import files
from engines.basics.errors import DataError
from engines.basics.line_writer import append_line
from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.contract.alerts import FULL_DISK
from engines.contract.events import Alert, Checkpoint, CommandAnswer, Phase
from engines.contract.rundir import Attempt, End, ProcessMark, RunDirectory
from engines.contract.steps import read_segments
from engines.runs import launch
from engines.runs.state import RunReader
from engines.runs.store import create_run
from engines.runtime import room
from engines.supervise import Supervisor
from engines.training import checkpoint
from engines.training.engine import _to_the_end
from engines.training.project import Result
from tests.engines.conftest import LiveRun, prepare_example, wait_for
from tests.engines.toy import ToyRun
from tests.support.example_project import ExampleProject

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def refuse(*_: Any, **__: Any) -> Any:
    raise FULL


def result(toy: ToyRun) -> tuple[Any, ...]:
    """What the training came to: weights, every step, every epoch, what was answered."""
    weights = {name: tensor.clone() for name, tensor in checkpoint.load(toy.run.last)["model"].items()}
    ((columns, steps),) = read_segments(toy.run.steps)
    measured = [column not in ("time", "data_wait") for column in columns]
    lines = (toy.run.train_metrics, toy.run.val_metrics)
    epochs = [msgspec.json.decode(line) for file in lines for line in file.read_bytes().split(b"\n") if line]
    told = RunReader(toy.run)
    told.poll()
    answers = [(type(answer.command), answer.step) for answer in told.history.answers if answer.state == "applied"]
    return (
        weights,
        steps[:, measured].copy(),
        [{**epoch, "seconds": 0} for epoch in epochs],
        answers,
        told.damaged_lines,
    )


@pytest.mark.behaviour("full-disk-takes-nothing")
def test_each_write_of_a_training_may_be_refused_and_nothing_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other write fails: the events' and the metrics', the steps', the review's, the answers to orders."""
    monkeypatch.setattr(room, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(room, "TIMES", 0.0)
    runs = [ToyRun(tmp_path / name, checkpoint_minutes=100) for name in ("undisturbed", "held")]
    for toy in runs:
        for order in (
            cmd.SetLrScale(attempt=1, at_step=5, scale=0.5),
            cmd.SetPatience(attempt=1, at_step=9, patience=7),
        ):
            append_line(toy.run.commands, cmd.encode(order))
    assert runs[0].train() == "finished"
    refused: list[str] = []

    def every_other(real: Callable[..., Any], name: str) -> Callable[..., Any]:
        calls: list[object] = []

        def write(*arguments: Any, **options: Any) -> Any:
            calls.append(arguments)
            if len(calls) % 2 and threading.current_thread() is threading.main_thread():
                refused.append(name)
                raise FULL
            return real(*arguments, **options)

        return write

    with monkeypatch.context() as disk:
        disk.setattr(os, "write", every_other(os.write, "append"))
        disk.setattr(files, "replace_bytes", every_other(files.replace_bytes, "replace"))
        assert runs[1].train() == "finished"
    assert refused.count("append") > 30
    assert refused.count("replace") > 3
    (weights, steps, *others), (held, held_steps, *held_others) = map(result, runs)
    assert all(torch.equal(weights[name], held[name]) for name in weights)
    assert steps.tobytes() == held_steps.tobytes()
    assert held_others == others
    assert others[-1] == 0  # no line is damaged


@pytest.mark.behaviour("full-disk-takes-nothing")
def test_a_best_epoch_that_found_the_disk_full_is_saved_as_the_best_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last epoch is the best, and the disk is full while it is saved: best.pt and the export are that epoch's."""
    saves: list[bool] = []
    real = checkpoint.write

    def write(*arguments: Any, best: bool, **options: Any) -> Checkpoint:
        saves.append(best)
        if len(saves) == 3:
            raise FULL
        return real(*arguments, best=best, **options)

    monkeypatch.setattr(checkpoint, "write", write)
    toy = ToyRun(tmp_path, checkpoint_minutes=100)
    scores = iter((0.1, 0.2, 0.3))
    evaluate = toy.trainer.evaluate
    monkeypatch.setattr(toy.trainer, "evaluate", lambda: replace(result_of(evaluate), score=next(scores)))
    assert toy.train() == "finished"
    assert saves == [True, True, True, True]
    for file in (toy.run.best, toy.run.last):
        state = checkpoint.load(file)["state"]
        assert (state["epoch"], state["best_epoch"], state["best_score"]) == (3, 3, 0.3)


@pytest.mark.behaviour("full-disk-takes-nothing")
def test_a_best_epoch_that_found_the_disk_full_is_none_of_the_next_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full while a stage's last epoch is saved, and the run stops before the next stage's first step."""
    saves: list[bool] = []
    real = checkpoint.write

    def write(*arguments: Any, best: bool, **options: Any) -> Checkpoint:
        saves.append(best)
        if len(saves) == 2:
            toy.listener.signalled = True
            raise FULL
        return real(*arguments, best=best, **options)

    monkeypatch.setattr(checkpoint, "write", write)
    stages = [{"name": "one", "epochs": 2}, {"name": "two", "restart_best": True}]
    toy = ToyRun(tmp_path, checkpoint_minutes=100, stages=stages)
    scores = iter((0.1, 0.2))
    evaluate = toy.trainer.evaluate
    monkeypatch.setattr(toy.trainer, "evaluate", lambda: replace(result_of(evaluate), score=next(scores)))
    assert toy.train() == "stopped"
    assert saves == [True, True, False]
    state = checkpoint.load(toy.run.last)["state"]
    assert (state["epoch"], state["stage"], state["best_epoch"], state["best_score"]) == (2, 1, 0, None)
    assert checkpoint.load(toy.run.best)["state"]["epoch"] == 1


def result_of(evaluate: Callable[[], Result | None]) -> Result:
    result = evaluate()
    assert result is not None
    return result


@pytest.mark.behaviour("full-disk-takes-nothing")
def test_it_says_so_in_the_room_that_was_kept_and_hears_what_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the reserve lies there nothing can be written; what is freed takes the events only, until there is room."""
    monkeypatch.setattr(room, "LEAST_SECONDS", 1000.0)
    toy = ToyRun(tmp_path)
    writer = toy.trainer.step_log._writer
    assert writer is not None
    append = writer.append
    full = threading.Event()
    full.set()
    monkeypatch.setattr(writer, "append", lambda rows: refuse() if full.is_set() else append(rows))
    room.keep_reserve(toy.run)
    reader, seen = RunReader(toy.run), list[Any]()

    def events(kind: type[Any]) -> list[Any]:
        seen.extend(reader.poll())
        return [event for event in seen if isinstance(event, kind)]

    def press(answer: str) -> None:
        """What the key p sends while the run is shown as paused."""
        launch.send(toy.run, order := cmd.Continue(attempt=1))
        wait_for("the answer", lambda: [one for one in events(CommandAnswer) if one.command.id == order.id][1:])
        assert [one.state for one in events(CommandAnswer) if one.command.id == order.id] == ["seen", answer]

    toy.listener._thread.start()  # no signals: those are the main thread's
    training = threading.Thread(target=toy.trainer.train)
    training.start()
    try:
        wait_for("the alert", lambda: events(Alert))
        paused = events(Phase)[-1]
        assert (paused.phase, paused.detail) == ("paused", "disk full, paused until there is space")
        assert [(alert.code, alert.over) for alert in events(Alert)] == [(FULL_DISK, False)]
        assert not room.reserve(toy.run).exists()
        press("refused")
    finally:
        full.clear()
    press("applied")
    training.join()
    toy.listener.__exit__()
    assert [(alert.code, alert.over) for alert in events(Alert)] == [(FULL_DISK, False), (FULL_DISK, True)]
    after = events(Phase)[events(Phase).index(paused) + 1]
    assert after.phase == "training"
    assert room.reserve(toy.run).is_file()


@pytest.mark.behaviour("full-disk-takes-nothing")
def test_a_signal_makes_it_leave_without_having_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = ToyRun(tmp_path)
    monkeypatch.setattr(toy.trainer.step_log._writer, "append", refuse)
    asked = threading.Timer(0.1, lambda: toy.listener._on_signal(15, None))
    asked.start()
    ended = _to_the_end(toy.trainer, [])
    assert ended.reason == "stopped"
    assert ended.detail.startswith("disk full: progress since the last checkpoint is lost")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of four megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.behaviour("full-disk-takes-nothing")
def test_a_supervisor_that_finds_the_disk_full_is_explained(small_disk: Path) -> None:
    """It can write neither its first record nor why: the launcher says so, and the run starts once there is room."""
    run = create_run(
        "toy", "project: toy\n", kind="training", engine="engines.train", title="", path=small_disk / "run"
    )
    filler = small_disk / "filler"
    with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    with pytest.raises(DataError, match=r"did not start: its disk is full; free some space, then start it with"):
        launch.start(run)
    assert RunReader(run).status().state == "lost"
    filler.unlink()
    assert launch.start(run) == 1
    wait_for("its end", lambda: lock_holder(run.lock) is None)


@pytest.mark.behaviour("full-disk-takes-nothing")
def test_the_end_is_recorded_though_somebody_deleted_the_records(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    run.make()
    attempt = Attempt(number=1, started=1.0, supervisor=ProcessMark(os.getpid(), 0.0))
    attempt.ended = End(reason="finished", time=2.0, exit_code=0)
    shutil.rmtree(run.attempts)
    Supervisor(run)._record_end(attempt)
    assert RunReader(run).status().state == "finished"


@pytest.mark.behaviour("full-disk-takes-nothing")
def test_a_disk_that_fills_pauses_a_real_run_until_there_is_room(
    example: ExampleProject, monkeypatch: pytest.MonkeyPatch, small_disk: Path
) -> None:
    live = LiveRun(
        prepare_example(example, monkeypatch, small_disk, "training.epochs=100000", "training.patience=100000")
    )
    live.start()
    try:
        wait_for("an epoch", lambda: live.reader.poll() and live.reader.history.epochs)
        filler = small_disk / "filler"
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        live.wait_state("paused")
        assert live.reader.status().detail == "disk full, paused until there is space"
        assert FULL_DISK in live.reader.history.standing
        filler.unlink()
        live.wait_state("running")
        assert FULL_DISK not in live.reader.history.standing
        live.send(cmd.Stop(attempt=1))
        assert live.wait_end() == "stopped"
    finally:
        if (holder := lock_holder(live.run.lock)) is not None:
            os.kill(holder, 3)
            live.wait_end()
    steps = [int(step) for _, rows in read_segments(live.run.steps) for step in rows[:, 0]]
    assert steps == list(range(torch.load(live.run.last, weights_only=True)["state"]["step"]))
    live.reader.poll()
    assert list(live.reader.history.epochs) == list(range(1, len(live.reader.history.epochs) + 1))
