"""Whatever the files of a run hold, its screen opens, says what is wrong, and shows what comes after."""

import threading
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from cockpit.app import CockpitApp
from cockpit.core.run.follow import News, RunFollower
from cockpit.screens.run import RunScreen
from engines.contract import events as ev
from engines.contract.steps import StepWriter
from tests.cockpit.driving import commands_of, text, until
from tests.support.fake_run import FakeEngine, FakeRun, epoch

Make = Callable[..., CockpitApp]
NOTHING = {
    "empty": (b"", ""),
    "only NUL": (b"\0" * 5000, "1 bad line in events.jsonl, line 1"),
    "garbage": (b"\xde\xad\xbe\xef\n" * 50, "50 bad lines in events.jsonl, the first is line 1"),
    "no objects": (b"[]\nnull\n3\n", "3 bad lines in events.jsonl, the first is line 1"),
}


@pytest.mark.behaviour("empty-files-files-nul")
@pytest.mark.parametrize("what", NOTHING)
async def test_files_of_nothing_readable_end_nothing(cockpit: Make, fake: FakeRun, what: str) -> None:
    content, said = NOTHING[what]
    run = fake.run
    run.steps.mkdir(exist_ok=True)
    for file in (run.events, run.train_metrics, run.stdout, run.report, run.steps / "1.f64", run.steps / "1.json"):
        file.write_bytes(content)
    fake.begin()
    with fake.locked():
        app = cockpit(open_run=run)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "◌ starting" in text(pilot))
            for key in "23456781" if what == "garbage" else "":
                await pilot.press(key)
            fake.started().epochs(1)
            await until(pilot, lambda: "● running" in text(pilot) and "epoch 1/4" in text(pilot))
            assert isinstance(app.screen, RunScreen)
            await until(pilot, lambda: said in text(pilot))


async def test_before_anything_is_read_no_state_is_claimed(
    cockpit: Make, fake: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, poll = threading.Event(), RunFollower.poll

    def slowly(follower: RunFollower) -> News | None:
        disk.wait(20)
        return poll(follower)

    monkeypatch.setattr(RunFollower, "poll", slowly)
    fake.begin().started().epochs(1).end("finished")
    async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "reading" in text(pilot))
        assert "starting" not in text(pilot)
        disk.set()
        await until(pilot, lambda: "✓ finished" in text(pilot))
        assert "reading" not in text(pilot)


@pytest.mark.behaviour("line-json-but-record")
async def test_bad_lines_are_counted_and_the_first_is_named(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started().epochs(*range(1, 410))
    fake.run.events.write_bytes(fake.run.events.read_bytes() + b"[]\n")
    fake.say(ev.Phase(phase="training", step=4090))
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "1 bad line in events.jsonl, line 412" in text(pilot))
            await until(pilot, lambda: "● running" in text(pilot))


@pytest.mark.behaviour("numbers-parse-run-can")
async def test_numbers_that_no_run_can_hold_end_nothing(cockpit: Make, fake: FakeRun) -> None:
    """As one damaged bit in an exponent makes them: they parse."""
    huge = 1e308
    row = epoch(2, loss=huge, score=huge)
    row.step, row.seconds = 2**62, huge
    fake.begin().started().epochs(1).say(row)
    attempt = fake.run.attempt(1)
    attempt.started, attempt.usd_per_hour = -huge, huge
    fake.run.write_attempt(attempt)
    late = msgspec.json.encode(ev.Alert(code="x", level="error", text="later than ever", time=huge, attempt=1))
    fake.run.events.write_bytes(fake.run.events.read_bytes() + late + b"\n")
    steps = StepWriter(fake.run.steps, ["time", "loss"])
    steps.append(np.array([[0, huge, huge], [1, -huge, -huge], [huge, huge, huge]]))
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(140, 40)) as pilot:
            await until(pilot, lambda: "later than ever" in text(pilot))
            for key in "238":
                await pilot.press(key)
                await pilot.pause()
            await until(pilot, lambda: "later than ever" in text(pilot) and "●" in text(pilot))


@pytest.mark.behaviour("two-cockpits-may-look")
async def test_two_cockpits_show_one_run_and_either_may_steer(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started().epochs(1)
    with fake.locked(), FakeEngine(fake, lambda order: fake.say(ev.CommandAnswer(command=order, state="seen", step=9))):
        async with (
            cockpit(open_run=fake.run).run_test(size=(140, 40)) as one,
            cockpit(open_run=fake.run).run_test(size=(140, 40)) as other,
        ):
            await until(one, lambda: "epoch 1/4" in text(one))
            await until(other, lambda: "epoch 1/4" in text(other))
            await one.press("p")
            await until(one, lambda: "pause  received" in text(one))
            await until(other, lambda: "received" in text(other) and "pause" in text(other))
            await one.press("q")
            fake.epochs(2)
            await until(other, lambda: "epoch 2/4" in text(other))
            assert len(commands_of(fake)) == 1
