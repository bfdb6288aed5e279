"""What holds for every dialog."""

from collections.abc import Callable

from textual.widgets import Input

from cockpit.app import CockpitApp
from cockpit.screens.runs import RunsScreen
from tests.cockpit.driving import text, until
from tests.support.fake_run import FakeRun


async def test_enter_twice_closes_a_dialog_and_not_what_is_beneath(
    cockpit: Callable[..., CockpitApp], fake: FakeRun
) -> None:
    fake.begin().started().epochs(1).end("finished")
    app = cockpit()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "1 run ·" in text(pilot))
        await pilot.press("e")
        await until(pilot, lambda: "Label and notes" in text(pilot))
        field = app.screen.query_one("#label", Input)
        field.value = "twice"
        for _ in range(3):  # as held keys come over a slow line: the next before the first was handled
            field.post_message(Input.Submitted(field, field.value))
        await until(pilot, lambda: "twice" in text(pilot) and isinstance(app.screen, RunsScreen))
        assert "1 run ·" in text(pilot)
    assert fake.run.info.label == "twice"
