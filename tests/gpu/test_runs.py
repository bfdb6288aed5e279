"""Whole runs on a GPU, started as a person starts them: to a report, stopped, killed, resumed, forked, queued."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from cockpit.core.run.report import read_report
from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory
from engines.contract.steps import logged, read_segments
from engines.runs import launch
from tests.engines.conftest import LiveRun, effective_table, tensors, wait_for
from tests.gpu.conftest import DEVICE, ON_GPU, command, memory_used, needs_driver, read_gpu
from tests.gpu.trainers import CONFIG

pytestmark = [pytest.mark.gpu, *ON_GPU]
Record = Callable[[str, object], None]
NAME = f"{DEVICE}:0" if DEVICE == "cuda" else DEVICE
STEPS = 100 if DEVICE == "cuda" else 3
RANDOM = (
    "model.dropout=0.2", "data.augmentation.noise=0.005", "data.augmentation.warp=0.2", "data.augmentation.crop=0.1",
)  # fmt: skip
SHORT = ("training.epochs=2", "training.steps_per_epoch=30", "training.batch_size=16", "launch.threads=2")


@pytest.fixture
def prepare(recordings: Path, runs: Path) -> Iterator[Callable[..., LiveRun]]:
    """Makes runs of the demo config, and ends what a failing test leaves alive."""
    made: list[LiveRun] = []

    def one(device: str, *settings: str) -> LiveRun:
        overrides = [f"data.path={recordings}", f"launch.device={device}", *settings]
        made.append(LiveRun(launch.prepare_training(CONFIG, overrides)))
        return made[-1]

    yield one
    for live in made:
        if (holder := lock_holder(live.run.lock)) is not None:
            os.kill(holder, signal.SIGQUIT)


def finished(*lives: LiveRun) -> None:
    for live in lives:
        assert live.wait_end() == "finished", live.log()


def epoch_seconds(live: LiveRun) -> float:
    """Of its last epoch."""
    live.reader.poll()
    epochs = live.reader.history.epochs
    return epochs[max(epochs)].seconds


def devices_of(live: LiveRun) -> list[str]:
    events = map(msgspec.json.decode, live.run.events.read_bytes().splitlines())
    return [event["device"] for event in events if event["type"] == "run_started"]


def test_a_training_to_its_report_is_the_cpus(prepare: Callable[..., LiveRun], record_property: Record) -> None:
    """The score after 300 steps: in fp32 within .02 of the CPU's, in the precision the config chooses within .03."""
    size = ("training.epochs=3", f"training.steps_per_epoch={STEPS}", "launch.threads=6")
    lives = {
        "CPU": prepare("cpu", *size), "fp32": prepare(DEVICE, *size, "training.amp=off"), "auto": prepare(DEVICE, *size)
    }  # fmt: skip
    for live in lives.values():
        live.start()
    finished(*lives.values())
    rows = {name: effective_table(live.run)[-1] for name, live in lives.items()}
    record_property("score after 300 steps", {name: row["score"] for name, row in rows.items()})
    record_property("seconds of the last epoch of 100 steps", {
        name: epoch_seconds(live) for name, live in lives.items()
    })  # fmt: skip
    assert rows["fp32"]["score"] == pytest.approx(rows["CPU"]["score"], abs=0.02)
    assert rows["auto"]["score"] == pytest.approx(rows["CPU"]["score"], abs=0.03)
    assert devices_of(lives["auto"]) == [NAME]
    for live in lives.values():
        assert {"baselines", "sessions", "calibration"} <= {table.name for table in read_report(live.run)}
        exported = torch.load(live.run.export / "control_policy_v2.pt", weights_only=True)  # without map_location
        assert {tensor.device.type for tensor in exported.values()} == {"cpu"}
    assert "baselines" in command("report", lives["auto"].run.info.id)


def test_paused_killed_resumed_and_forked_it_is_the_same(
    prepare: Callable[..., LiveRun], record_property: Record
) -> None:
    """To the last bit, with dropout and augmentation drawn on the device."""
    settings = (*SHORT, *RANDOM, "training.checkpoint_minutes=0.002", "output.keep_epochs=1")
    straight, killed = prepare(DEVICE, *settings), prepare(DEVICE, *settings)
    straight.start()
    first, second = cmd.Pause(attempt=1, at_step=12), cmd.Pause(attempt=1, at_step=47)
    killed.send(first)
    killed.send(second)
    killed.start()
    killed.wait_answer(first, "applied")
    killed.wait_state("paused")
    killed.send(cmd.Continue(attempt=1))
    killed.wait_answer(second, "applied")
    killed.kill("engine")
    killed.resume()
    finished(straight, killed)
    saved = [point for point in tensors(straight.run.last) if "/random/cuda" in point]
    assert len(saved) == (DEVICE == "cuda")
    record_property("tensors that differ after a kill", different(straight.run, killed.run))
    assert different(straight.run, killed.run) == []
    assert effective_table(straight.run) == effective_table(killed.run)

    command("fork", straight.run.info.id, "--epoch", "1", "--detach")
    (path,) = (made for made in straight.run.path.parent.iterdir() if made.name not in known(straight, killed))
    fork = LiveRun(RunDirectory(path))
    finished(fork)
    assert different(straight.run, fork.run) == []


def known(*lives: LiveRun) -> set[str]:
    return {live.run.path.name for live in lives}


