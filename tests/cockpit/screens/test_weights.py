"""Loss weights, learning rate and end of a run, driven by keys over a fabricated run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.core.config.run_config import RunConfigFile, read_config
from cockpit.core.settings import SettingsFile
from cockpit.core.steering.presets import Presets
from cockpit.screens import followed
from cockpit.screens.course import CourseScreen
from cockpit.screens.presets import PresetScreen
from cockpit.screens.run import RunScreen
from cockpit.screens.unapplied import UnappliedScreen
from cockpit.screens.weights import WeightsScreen
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.rundir import RunDirectory
from engines.contract.steps import StepWriter
from tests.cockpit.driving import commands_of, keys, text, until
from tests.support.fake_run import FakeEngine, FakeRun

Make = Callable[..., CockpitApp]
CONFIG = """\
project: controls
data: {path: /data}
model: {}
training: {lr: 0.0005, min_lr: 1.0e-6, warmup_epochs: 1, epochs: 4, patience: 3}
loss_weights: {action: 1.0, look: 0.5, idle: 0.25}
"""
LOSSES = {"action": 0.6, "look": 0.4, "idle": 0.8}


@pytest.fixture(autouse=True)
def _shown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(followed, "SHOW_SECONDS", 0.1)


@pytest.fixture
def training(fake: FakeRun) -> FakeRun:
    """Three epochs done of four; the losses of its heads are the same at every step."""
    fake.run.config.write_text(CONFIG)
    fake.begin().started().epochs(1, 2, 3, best=2)
    writer = StepWriter(fake.run.steps, ["epoch", "time", "lr", "loss", *LOSSES])
    writer.append(np.array([[step, 1, 1 + step // 10, 1e9, 5e-4, 1.0, *LOSSES.values()] for step in range(30)]))
    writer.close()
    return fake


def line(pilot: Pilot[None], head: str) -> list[str]:
    """The words of a head's line: sign, name, default, now, new, loss, shares."""
    words = next(row for row in text(pilot).splitlines() if f" {head} " in row and "│" in row)
    return [word for word in words.replace("‹", " ").replace("›", " ").split() if word != "│"]


async def open_weights(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: keys(pilot).get("weights"))
    await pilot.press("w")
    await until(pilot, lambda: isinstance(pilot.app.screen, WeightsScreen) and "0.600" in text(pilot))


def in_one_line(pilot: Pilot[None]) -> str:
    return " ".join(text(pilot).replace("│", " ").split())


async def test_until_its_config_is_read_the_screen_says_so(
    cockpit: Make, training: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = threading.Event()

    def slow(run: RunDirectory) -> RunConfigFile:
        read.wait()
        return read_config(run)

    monkeypatch.setattr(followed, "read_config", slow)
    monkeypatch.setattr(followed, "SHOW_SECONDS", 3600.0)  # what is known is shown at once, not behind the empty screen
    training.end("finished")
    async with cockpit(open_run=training.run).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: keys(pilot).get("weights"))
        await pilot.press("w")
        await until(pilot, lambda: isinstance(pilot.app.screen, WeightsScreen) and "reading …" in text(pilot))
        read.set()
        await until(pilot, lambda: training.id in text(pilot) and "0.600" in text(pilot))
        assert "reading …" not in text(pilot)


