"""Pictures of a run: overview, table, log. After a change that is meant: `--snapshot-update`, and look at them."""

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.core.last_seen import LastSeen, last_seen_path
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract import launch
from engines.contract.steps import StepWriter
from projects.controls.spec import SPEC
from tests.cockpit.conftest import NOW
from tests.cockpit.driving import settled, text, until
from tests.cockpit.looks import LOOKS, SIZES
from tests.support.fake_run import FakeRun

Make = Callable[..., CockpitApp]
STEPS, EPOCHS = 20, 41


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock that writers of events and attempts read, in seconds before now."""
    return lambda before: monkeypatch.setattr(time, "time", lambda: NOW - before)


def row(number: int) -> ev.Epoch:
    loss = 0.3 + math.exp(-number / 10)
    score = 0.74 - 0.5 * math.exp(-number / 8) - 0.0004 * max(0, number - 39)
    return ev.Epoch(
        epoch=number, step=number * STEPS, stage="main", score=score, lr=4.8e-4, best=number <= 39, weights={},
        train={"loss": loss, "action": loss * 0.7, "look": 0.011, "hotbar": 0.051, "cursor": 0.021, "inv": 0.031},
        validation={"loss": loss + 0.08, "idle_accuracy": 0.966, "action_f1": 0.703}, seconds=36.0,
    )  # fmt: skip


def train(fake: FakeRun, epochs: int, at: Callable[[float], None]) -> FakeRun:
    """A run 26 minutes old, priced, with an edit."""
    at(26 * 60)
    fake.begin()
    attempt = fake.run.attempt(1)
    attempt.usd_per_hour, attempt.device = 2.49, "cuda:0"
    fake.run.write_attempt(attempt)
    fake.run.config.write_text("cost:\n  budget_usd: 100\n")
    fake.say(
        ev.RunStarted(
            project="controls", device="cuda:0", epochs=150, steps_per_epoch=STEPS, columns=list(SPEC.columns),
            stages=[], patience=25,
        ),
        ev.Phase(phase="training"),
    )  # fmt: skip
    for number in range(1, epochs + 1):
        at(26 * 60 - number * 36)
        fake.say(row(number))
    edit = cmd.SetLossWeights(attempt=1, id="edit", time=NOW - 900, weights={"look": 0.8})
    launch.send(fake.run, edit)
    fake.say(ev.CommandAnswer(command=edit, state="applied", step=18 * STEPS + 1))
    steps = np.arange(epochs * STEPS, dtype=np.float64)
    losses = 0.3 + np.exp(-steps / STEPS / 10) + 0.1 * np.sin(steps * 1.7)
    records = np.stack([steps, np.ones_like(steps), NOW - 1560 + steps * 1.8, losses], axis=1)
    StepWriter(fake.run.steps, ["time", "loss"]).append(records)
    fake.run.stdout.write_text("".join(f"epoch {number} done\n" for number in range(1, epochs + 1)))
    return fake


@pytest.fixture
def running(folder: Path, at: Callable[[float], None]) -> Iterator[FakeRun]:
    fake = FakeRun(folder, "controls-20261127-201400-amber", label="look weight up", created=NOW - 26 * 60)
    with train(fake, EPOCHS, at).locked():
        yield fake


@LOOKS
@SIZES
def test_a_running_run(
    snap_compare: Any, cockpit: Make, running: FakeRun, size: tuple[int, int], look: dict[str, Any]
) -> None:
    async def ready(pilot: Pilot[None]) -> None:
        wide = ("0.7362", "epoch 41 done", "5.4 of 16 cores") if size[0] > 100 else ("5.4/16",)
        await settled(pilot, "running", "best 39", "step 820", " edit", "leave", *wide)

    assert snap_compare(cockpit(open_run=running.run, **look), terminal_size=size, run_before=ready)


@SIZES
def test_the_table_with_steps_after_an_absence(
    snap_compare: Any, cockpit: Make, running: FakeRun, size: tuple[int, int]
) -> None:
    """At the smaller size with what happened meanwhile, at the larger with rows of steps and all columns but one."""
    small = size == (80, 24)

    async def ready(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "while you were away" in text(pilot))
        await pilot.press("2")
        await until(pilot, lambda: "+ - steps" in text(pilot))
        if not small:
            await pilot.press("plus", "v", "down", "space", "enter")
            await until(pilot, lambda: "0.322" in text(pilot) and "Seconds" in text(pilot))
        await settled(pilot, "best 39", "step 820", "leave")

    LastSeen(last_seen_path()).see(running.id, NOW - 1200)
    assert snap_compare(cockpit(open_run=running.run), terminal_size=size, run_before=ready)


@SIZES
def test_the_log_searched(snap_compare: Any, cockpit: Make, running: FakeRun, size: tuple[int, int]) -> None:
    async def ready(pilot: Pilot[None]) -> None:
        await pilot.press("4", "slash", *"/ch 3./", "enter")
        await settled(pilot, "11 of 11, n N", "step 820", "leave")

    assert snap_compare(cockpit(open_run=running.run), terminal_size=size, run_before=ready)


def test_a_failed_run(snap_compare: Any, cockpit: Make, folder: Path, at: Callable[[float], None]) -> None:
    fake = train(FakeRun(folder, "controls-20261127-201400-ember", created=NOW - 26 * 60), 3, at)
    fake.run.stdout.write_text("loading\nTraceback (most recent call last):\nRuntimeError: CUDA out of memory\n")
    at(60)
    fake.end("failed", exit_code=None, signal="SIGKILL")

    async def ready(pilot: Pilot[None]) -> None:
        await settled(pilot, "✖ failed", "SIGKILL", "out of memory", "best 3", "step 60", "5.4/16", "leave")

    assert snap_compare(cockpit(open_run=fake.run), terminal_size=(80, 24), run_before=ready)
