"""A full disk holds a training: told while it lasts, over by itself, and afterwards nothing is missing."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import threading
import weakref
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
from engines.contract.alerts import CHECKPOINT_FAILED, FULL_DISK
from engines.contract.events import Alert, Checkpoint, CommandAnswer, Phase
from engines.contract.rundir import Attempt, End, ProcessMark, RunDirectory
from engines.contract.steps import read_segments
from engines.runs import launch
from engines.runs.state import RunReader
from engines.runs.store import create_run
from engines.runtime import room
from engines.supervise import Supervisor
from engines.training import checkpoint
from engines.training.engine import _to_the_end, resume
from engines.training.project import Result
from engines.training.saving import Diverged
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


class Disk:
    """Refuses the writes of checkpoints of these numbers, from 1; what was written is in `saves`: epochs, and whether
    as the best."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *refused: int) -> None:
        self.saves: list[tuple[int, bool]] = []
        self.asked = 0
        self.on_refusal: Callable[[], object] = lambda: None
        real = checkpoint.write

        def write(*arguments: Any, epoch: int, best: bool, **options: Any) -> Checkpoint:
            self.asked += 1
            if self.asked in refused:
                self.on_refusal()
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.saves.append((epoch, best))
            return real(*arguments, epoch=epoch, best=best, **options)

        monkeypatch.setattr(checkpoint, "write", write)


def scored(folder: Path, *scores: float, **training: Any) -> ToyRun:
    """A training whose epochs have these scores."""
    toy = ToyRun(folder, checkpoint_minutes=100, epochs=len(scores), **training)
    evaluate, left = toy.trainer.evaluate, iter(scores)
    toy.trainer.evaluate = lambda **_: replace(result_of(evaluate), score=next(left))  # type: ignore[assignment]
    return toy


@pytest.mark.behaviour("full-disk-takes-nothing")
@pytest.mark.parametrize(
    ("scores", "refused", "saves"),
    [
        pytest.param((0.1, 0.3, 0.2), (2,), [(1, True), (2, True), (3, False)], id="written with the next save"),
        pytest.param((0.1, 0.3, 0.2), (2, 3), [(1, True), (2, True), (3, False)], id="written when the run ends"),
        pytest.param((0.1, 0.3, 0.2), (3,), [(1, True), (2, True), (3, False)], id="a later epoch"),
        pytest.param((0.1, 0.2, 0.3), (2,), [(1, True), (3, True)], id="a better one came"),
        pytest.param((0.1, 0.2, 0.3), (3,), [(1, True), (2, True), (3, True)], id="the last epoch"),
        pytest.param((0.1, 0.3, 0.2, 0.2, 0.2), (2, 3), [(1, True), (2, True), (4, False)], id="patience counts on"),
    ],
)
def test_a_best_epoch_that_found_the_disk_full_is_delivered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scores: tuple[float, ...], refused: tuple[int, ...],
    saves: list[tuple[int, bool]],
) -> None:  # fmt: skip
    """Both checkpoints equal those of a run that had space all the time; the alert is active until one is written."""
    undisturbed = scored(tmp_path / "undisturbed", *scores, patience=2)
    end = undisturbed.train()
    disk = Disk(monkeypatch, *refused)
    toy = scored(tmp_path / "full", *scores, patience=2)
    assert toy.train() == end
    assert disk.saves == saves
    assert_same_checkpoints(toy, undisturbed)
    reader = RunReader(toy.run)
    reader.poll()
    alerts = [alert.code for alert in reader.history.alerts]
    assert alerts == [CHECKPOINT_FAILED] * len(refused)
    first, said = refused[0], reader.history.alerts[0].text
    is_best = max(scores[:first]) == scores[first - 1]
    assert f"no checkpoint at step {8 * first}: No space left" in said
    assert (f"epoch {first}, the best, is written with the next save" in said) == is_best
    assert CHECKPOINT_FAILED not in reader.history.standing


def assert_same_checkpoints(one: ToyRun, other: ToyRun) -> None:
    for ours, theirs in ((one.run.best, other.run.best), (one.run.last, other.run.last)):
        assert checkpoint.same(checkpoint.load(ours), checkpoint.load(theirs))


@pytest.mark.behaviour("full-disk-takes-nothing")
def test_a_run_killed_with_a_best_epoch_in_memory_computes_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No save overtakes it: what is on disk knows nothing of it, and the resumed run delivers it."""
    undisturbed = scored(tmp_path / "undisturbed", 0.1, 0.3, 0.2)
    undisturbed.train()
    Disk(monkeypatch, *range(2, 100))
    toy = scored(tmp_path / "killed", 0.1, 0.3, 0.2)
    monkeypatch.setattr(toy.trainer.checkpoints, "complete", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        toy.train()
    for file in (toy.run.best, toy.run.last):
        state = checkpoint.load(file)["state"]
        assert (state["epoch"], state["best_epoch"]) == (1, 1)
    monkeypatch.undo()
    again = scored(tmp_path / "killed", 0.3, 0.2, 0.0, attempt=2)
    again.trainer.state.live.epochs = 3
    resume(again.run, again.trainer)
    with again.listener:
        assert again.trainer.train() == "finished"
    assert_same_checkpoints(again, undisturbed)


def test_a_best_epoch_in_memory_is_written_when_the_run_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its message says that a fork can begin with the best."""
    disk = Disk(monkeypatch, 2)
    toy = scored(tmp_path, 0.1, 0.3, 0.2, max_bad_steps=3)
    toy.project.poison_from = 16
    with pytest.raises(Diverged):
        toy.train()
    assert disk.saves == [(1, True), (2, True)]
    assert checkpoint.load(toy.run.best)["state"]["epoch"] == 2


@pytest.mark.behaviour("full-disk-takes-nothing")
def test_a_best_epoch_that_found_the_disk_full_is_the_best_of_its_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full while a stage's last epoch is saved, and the run stops before the next stage's first step."""
    disk = Disk(monkeypatch, 2)
    stages = [{"name": "one", "epochs": 2}, {"name": "two", "restart_best": True}]
    toy = scored(tmp_path, 0.1, 0.2, 0.0, stages=stages)
    disk.on_refusal = lambda: setattr(toy.listener, "signalled", True)
    assert toy.train() == "stopped"
    assert disk.saves == [(1, True), (2, True), (2, False)]
    state = checkpoint.load(toy.run.last)["state"]
    assert (state["epoch"], state["stage"], state["best_epoch"], state["best_score"]) == (2, 1, 0, None)
    assert checkpoint.load(toy.run.stage_best(1))["state"]["epoch"] == 2


@pytest.mark.behaviour("full-disk-takes-nothing")
def test_at_most_three_snapshots_are_in_memory_while_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest best, the newest epoch that keeps a checkpoint of its own, and the one that is being saved."""
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    most: list[int] = []

    class Counted(checkpoint.Snapshot):
        def __init__(self, content: dict[str, Any]) -> None:
            super().__init__(content)
            alive.add(self)
            most.append(len(alive))

    monkeypatch.setattr(checkpoint, "Snapshot", Counted)
    disk = Disk(monkeypatch, *range(2, 10))
    toy = scored(tmp_path, 0.1, 0.2, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1)
    toy.settings.output.keep_epochs = 2
    assert toy.train() == "finished"
    assert max(most) == 3
    assert disk.saves == [(1, True), (3, True), (8, False)]
    assert [file.name for file in sorted(toy.run.checkpoints.iterdir())] == ["best.pt", "epoch_008.pt", "last.pt"]


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