def different(one: RunDirectory, other: RunDirectory) -> list[str]:
    """Places in the last checkpoints of two runs that are not equal to the last bit, but for counters."""
    ours, theirs = tensors(one.last), tensors(other.last)
    assert ours.keys() == theirs.keys()
    return [place for place in ours if not place.startswith("/state") and not torch.equal(ours[place], theirs[place])]


def test_a_run_goes_on_on_the_cpu_and_back(prepare: Callable[..., LiveRun]) -> None:
    """Stopped on one device, resumed on the other, twice; the numbers go on where they were, to rounding."""
    live, straight = (prepare("cpu", *SHORT, "training.amp=off") for _ in range(2))
    straight.start()
    for attempt, (step, device) in enumerate([(10, "cpu"), (40, DEVICE), (None, "cpu")], start=1):
        if step is not None:
            live.send(cmd.Stop(attempt=attempt, at_step=step))
        live.resume(f"launch.device={device}") if attempt > 1 else live.start()
        assert live.wait_end() == ("finished" if step is None else "stopped"), live.log()
    finished(straight)
    assert devices_of(live) == ["cpu", NAME, "cpu"]
    scores = [effective_table(run)[-1]["score"] for run in (live.run, straight.run)]
    assert scores[0] == pytest.approx(scores[1], abs=0.03)


def test_a_queue_of_two_and_a_kill(prepare: Callable[..., LiveRun], record_property: Record) -> None:
    """The second waits for the device; every list names it; killed, the first gives its memory back and the queue goes
    on; what the card did meanwhile is on record."""
    idle = memory_used() if DEVICE == "cuda" else 0
    endless = ("training.epochs=100000", "training.patience=100000", "launch.queue=true", "launch.threads=2")
    first, second = prepare(DEVICE, *endless), prepare(DEVICE, *endless)
    first.start()
    first.wait_state("running")
    second.start()
    second.wait_state("queued")
    assert f"1st for {NAME}, after {first.run.info.id.rsplit('-', 1)[-1]}" in command("ls", "--json")
    listed = {row["id"]: row for row in msgspec.json.decode(command("ls", "--json"))}
    assert listed[first.run.info.id]["device"] == NAME
    assert [line.split()[:2] for line in command("queue").splitlines()[2:]] == [[NAME, "runs"], [NAME, "1"]]
    assert first.run.info.id.rsplit("-", 1)[-1] in command("status", "--line")
    wait_for("two readings of the machine", lambda: readings(first.run) >= 2)
    if DEVICE == "cuda":
        the_card_is_on_record(first.run, record_property)
        working = memory_used()
    first.kill("engine")
    second.wait_state("running")
    second.send(cmd.Stop(attempt=1))
    assert second.wait_end() == "stopped", second.log()
    assert first.wait_end() == "failed"
    if DEVICE == "cuda":
        record_property("MB of the card: idle, training, after both", [
            memory / 1e6 for memory in (idle, working, memory_used())
        ])  # fmt: skip
        wait_for("the memory to be given back", lambda: memory_used() < idle + 64e6)


def readings(run: RunDirectory) -> int:
    return sum(len(rows) for _, rows in read_segments(run.system)) if run.system.is_dir() else 0


def the_card_is_on_record(run: RunDirectory, record_property: Record) -> None:
    columns, rows = list(read_segments(run.system))[-1]
    last = {name: float(value) for name, value in zip(columns, rows[-1], strict=True) if logged(np.array(value))}
    card = {name: last[f"gpu0.{name}"] for name in ("utilisation", "memory_used", "watts", "celsius")}
    record_property("the card as recorded", card)
    assert 0 <= card["utilisation"] <= 1
    assert 100e6 < card["memory_used"] <= (read_gpu().memory_total or 0)
    assert 20 < card["watts"] < 1500
    assert 10 < card["celsius"] < 100


@needs_driver
def test_out_of_memory_is_a_sentence(prepare: Callable[..., LiveRun], record_property: Record) -> None:
    """Another program holds nearly all of the card. Nothing stays of the run that found no room, and smaller parts of
    a batch, on a resume, are what fits."""
    idle = memory_used()
    large = ("model.d_model=512", "model.dim_feedforward=4096", "model.num_layers=6", "training.batch_size=2048")
    live = prepare(DEVICE, *SHORT, *large, "training.epochs=1", "training.steps_per_epoch=3", "training.amp=off")
    room = torch.cuda.mem_get_info()[0]
    hog = torch.empty(room - int(5e9), dtype=torch.uint8, device=DEVICE)
    try:
        sets = [f"data.path={live_data(live)}", f"launch.device={DEVICE}", *large]
        told = command("check", str(CONFIG), *[part for one in sets for part in ("--set", one)], code=1)
        record_property("check says", told.strip().splitlines()[-1])
        assert "training.batch_size" in told
        live.start()
        assert live.wait_end() == "failed"
    finally:
        del hog
        torch.cuda.empty_cache()
    attempt = live.run.newest_attempt()
    assert attempt is not None
    assert attempt.ended is not None
    record_property("the run says", attempt.ended.error)
    assert "is out of memory" in attempt.ended.error
    assert "training.micro_batches=auto" in attempt.ended.error
    assert "Traceback" not in live.log()
    assert attempt.ended.exit_code == 1
    own = torch.cuda.memory_reserved()
    wait_for("the memory to be given back", lambda: memory_used() < idle + own + 700e6)
    live.resume("training.micro_batches=8")
    finished(live)


def live_data(live: LiveRun) -> str:
    settings = launch.look_at_resume(live.run).in_force.settings
    return str(settings.data.path)