async def test_weights_are_changed_and_applied_and_the_answer_is_followed(cockpit: Make, training: FakeRun) -> None:
    def react(command: cmd.Command) -> None:
        training.say(ev.CommandAnswer(command=command, state="applied", step=31))

    app = cockpit(open_run=training.run)
    with training.locked(), FakeEngine(training, react) as engine:
        async with app.run_test(size=(80, 24)) as pilot:
            await open_weights(pilot)
            # 1 × 0.6, 0.5 × 0.4 and 0.25 × 0.8 are 60 %, 20 % and 20 % of 1.0
            assert [line(pilot, head).count("20") for head in LOSSES] == [0, 2, 2]
            assert not keys(pilot)["apply"]
            await pilot.press("down", "right", "right", "down", "0", ".", "7", "5")
            await until(pilot, lambda: "2 changes   look 0.5 → 0.6   idle 0.25 → 0.75" in text(pilot))  # while typed
            await pilot.press("up")
            await until(pilot, lambda: "2 changes   look 0.5 → 0.6   idle 0.25 → 0.75" in text(pilot))
            assert line(pilot, "look")[2:5] == ["0.5", "0.5", "*"]
            await until(pilot, lambda: keys(pilot)["apply"])
            await pilot.press("enter")
            await until(pilot, lambda: "look 0.6, idle 0.75: applied at step 31" in text(pilot))
            [command] = engine.heard
            assert isinstance(command, cmd.SetLossWeights)
            assert (command.weights, command.at_epoch, command.attempt) == ({"look": 0.6, "idle": 0.75}, None, 1)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, RunScreen))


async def test_weights_at_the_next_epoch_wait_for_it(cockpit: Make, training: FakeRun) -> None:
    def react(command: cmd.Command) -> None:
        training.say(ev.CommandAnswer(command=command, state="seen", step=30))

    with training.locked(), FakeEngine(training, react) as engine:
        async with cockpit(open_run=training.run).run_test(size=(110, 30)) as pilot:
            await open_weights(pilot)
            await pilot.press("shift+right")
            await until(pilot, lambda: "1 change   action 1 → 1.1" in text(pilot))
            await pilot.press("shift+left")
            await until(pilot, lambda: "no changes" in text(pilot))
            await pilot.press("2", "E")
            await until(pilot, lambda: "action 2: received, waits for epoch 5" in text(pilot))
            assert engine.heard[0].at_epoch == 4


@pytest.mark.behaviour("changes-made-screen-applied")
async def test_a_draft_is_asked_about_before_it_is_left(cockpit: Make, training: FakeRun) -> None:
    """What was ordered is none, whether it was answered or not; what was refused is one again."""
    answers: list[cmd.Command] = []
    app = cockpit(open_run=training.run)
    with training.locked(), FakeEngine(training, answers.append):
        async with app.run_test(size=(110, 30)) as pilot:

            async def leave(words: str = "") -> None:
                await pilot.press("escape")
                await until(pilot, lambda: isinstance(app.screen, UnappliedScreen if words else RunScreen))
                await until(pilot, lambda: words in text(pilot))

            await open_weights(pilot)
            await pilot.press("right")
            await leave("Loss weights: action 1 → 1.5")
            await pilot.press("enter")  # stays, with the draft
            await until(pilot, lambda: isinstance(app.screen, WeightsScreen) and "1 change " in text(pilot))
            await leave("discard and close")
            await pilot.press("d")
            await until(pilot, lambda: isinstance(app.screen, RunScreen))
            await open_weights(pilot)
            assert "no changes" in text(pilot)
            await pilot.press("right")
            await until(pilot, lambda: keys(pilot)["apply"])
            await pilot.press("enter", "down", "right")
            await leave("Loss weights: look 0.5 → 0.55")
            await pilot.press("a")
            await until(pilot, lambda: isinstance(app.screen, RunScreen) and len(answers) == 2)
            sent = [order.weights for order in answers if isinstance(order, cmd.SetLossWeights)]
            assert sent == [{"action": 1.5}, {"look": 0.55}]

            await open_weights(pilot)
            await pilot.press("2")
            await until(pilot, lambda: keys(pilot)["apply"])
            await pilot.press("E")
            await leave()  # ordered for the epoch's end, and not answered yet
            await open_weights(pilot)
            await pilot.press("3")
            await until(pilot, lambda: keys(pilot)["apply"])
            await pilot.press("enter")
            await until(pilot, lambda: len(answers) == 4)
            training.say(ev.CommandAnswer(command=answers[3], state="refused", step=30, reason="no"))
            await until(pilot, lambda: "action 3: refused because no" in text(pilot))
            await leave("Loss weights: action 1 → 3")
            await pilot.press("d")

            await until(pilot, lambda: isinstance(app.screen, RunScreen))
            await pilot.press("l")
            await until(pilot, lambda: isinstance(app.screen, CourseScreen) and "Patience, epochs" in text(pilot))
            await until(pilot, lambda: keys(pilot)["apply"])
            await pilot.press("0", ".", "5", "enter", "down", "right", "down", "right")
            await leave("Epochs 14, patience 4")
            await pilot.press("a")
            await until(pilot, lambda: isinstance(app.screen, RunScreen) and len(answers) == 7)
            assert list(map(cmd.describe, answers[4:])) == ["learning rate × 0.5", "epochs 14", "patience 4"]


