"""An alert is seen at once in the list of runs and on the run's own screen, told once, with the key to press next."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.app import App
from textual.pilot import Pilot

from cockpit import notice
from cockpit.app import CockpitApp
from cockpit.core.settings import SettingsFile
from cockpit.widgets.status_line import StatusLine
from engines.contract.events import Alert
from tests.cockpit.driving import text, until
from tests.support.fake_run import FakeRun

Make = Callable[..., CockpitApp]
PLATEAU = "no better score for 12 epochs: the best is 0.5, of epoch 3"


def toasts(pilot: Pilot[None]) -> list[str]:
    return [notice.message for notice in pilot.app._notifications]


@pytest.mark.behaviour("goes-wrong-training-s")
async def test_an_alert_in_the_list_and_on_the_screen_of_its_run(
    cockpit: Make, fake: FakeRun, settings: SettingsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.change(notify="bell", keys={"run.rate": "f8"})
    rung: list[int] = []
    monkeypatch.setattr(CockpitApp, "bell", lambda self: rung.append(1))
    with fake.locked():
        fake.begin().started(epochs=40).epochs(*range(1, 12), best=3)
        app = cockpit()
        async with app.run_test(size=(160, 30)) as pilot:
            await until(pilot, lambda: "● running" in text(pilot))
            assert " !" not in text(pilot)
            fake.say(Alert(code="plateau", level="warning", text=PLATEAU, step=110))
            await until(pilot, lambda: "● running !" in text(pilot) and f"! {PLATEAU}" in text(pilot))
            assert len(rung) == 1

            await pilot.press("enter")
            await until(
                pilot, lambda: f"! {PLATEAU} · f8 stop it early (the best is kept" in " ".join(text(pilot).split())
            )
            assert toasts(pilot) == []  # it was there when the screen was opened
            fake.say(Alert(code="stall", level="error", text="no sign of life for 2 min in training", step=110))
            await until(pilot, lambda: "stalled in training" in text(pilot))
            stalled = "no sign of life for 2 min in training · 4 see its log · s stop it (twice: force)"
            await until(pilot, lambda: toasts(pilot) == [stalled])
            assert len(rung) == 2
            await pilot.press("8")
            await until(pilot, lambda: "10 more epochs: best +0." in text(pilot))
            await pilot.press("2")
            await until(pilot, lambda: "10 more epochs" in str(app.screen.query_one(StatusLine).render()))
            assert text(pilot).count("10 more epochs") == 1
            await pilot.press("8")
            await until(pilot, lambda: "10 more epochs" not in str(app.screen.query_one(StatusLine).render()))
            await until(pilot, lambda: text(pilot).count("10 more epochs") == 1)

            await pilot.press("escape")
            await until(pilot, lambda: "● stalled !" in text(pilot))
            fake.say(
                Alert(code="stall", level="info", text="signs of life again", step=111, over=True),
                Alert(code="plateau", level="info", text="no longer a plateau", step=111, over=True),
            )
            await until(pilot, lambda: "● running" in text(pilot) and " !" not in text(pilot))
            await pilot.press("enter")
            await until(pilot, lambda: "epoch 11/40" in text(pilot))
            assert PLATEAU not in text(pilot).split("Epochs")[0]
            assert len(rung) == 2


async def test_how_alerts_are_told_elsewhere_is_chosen_in_the_palette_and_kept(
    cockpit: Make, settings: SettingsFile
) -> None:
    app = cockpit()
    async with app.run_test() as pilot:
        for choice in ("bell", "osc9", ""):
            (command,) = [one for one in app.get_system_commands(app.screen) if one.title == "Terminal alerts"]
            command.callback()
            await until(pilot, lambda choice=choice: settings.value.notify == choice)  # type: ignore[misc]
        settings.change(notify="https://example.org/hook")
        assert "Terminal alerts" not in [one.title for one in app.get_system_commands(app.screen)]
        assert not any("example" in word for word in toasts(pilot))


def test_a_notice_of_the_terminal_holds_no_sequence_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(notice, "write", lambda app, sequence: sent.append(sequence))
    alert = Alert(code="stall", level="error", text="no \x1b]0;evil\x07sign\nof life" + "!" * 300)
    words = notice.Notice("controls-20261127-201400-amber", alert).text
    for choice in ("", "https://example.org/hook", "osc9"):
        notice.tell(App(), choice, words)
    (told,) = sent
    assert told.startswith("\x1b]9;amber: no sign of life!!!")
    assert told.endswith("!\x07")
    assert len(told) < 220


async def test_a_choice_that_is_none_is_named(cockpit: Make, settings: SettingsFile) -> None:
    settings.change(notify="pigeon")
    async with cockpit().run_test() as pilot:
        await until(pilot, lambda: any("must be bell, osc9 or an address" in told for told in toasts(pilot)))
