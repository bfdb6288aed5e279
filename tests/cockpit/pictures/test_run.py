"""A run in each of its tabs, what happened while one was away, and one that failed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cockpit.app import CockpitApp
from cockpit.core.runs.last_seen import LastSeen, last_seen_path
from cockpit.screens.columns import ColumnsScreen
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.steps import StepWriter
from engines.runs import launch
from projects.controls.spec import SPEC
from tests.cockpit.conftest import NOW
from tests.cockpit.driving import shows, text, until
from tests.cockpit.looks import SIZES, Pictures
from tests.support.fake_run import FakeRun

Make = Callable[..., CockpitApp]
STEPS, EPOCHS = 20, 41


CONFIG = """\
project: controls
data:
  path: recordings/demo
training:
  epochs: 150
  batch_size: 64
  lr: 0.0005
cost:
  budget_usd: 100
"""
REPORT: dict[str, Any] = {
    "baselines": {
        "columns": ["model", "F1", "idle FP"],
        "rows": [["always idle", 0.0, 0.0], ["repeats the last frame", 0.61, 0.02], ["this run", 0.703, 0.034]],
        "note": "On the validation sessions, at the thresholds of the best epoch.",
    },
    "heads": {"columns": ["head", "loss"], "rows": [["action", 0.21], ["look", 0.011]]},
}


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
    fake.run.config.write_text(CONFIG)
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
    record_machine(fake)
    fake.run.report.write_text(json.dumps({"tables": REPORT}))
    fake.run.stdout.write_text("".join(f"epoch {number} done\n" for number in range(1, epochs + 1)))
    return fake


def record_machine(fake: FakeRun) -> None:
    """Every half minute of its 26."""
    fake.run.system.mkdir(exist_ok=True)
    place = np.arange(52, dtype=np.float64)
    readings = (5 + np.sin(place / 4), 20e9 + 1e8 * place, 164e9 - 2e8 * place, 0.9 + 0.07 * np.sin(place / 3))
    columns = ["cores_busy", "memory_used", "disk_free", "gpu0.utilisation"]
    StepWriter(fake.run.system, columns).append(
        np.stack([NOW - 1560 + 30 * place, np.ones_like(place), *readings], axis=1)
    )


@pytest.fixture
def running(folder: Path, at: Callable[[float], None]) -> Iterator[FakeRun]:
    fake = FakeRun(folder, "controls-20261127-201400-amber", label="look weight up", created=NOW - 26 * 60)
    with train(fake, EPOCHS, at).locked():
        yield fake


TABS = (
    ("1", "overview", (" edit",)),
    ("2", "table", ("+ - steps",)),
    ("3", "charts", ("by step",)),
    ("4", "log", ("epoch 41 done",)),
    ("5", "system", ("CPU cores busy",)),
    ("6", "report", ("always idle",)),
    ("7", "config", ("recordings/demo",)),
    ("8", "events", ("epoch 39",)),
)
"""The key of each tab, its name, and words that are there when all of it is."""


@SIZES
async def test_tabs(pictures: Pictures, cockpit: Make, running: FakeRun, size: tuple[int, int]) -> None:
    """The table with steps, the log with something found, in both sizes."""
    LastSeen(last_seen_path()).see(running.id, NOW - 1200)
    async with cockpit(open_run=running.run).run_test(size=size) as pilot:
        await until(pilot, lambda: "while you were away" in text(pilot) and "5.4" in text(pilot))
        await pictures.take(pilot, "away")
        for key, name, shown in TABS:
            await pilot.press(key)
            await until(pilot, partial(shows, pilot, *shown))
            match name:
                case "table":
                    await pilot.press("plus")
                case "log":
                    await pilot.press("slash", *"/ch 3./", "enter")
                    await until(pilot, lambda: "11 of 11, n N" in text(pilot))
            await until(pilot, lambda: "step 820" in text(pilot))
            await pictures.take(pilot, name)
        await pilot.press("2", "v")
        await until(pilot, lambda: isinstance(pilot.app.screen, ColumnsScreen))
        await pictures.take(pilot)
        await pilot.press("escape", "7")
        await until(pilot, partial(shows, pilot, "recordings/demo"))
        await pilot.press("a")
        await until(pilot, partial(shows, pilot, "No other training to compare with."))
        await pictures.take(pilot)


@SIZES
async def test_a_failed_run(
    pictures: Pictures, cockpit: Make, folder: Path, at: Callable[[float], None], size: tuple[int, int]
) -> None:
    fake = train(FakeRun(folder, "controls-20261127-201400-ember", created=NOW - 26 * 60), 3, at)
    fake.run.stdout.write_text("loading\nTraceback (most recent call last):\nRuntimeError: CUDA out of memory\n")
    at(60)
    fake.end("failed", exit_code=None, signal="SIGKILL")
    async with cockpit(open_run=fake.run).run_test(size=size) as pilot:
        words = ("✖ failed", "SIGKILL", "out of memory", "best 3", "step 60", "5.4", "quit")
        await until(pilot, lambda: all(word in text(pilot) for word in words))
        await pictures.take(pilot, "failed")