async def test_equal_shares_lock_undo_and_defaults(cockpit: Make, training: FakeRun) -> None:
    with training.locked():
        async with cockpit(open_run=training.run).run_test(size=(120, 30), notifications=True) as pilot:
            await open_weights(pilot)
            table = pilot.app.screen.query_one("WeightsTable")
            await pilot.press("down", "L", "right")
            await until(pilot, lambda: "look is locked; L unlocks it." in text(pilot))
            await pilot.press("e")  # 0.6 and 0.2 become 0.4 each; the locked head stays
            assert table.draft.new == {"action": 0.667, "look": 0.5, "idle": 0.5}  # type: ignore[attr-defined]
            await pilot.press("u")
            assert table.draft.changes == {}  # type: ignore[attr-defined]
            await pilot.press("up", "right", "delete", "1", ".", ".", "enter")
            await until(pilot, lambda: "1.. is not a weight; expected a number of 0 or more." in text(pilot))
            await pilot.press(*"1e-1", "down", *"-5", "up")  # a sign and an exponent belong to what is typed
            await until(pilot, lambda: "-5 is not a weight" in text(pilot))
            assert table.draft.changes == {"action": 0.1}  # type: ignore[attr-defined]
            assert commands_of(training) == []


async def test_the_gradient_is_measured_on_demand(cockpit: Make, training: FakeRun) -> None:
    def react(command: cmd.Command) -> None:
        norms: dict[str, float | None] = {"action": 3.0, "look": 2.0, "idle": 0.0}
        training.say(
            ev.GradientNorms(step=30, norms=norms, parameters=10),
            ev.CommandAnswer(command=command, state="applied", step=30),
        )

    with training.locked(), FakeEngine(training, react) as engine:
        async with cockpit(open_run=training.run).run_test(size=(200, 50)) as pilot:
            await open_weights(pilot)
            assert line(pilot, "action")[-1] == "—"
            await pilot.press("g")
            await until(pilot, lambda: "gradient measured at step 30" in text(pilot))
            assert [type(one) for one in engine.heard] == [cmd.MeasureGradients]
            assert [line(pilot, head)[-2] for head in LOSSES] == ["75", "25", "0"]  # 1 × 3 and 0.5 × 2 of 4


