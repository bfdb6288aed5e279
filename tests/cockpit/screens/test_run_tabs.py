"""The tabs of a run, driven by keys: the full table, the whole log, and what happened while one was away."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import OptionList

from cockpit.app import CockpitApp
from cockpit.core.runs.last_seen import LastSeen, last_seen_path
from cockpit.core.settings import SettingsFile
from cockpit.screens.columns import ColumnsScreen
from cockpit.screens.run import RunScreen
from cockpit.screens.run_tabs import TABS
from cockpit.screens.runs import RunsScreen
from cockpit.widgets import log_pane
from cockpit.widgets.log_pane import LogLines
from cockpit.widgets.table_pane import FullTable
from engines.contract import events as ev
from engines.contract.steps import StepWriter
from projects.controls.spec import SPEC
from tests.cockpit.conftest import NOW
from tests.cockpit.driving import keys, text, until
from tests.support.fake_run import FakeRun, epoch

Make = Callable[..., CockpitApp]


@pytest.fixture
def live(fake: FakeRun) -> Iterator[FakeRun]:
    fake.begin().started()
    with fake.locked():
        yield fake


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_pane, "SHOW_SECONDS", 0.05)


def rows(pilot: Pilot[None]) -> list[str]:
    table = pilot.app.screen.query_one(FullTable)
    return [table.line(index).plain for index in range(table.count)]


def header(pilot: Pilot[None]) -> list[str]:
    return pilot.app.screen.query_one(FullTable).header().plain.split()


async def test_each_key_shows_its_tab_and_gives_it_the_focus(cockpit: Make, live: FakeRun) -> None:
    live.epochs(1)
    async with cockpit(open_run=live.run).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "● running" in text(pilot))
        names = text(pilot).splitlines()[2].split()
        assert names == [kind.name.title() for kind in TABS]  # all of them at 80 columns
        screen = pilot.app.screen
        assert isinstance(screen, RunScreen)
        for place, kind in enumerate(TABS, 1):
            await pilot.press(str(place))
            await until(pilot, lambda name=kind.name: screen.query_one(f"#tab-{name}").has_class("-active"))  # type: ignore[misc]
            body = screen.query_one("#body")
            await until(pilot, lambda body=body: pilot.app.focused in body.query("*"))  # type: ignore[misc]
            assert [child.display for child in body.children].count(True) == 1
        await pilot.press("1")
        assert len(screen.query_one("#body").children) == len(TABS)  # made once each


# -- table -------------------------------------------------------------------------------------------------------------


async def test_the_table_has_every_column_there_is(cockpit: Make, live: FakeRun) -> None:
    live.epochs(1, 2, best=2)
    async with cockpit(open_run=live.run).run_test(size=(120, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: len(rows(pilot)) == 2)
        announced = ["Ep", "Step", "TrLoss", "Act", "VlF1", "Score", "LR"]
        assert header(pilot) == [*announced, "Stage", "Seconds"]
        assert rows(pilot)[1].split() == ["★", "2", "20", "0.500", "0.500", "0.250", "0.200", "5.0e-4", "train", "1.5"]
        later = epoch(3)
        later.validation["wide_name"] = 0.125
        live.say(later)
        await until(pilot, lambda: header(pilot) == [*announced, "vl.wide_name", "Stage", "Seconds"])
        assert rows(pilot)[2].split()[-3:] == ["0.125", "train", "1.5"]
        assert rows(pilot)[0].split()[-3:] == ["—", "train", "1.5"]


async def test_the_first_column_and_the_mark_stay_while_the_rest_moves(cockpit: Make, live: FakeRun) -> None:
    row = epoch(7, best=True)
    row.train.update({f"key{number}": 0.5 for number in range(12)})
    live.say(row)
    async with cockpit(open_run=live.run).run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: "★  7" in text(pilot))
        assert "Seconds" not in text(pilot)
        table = pilot.app.screen.query_one(FullTable)
        table.scroll_to(x=table.max_scroll_x, animate=False)
        await until(pilot, lambda: "Seconds" in text(pilot))
        assert "★  7" in text(pilot)
        assert "TrLoss" not in text(pilot)


@pytest.mark.behaviour("column-without-room-left")
async def test_at_eighty_columns_the_score_is_seen_and_columns_without_room_are_counted(
    cockpit: Make, fake: FakeRun
) -> None:
    started = ev.RunStarted(
        project="controls", device="cpu", epochs=150, steps_per_epoch=100, columns=list(SPEC.columns), stages=[]
    )
    one = replace(epoch(150), step=14_999, score=0.125, lr=0.25)
    fake.begin().say(started, one, ev.Phase(phase="training"))
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
            await pilot.press("2")
            for width in (80, 84):  # exactly up to the score, and half of the rate beyond it
                await pilot.resize_terminal(width, 24)
                await until(pilot, lambda: rows(pilot) and "→ 3 more columns" in text(pilot))
                (titles,) = [line for line in text(pilot).splitlines() if " Ep " in line]
                (row,) = [line for line in text(pilot).splitlines() if "14,999" in line]
                assert titles.strip("│ ").split()[-2:] == ["VlF1", "Score"]
                assert row.strip("│ ").split()[-1] == "0.125"
            table = pilot.app.screen.query_one(FullTable)
            table.scroll_to(x=table.max_scroll_x, animate=False)
            await until(pilot, lambda: "Seconds" in text(pilot) and "more column" not in text(pilot))
            await pilot.resize_terminal(200, 24)
            await until(pilot, lambda: "TrLoss" in text(pilot) and "Seconds" in text(pilot))
            assert "more column" not in text(pilot)


async def test_columns_are_chosen_ordered_and_kept(cockpit: Make, live: FakeRun, settings: SettingsFile) -> None:
    live.epochs(1)
    async with cockpit(open_run=live.run).run_test(size=(120, 30)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: rows(pilot))
        await pilot.press("v")
        await until(pilot, lambda: isinstance(pilot.app.screen, ColumnsScreen))
        await pilot.press("down", "space", "down", "down", "K")  # no Step; Act before TrLoss
        chooser = pilot.app.screen.query_one(OptionList)
        assert chooser.highlighted == 2
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
        await until(pilot, lambda: header(pilot) == ["Ep", "Act", "TrLoss", "VlF1", "Score", "LR", "Stage", "Seconds"])
        await until(pilot, lambda: "controls" in SettingsFile(settings.path).value.table_columns)
    async with cockpit(open_run=live.run, settings=SettingsFile(settings.path)).run_test(size=(120, 30)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: rows(pilot) and header(pilot)[:3] == ["Ep", "Act", "TrLoss"])
        await pilot.press("v")
        await until(pilot, lambda: isinstance(pilot.app.screen, ColumnsScreen))
        await pilot.press("a", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen) and header(pilot)[1] == "Step")
        await until(pilot, lambda: SettingsFile(settings.path).value.table_columns == {})
        await pilot.press("v")
        await until(pilot, lambda: isinstance(pilot.app.screen, ColumnsScreen))
        await pilot.press("space", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
        assert header(pilot)[0] == "Ep"


def log_steps(fake: FakeRun, count: int) -> None:
    records = np.array([[step, 1, 1e9 + step, step / 100, 1e-4] for step in range(count)])
    StepWriter(fake.run.steps, ["time", "loss", "lr"]).append(records)


async def test_long_epochs_have_rows_of_steps_by_themselves(cockpit: Make, live: FakeRun) -> None:
    first = epoch(1)
    first.seconds = 130.0
    live.say(first)
    log_steps(live, 14)  # ten steps an epoch
    async with cockpit(open_run=live.run).run_test(size=(120, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: len(rows(pilot)) == 14)
        assert rows(pilot)[0].split() == ["1", "0.000", "1.0e-4"]
        assert [row.split()[:2] for row in rows(pilot)[8:11]] == [["9", "0.080"], ["1", "10"], ["11", "0.100"]]
        await pilot.press("minus")
        await until(pilot, lambda: len(rows(pilot)) == 7)  # every second step: 2 4 6 8, the epoch, 12 14
        assert [row.split()[0] for row in rows(pilot)] == ["2", "4", "6", "8", "1", "12", "14"]
        assert rows(pilot)[1].split()[1] == "0.025"  # the mean of steps 3 and 4: 0.02 and 0.03
        await pilot.press("minus")
        await until(pilot, lambda: [row.split()[0] for row in rows(pilot)] == ["1"])
        assert keys(pilot)["steps"]
        assert not keys(pilot)["fewer"]
        await pilot.press("plus")
        await until(pilot, lambda: len(rows(pilot)) == 7)


async def test_short_epochs_have_none_unless_asked_and_nothing_jumps(cockpit: Make, live: FakeRun) -> None:
    live.epochs(*range(1, 101))
    log_steps(live, 1000)
    async with cockpit(open_run=live.run).run_test(size=(120, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: len(rows(pilot)) == 100)
        table = pilot.app.screen.query_one(FullTable)
        await pilot.press("home", *["down"] * 40)
        await until(pilot, lambda: table.scroll_offset.y == 40)
        await pilot.press("plus")
        await until(pilot, lambda: len(rows(pilot)) == 500)
        await until(pilot, lambda: rows(pilot)[table.scroll_offset.y].split()[0] == "41")
        live.epochs(101)
        await until(pilot, lambda: len(rows(pilot)) == 501)
        assert rows(pilot)[table.scroll_offset.y].split()[0] == "41"


# -- log ---------------------------------------------------------------------------------------------------------------


async def test_the_whole_log_is_scrolled_followed_and_searched(cockpit: Make, live: FakeRun) -> None:
    middle = "".join(f"step {step} and nothing else\n" for step in range(50_000))
    live.run.stdout.write_text(f"[red]Needle[/] one\n{middle}a needle, the second\n{middle}the end\n")
    async with cockpit(open_run=live.run).run_test(size=(80, 24)) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: "the end" in text(pilot) and "following · 100,003 lines" in text(pilot))
        await pilot.press("home")
        await until(pilot, lambda: "[red]Needle[/] one" in text(pilot))
        await until(pilot, lambda: "line 1 of 100,003 · end: follow" in text(pilot))
        await pilot.press("end")
        await until(pilot, lambda: "the end" in text(pilot))
        await pilot.press("slash", *"needle", "enter")
        await until(pilot, lambda: "a needle, the second" in text(pilot) and "2 of 2" in text(pilot))
        view = pilot.app.screen.query_one(LogLines)
        spans = view.line(50_001).spans
        assert [(span.start, span.end) for span in spans if "on" in str(span.style)] == [(2, 8)]
        await pilot.press("N")
        await until(pilot, lambda: "[red]Needle[/] one" in text(pilot) and "1 of 2" in text(pilot))
        await pilot.press("n")
        await until(pilot, lambda: "a needle, the second" in text(pilot) and "2 of 2" in text(pilot))
        await pilot.press("n")  # round
        await until(pilot, lambda: "1 of 2" in text(pilot))
        with live.run.stdout.open("a") as log:
            log.write("one needle more\n")
        await until(pilot, lambda: "1 of 3" in text(pilot))
        assert "one needle more" not in text(pilot)  # what is read stays
        await pilot.press("slash", *["backspace"] * 6, *"/(/", "enter")
        await until(pilot, lambda: "Not a regular expression" in text(pilot))
        await pilot.press("slash", "escape", "end")
        await until(pilot, lambda: "one needle more" in text(pilot) and "following" in text(pilot))


async def test_what_is_not_there_is_said_and_a_new_log_is_shown(cockpit: Make, live: FakeRun) -> None:
    async with cockpit(open_run=live.run).run_test(size=(80, 24)) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: "nothing yet" in text(pilot))
        live.run.stdout.write_text("first\n")
        await until(pilot, lambda: "first" in text(pilot))
        await pilot.press("slash", *"zebra", "enter")
        await until(pilot, lambda: "not found" in text(pilot))
        live.run.stdout.write_text("new\n")
        await until(pilot, lambda: "new" in text(pilot) and "first" not in text(pilot))


# -- while you were away -----------------------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LastSeen:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return LastSeen(last_seen_path())


async def test_what_happened_meanwhile_is_told_until_it_is_closed(
    cockpit: Make, fake: FakeRun, state: LastSeen, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = [NOW - 3 * 3600]
    monkeypatch.setattr("time.time", lambda: at[0])
    fake.begin().started()
    attempt = fake.run.attempt(1)
    attempt.usd_per_hour = 2.0
    fake.run.write_attempt(attempt)
    fake.epochs(1, 2, best=2).say(ev.Alert(code="old", level="warning", text="before"))
    at[0] = NOW - 600
    fake.epochs(3, 4, 5, best=4).say(ev.Alert(code="new", level="warning", text="since"))
    state.see(fake.id, NOW - 2 * 3600)
    with fake.locked():
        app = cockpit(open_run=fake.run)
        async with app.run_test(size=(100, 30)) as pilot:
            told = "while you were away (2 h 00 m): 3 epochs · best 0.400 (epoch 4) · 1 alert · $4.00"
            await until(pilot, lambda: told in text(pilot))
            await until(pilot, lambda: state.seen(fake.id) == NOW)
            await pilot.press("escape")
            await until(pilot, lambda: "while you were" not in text(pilot))
            assert isinstance(app.screen, RunScreen)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, RunsScreen))


async def test_a_tab_closes_it_and_a_short_absence_is_no_news(cockpit: Make, live: FakeRun, state: LastSeen) -> None:
    live.epochs(1)
    state.see(live.id, NOW - 400)
    async with cockpit(open_run=live.run).run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: "while you were away" in text(pilot))
        await pilot.press("2")
        await until(pilot, lambda: "while you were" not in text(pilot))
    assert state.seen(live.id) == NOW  # now it was seen
    async with cockpit(open_run=live.run).run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: "GPU" in text(pilot))
        assert "while you were" not in text(pilot)


@pytest.mark.behaviour("palette-shows-keys")
async def test_the_run_to_compare_the_config_with_is_chosen_from_a_list(cockpit: Make, live: FakeRun) -> None:
    for word, look in (("birch", 0.9), ("slate", 0.7)):
        other = FakeRun(live.run.path.parent, f"controls-20261126-211400-{word}")
        other.run.config.write_text(other.run.config.read_text().replace("look: 0.5", f"look: {look}"))
    async with cockpit(open_run=live.run).run_test(size=(120, 30)) as pilot:
        await until(pilot, lambda: "Config" in text(pilot))
        await pilot.press("7")
        await until(pilot, lambda: "project: controls" in text(pilot) and pilot.app.focused)
        await pilot.press("a")
        await until(pilot, lambda: "birch" in text(pilot) and isinstance(pilot.app.focused, OptionList))
        assert live.run.path.name not in text(pilot).partition("Compare ")[2].partition("\n")[2].partition("escape")[0]
        birch = next(
            at
            for at in range(2)
            if "birch" in str(pilot.app.focused.get_option_at_index(at).prompt)  # type: ignore[union-attr]
        )
        await pilot.press(*(["down"] * birch), "enter")
        await until(pilot, lambda: "~ loss_weights.look  0.9 → 0.5" in text(pilot))