async def test_presets_are_kept_and_taken(
    cockpit: Make, training: FakeRun, settings: SettingsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is asked beside the screen, never by it; a name that is none leaves the dialog open."""
    file = settings.path.parent / "presets" / "controls-calm.yaml"
    asked: dict[str, threading.Thread] = {}
    real = {name: getattr(Presets, name) for name in ("names", "save", "load")}

    def noted(name: str) -> Callable[..., Any]:
        def ask(presets: Presets, *rest: Any) -> Any:
            asked[name] = threading.current_thread()
            return real[name](presets, *rest)

        return ask

    for name in real:
        monkeypatch.setattr(Presets, name, noted(name))
    with training.locked():
        async with cockpit(open_run=training.run).run_test(size=(110, 30), notifications=True) as pilot:
            await open_weights(pilot)
            await pilot.press("3", "o")
            await until(pilot, lambda: "save the new weights as" in text(pilot))
            await until(pilot, lambda: "No presets for this project yet." in text(pilot))
            await pilot.press(*"../x", "enter")
            await until(pilot, lambda: "is not a valid preset name" in text(pilot))
            await pilot.press("ctrl+u", *"calm", "enter")
            await until(pilot, lambda: file.exists() and isinstance(pilot.app.screen, WeightsScreen))
            file.write_text(file.read_text().replace("0.5", "0.125"))
            await pilot.press("o")
            await until(pilot, lambda: isinstance(pilot.app.screen, PresetScreen) and "calm  " in text(pilot))
            await pilot.press("enter")
            await until(pilot, lambda: "look 0.5 → 0.125" in text(pilot))
    assert set(asked) == {"names", "save", "load"}
    assert threading.main_thread() not in asked.values()


async def test_weights_of_a_run_that_ended_can_be_looked_at_only(cockpit: Make, training: FakeRun) -> None:
    training.end("finished")
    async with cockpit(open_run=training.run).run_test(size=(80, 24)) as pilot:
        await open_weights(pilot)
        await pilot.press("right", "enter", "E", "g")
        await until(pilot, lambda: "1 change" in text(pilot))
        assert not keys(pilot)["apply"]
        await pilot.press("escape")
        await until(pilot, lambda: "The run is finished: changes cannot be applied." in text(pilot))
        await pilot.press("a")
        assert isinstance(pilot.app.screen, UnappliedScreen)
        assert commands_of(training) == []


async def test_the_end_says_what_it_will_do_and_does_it(cockpit: Make, training: FakeRun) -> None:
    why = "a sentence of an engine that is longer than any line of the smallest screen may be read to its end"

    def react(command: cmd.Command) -> None:
        state = "refused" if isinstance(command, cmd.SetEpochs) else "applied"
        training.say(ev.CommandAnswer(command=command, state=state, step=30, reason=why * (state == "refused")))  # type: ignore[arg-type]

    app = cockpit(open_run=training.run)
    with training.locked(), FakeEngine(training, react) as engine:
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: keys(pilot).get("lr & stop"))
            await pilot.press("l")
            await until(pilot, lambda: isinstance(app.screen, CourseScreen) and "Patience, epochs" in text(pilot))
            await pilot.press(*"5e-1")
            await until(pilot, lambda: "schedule is multiplied by 0.5" in text(pilot))  # said before it is done
            await pilot.press("enter")
            await until(pilot, lambda: "learning rate × 0.5: applied at step 30" in text(pilot))
            await pilot.press("down", "shift+right")
            await until(pilot, lambda: "ends after epoch 5 (was 4)" in text(pilot))
            await pilot.press("shift+left", "right")
            await until(pilot, lambda: "ends after epoch 14 (was 4)" in text(pilot))
            await pilot.press("enter")
            await until(pilot, lambda: f"epochs 14: refused because {why}" in in_one_line(pilot))
            await pilot.press("u", "down", "right")
            since = "after 4 epochs without a better score, instead of 3; so far 1"
            await until(pilot, lambda: since in in_one_line(pilot))
            await pilot.press("2")  # one epoch without a better score is over, and this one may be the second
            await until(pilot, lambda: "It ends after epoch 4 if that is no better." in in_one_line(pilot))
            await pilot.press("enter")
            await until(pilot, lambda: "Press enter again" in text(pilot))
            await pilot.press("u", "u", "right")
            await until(pilot, lambda: since in in_one_line(pilot))
            await pilot.press("enter", "down", "enter")
            await until(pilot, lambda: "Press enter again" in text(pilot))
            assert "The run finishes and evaluates epoch 4" in text(pilot)
            await pilot.press("down", "enter", "down", "enter")  # the early stop was asked for once alone
            await until(pilot, lambda: len(engine.heard) == 5)
            await pilot.press("up", "up", "enter", "enter")
            await until(pilot, lambda: len(engine.heard) == 6)
            kinds = ["SetLrScale", "SetEpochs", "SetPatience", "Evaluate", "SaveCheckpoint", "StopEarly"]
            assert [type(one).__name__ for one in engine.heard] == kinds
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, RunScreen))
