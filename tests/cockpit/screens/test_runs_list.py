"""Filter, order, marks, compare, delete, words on a run, and what happened meanwhile, driven by keys."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Input

from cockpit.app import CockpitApp
from cockpit.core.runs import baseline, labels
from cockpit.core.settings import SettingsFile
from cockpit.screens import runs as screen_module
from cockpit.screens.delete import DeleteScreen
from cockpit.screens.label import LabelScreen
from cockpit.screens.order import OrderScreen
from cockpit.screens.run import RunScreen
from cockpit.screens.runs import RunsScreen
from cockpit.widgets.away_panel import AwayPanel
from cockpit.widgets.runs_columns import MARK
from cockpit.widgets.runs_table import RunsTable
from engines.contract.rundir import Attempt
from tests.cockpit.conftest import NOW
from tests.cockpit.driving import keys, text, until
from tests.support.fake_run import FakeRun

Make = Callable[..., CockpitApp]


@pytest.fixture(autouse=True)
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was seen is of this test alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def three(folder: Path) -> dict[str, FakeRun]:
    """Amber, the newest, with the worst score; birch; cedar, the oldest, with the best."""
    fakes = {}
    for place, word in enumerate(("amber", "birch", "cedar")):
        fake = FakeRun(folder, f"controls-20261127-10000{9 - place}-{word}", created=NOW - 3600 * (place + 1))
        fakes[word] = fake.begin().started().epochs(place + 1, best=place + 1).end("finished")
    return fakes


def words(pilot: Pilot[None]) -> list[str]:
    """The runs that the list shows, each by its word."""
    return [row.id.rsplit("-", 1)[-1] for row in pilot.app.screen.query_one(RunsTable).rows]


def title(pilot: Pilot[None]) -> str:
    return str(pilot.app.screen.query_one(RunsTable).border_title)


def marked(pilot: Pilot[None]) -> list[str]:
    """Words of the runs whose line carries the sign."""
    return re.findall(rf"{re.escape(MARK)}(\w+)", text(pilot))


async def loaded(pilot: Pilot[None], count: int = 3) -> None:
    await until(pilot, lambda: len(pilot.app.screen.query_one(RunsTable).rows) == count and keys(pilot).get("open"))


async def test_a_filter_holds_while_runs_come_and_escape_shows_all(
    cockpit: Make, folder: Path, three: dict[str, FakeRun]
) -> None:
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        assert title(pilot).startswith("3 runs · newest first")
        await pilot.press("slash", *"amber")
        await until(pilot, lambda: words(pilot) == ["amber"])
        assert title(pilot).startswith("1 of 3 runs")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.focused, RunsTable))
        FakeRun(folder, "controls-20261127-110000-delta", label="like amber", created=NOW).begin().end("finished")
        FakeRun(folder, "controls-20261127-110001-ember", created=NOW).begin().end("finished")
        await until(pilot, lambda: words(pilot) == ["delta", "amber"] and title(pilot).startswith("2 of 5 runs"))
        await pilot.press("slash", "x")
        await until(pilot, lambda: "No run matches x; escape shows all." in text(pilot))
        assert not keys(pilot).get("open")
        await pilot.press("escape")
        await until(pilot, lambda: len(words(pilot)) == 5 and isinstance(pilot.app.focused, RunsTable))


async def test_a_bad_expression_says_so_and_filters_nothing(cockpit: Make, three: dict[str, FakeRun]) -> None:
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("slash", "slash", *"amber|b")
        await until(pilot, lambda: words(pilot) == ["amber", "birch"])
        await pilot.press("left_square_bracket")
        await until(
            pilot, lambda: "Not a regular expression, unterminated character set; showing all runs." in text(pilot)
        )
        assert len(words(pilot)) == 3


async def test_orders_are_chosen_turned_round_and_remembered(
    cockpit: Make, settings: SettingsFile, three: dict[str, FakeRun]
) -> None:
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        assert words(pilot) == ["amber", "birch", "cedar"]
        await pilot.press("o")
        await until(pilot, lambda: isinstance(pilot.app.screen, OrderScreen))
        assert "▼ newest" in text(pilot)
        await pilot.press("down", "down", "down", "enter")
        await until(pilot, lambda: words(pilot) == ["cedar", "birch", "amber"])
        assert title(pilot).startswith("3 runs · by score")
        await pilot.press("o")
        await until(pilot, lambda: isinstance(pilot.app.screen, OrderScreen))
        await pilot.press("enter")
        await until(pilot, lambda: words(pilot) == ["amber", "birch", "cedar"])
        await pilot.press("o")
        await until(pilot, lambda: isinstance(pilot.app.screen, OrderScreen))
        await pilot.press("escape")
    assert SettingsFile(settings.path).value.runs_sort == "score"
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        assert "Score▲" in text(pilot)


async def test_a_click_on_a_title_orders_by_it(cockpit: Make, three: dict[str, FakeRun]) -> None:
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        header = text(pilot).splitlines()[2]
        await pilot.click(offset=(header.index("Score") + 1, 2))
        await until(pilot, lambda: words(pilot) == ["cedar", "birch", "amber"])
        await pilot.click(offset=(header.index("Run"), 2))
        await until(pilot, lambda: words(pilot) == ["cedar", "birch", "amber"] and "Run▲" in text(pilot))
        await pilot.click(offset=(header.index("Run"), 2))
        await until(pilot, lambda: words(pilot) == ["amber", "birch", "cedar"] and "Run▼" in text(pilot))
        assert isinstance(pilot.app.screen, RunsScreen)


async def test_marks_stay_on_their_runs_whatever_is_shown(cockpit: Make, three: dict[str, FakeRun]) -> None:
    async with cockpit().run_test(size=(120, 30)) as pilot:
        await loaded(pilot)
        await pilot.press("space", "down", "space")
        await until(pilot, lambda: marked(pilot) == ["amber", "cedar"])
        assert title(pilot).endswith("2 marked")
        await pilot.press("slash", *"birch", "enter")
        await until(pilot, lambda: words(pilot) == ["birch"] and isinstance(pilot.app.focused, RunsTable))
        assert title(pilot).endswith("2 marked")
        await pilot.press("escape")
        await until(pilot, lambda: marked(pilot) == ["amber", "cedar"])
        await pilot.press("escape")
        await until(pilot, lambda: marked(pilot) == [])
        await pilot.press("asterisk")
        await until(pilot, lambda: len(marked(pilot)) == 3)
        await pilot.press("ctrl+a")
        await until(pilot, lambda: marked(pilot) == [])


async def test_compare_takes_any_number_of_marked_trainings(
    cockpit: Make, folder: Path, three: dict[str, FakeRun]
) -> None:
    for place in range(6):
        FakeRun(folder, f"controls-20261126-10000{place}-delta", created=NOW - 90000).begin().end("finished")
    FakeRun(folder, "controls-20261125-100000-ember", created=NOW - 99999, kind="task").begin().end("finished")
    heard: list[Message] = []
    async with cockpit().run_test(size=(120, 30), notifications=True, message_hook=heard.append) as pilot:
        await loaded(pilot, 10)
        await pilot.press("c")
        await until(pilot, lambda: "Mark two or more trainings to compare them: none so far." in text(pilot))
        await pilot.press("space", "end", "space", "c")  # and the task
        await until(pilot, lambda: "Mark two or more trainings to compare them: 1 so far." in text(pilot))
        assert not keys(pilot)["compare"]
        await pilot.press("home", "down", "space")
        await until(pilot, lambda: keys(pilot)["compare"])
        await pilot.press("c")
        await until(pilot, lambda: any(isinstance(message, RunsScreen.Compare) for message in heard))
        await until(pilot, lambda: "2 runs" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen))
        await pilot.press("asterisk", "c")
        await until(pilot, lambda: "9 runs" in text(pilot))
    asked = list({id(message): message.runs for message in heard if isinstance(message, RunsScreen.Compare)}.values())
    assert [run.path for run in asked[0]] == [three["amber"].run.path, three["birch"].run.path]
    assert len(asked[1]) == 9


async def test_a_baseline_is_pinned_and_tags_filter(cockpit: Make, folder: Path, three: dict[str, FakeRun]) -> None:
    labels.tag(three["birch"].run, ["good"])
    labels.tag(three["cedar"].run, ["goodbye"])
    async with cockpit().run_test(size=(160, 30), notifications=True) as pilot:
        await loaded(pilot)
        assert "#goodbye" in text(pilot)
        await pilot.press("slash", *"tag:good", "enter")
        await until(pilot, lambda: words(pilot) == ["birch"] and isinstance(pilot.app.focused, RunsTable))
        await pilot.press("b")
        await until(pilot, lambda: "birch is the baseline of controls" in text(pilot))
        await until(pilot, lambda: "baseline · #good" in text(pilot))
        assert baseline.pinned(folder) == {"controls": three["birch"].id}
        await pilot.press("b")
        await until(pilot, lambda: "controls has no baseline now." in text(pilot))
        await until(pilot, lambda: "baseline · #good" not in text(pilot))


@pytest.mark.behaviour("labels-come-first", "tasks-stand-apart")
async def test_labels_come_first_then_words_and_the_project_only_where_several_are(cockpit: Make, folder: Path) -> None:
    sweep = [f"lr={lr} layers={layers} seed=1" for lr in ("0.0001", "0.0003") for layers in (0, 2)]
    for place, label in enumerate(sweep):
        name = f"controls-20261127-10000{place}-{'ash elm fir oak'.split()[place]}"
        FakeRun(folder, name, label=label, created=NOW - place).begin().started(epochs=4000).end("finished")
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await loaded(pilot, 4)
        assert text(pilot).count(" 0/4,000 ") == 4
        names = re.findall(r"finished +(\S.*? · [a-z]+) ", text(pilot))
        assert [name.rpartition(" · ")[2] for name in names] == ["ash", "elm", "fir", "oak"]
        assert len({name.rpartition(" · ")[0] for name in names}) == 4  # no two look alike
        assert all(name.startswith("lr=") for name in names)
        await pilot.resize_terminal(120, 24)
        await until(pilot, lambda: all(f"{label} · " in text(pilot) for label in sweep))
        assert "Project" not in text(pilot)
        FakeRun(folder, "melee-20261127-100009-moss", project="melee", created=NOW - 9, kind="task").begin().end(
            "finished"
        )
        await until(pilot, lambda: "Project" in text(pilot) and "melee" in text(pilot))
        assert "task · moss" in text(pilot)
        await until(pilot, lambda: "4 done · 1 task " in text(pilot))
        waiting = FakeRun(folder, "melee-20261127-100010-reed", project="melee", created=NOW - 5, kind="task")
        with waiting.begin(queued=True).locked():
            await until(pilot, lambda: "4 done · 2 tasks" in text(pilot) and "queued" in text(pilot))
            assert "running" not in text(pilot)
            waiting.begin().started()
            await until(pilot, lambda: "2 tasks (1 running)" in text(pilot))
        await pilot.resize_terminal(200, 24)
        await until(pilot, lambda: "2026-11-27" in text(pilot))


async def test_delete_asks_names_and_frees(cockpit: Make, folder: Path, three: dict[str, FakeRun]) -> None:
    three["amber"].run.last.write_bytes(b"x" * 2_000_000)
    fork = three["birch"].run.info
    fork.parent = three["amber"].id
    three["birch"].run.write_info(fork)
    async with cockpit().run_test(size=(120, 30), notifications=True) as pilot:
        await loaded(pilot)
        for answer in ("escape", "enter"):
            await pilot.press("d")
            await until(pilot, lambda: isinstance(pilot.app.screen, DeleteScreen))
            assert f"{three['amber'].id}  2.0 MB" in text(pilot)
            assert f"A fork of it is kept: {three['birch'].id}" in text(pilot)
            await pilot.press(answer)
            await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen))
        assert three["amber"].run.path.exists()
        await pilot.press("d")
        await until(pilot, lambda: isinstance(pilot.app.screen, DeleteScreen))
        await pilot.press("y")
        await until(pilot, lambda: words(pilot) == ["birch", "cedar"] and "is deleted, 2.0 MB freed" in text(pilot))
        assert not three["amber"].run.path.exists()
        await pilot.press("asterisk", "d")
        await until(pilot, lambda: "Delete these 2 runs?" in text(pilot))
        await pilot.press("y")
        await until(pilot, lambda: "No runs yet" in text(pilot))
        await until(pilot, lambda: os.listdir(folder) == [])  # off the list first, then its files


async def test_a_live_run_is_never_deleted(cockpit: Make, folder: Path, three: dict[str, FakeRun]) -> None:
    live = FakeRun(folder, "controls-20261127-110000-delta", created=NOW).begin().started()
    with live.locked():
        async with cockpit().run_test(size=(120, 30), notifications=True) as pilot:
            await loaded(pilot, 4)
            await pilot.press("d")
            await until(pilot, lambda: "delta is live: stop it" in text(pilot))
            await pilot.press("asterisk", "d")
            await until(pilot, lambda: "Delete these 3 runs?" in text(pilot))
            assert "1 of the marked runs is live and was not deleted." in text(pilot)
            with three["amber"].locked():  # comes alive while it is asked
                await pilot.press("y")
                await until(pilot, lambda: "amber is live" in text(pilot) and len(words(pilot)) == 2)
                await until(pilot, lambda: sorted(os.listdir(folder)) == sorted([live.id, three["amber"].id]))


async def test_of_a_linked_run_only_the_link_goes(cockpit: Make, folder: Path, tmp_path: Path) -> None:
    mine = FakeRun(tmp_path / "mine").begin().started().end("finished")
    (folder / mine.id).symlink_to(mine.run.path)
    async with cockpit().run_test(size=(160, 30)) as pilot:
        await loaded(pilot, 1)
        await pilot.press("d")
        await until(pilot, lambda: "only its entry here; its files" in text(pilot))
        await pilot.press("y")
        await until(pilot, lambda: "No runs yet" in text(pilot))
    assert mine.run.info.id == mine.id


async def test_the_page_of_a_deleted_run_does_not_fail(cockpit: Make, folder: Path, three: dict[str, FakeRun]) -> None:
    app = cockpit(open_run=three["amber"].run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "TrLoss" in text(pilot))
        three["amber"].run.path.rename(folder / ".gone.deleted")
        await until(pilot, lambda: "its directory is gone" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and words(pilot) == ["birch", "cedar"])


async def test_label_and_notes(cockpit: Make, folder: Path) -> None:
    live = FakeRun(folder, label="old").begin().started()
    with live.locked():
        async with cockpit().run_test(size=(160, 30)) as pilot:
            await loaded(pilot, 1)
            await pilot.press("e")
            await until(pilot, lambda: isinstance(pilot.app.screen, LabelScreen))
            assert pilot.app.screen.query_one("#label", Input).value == "old"
            pilot.app.screen.query_one("#label", Input).value = "Größer [b]漢字\x1b[2J"
            await pilot.press("tab", *"see", "enter")
            await until(pilot, lambda: "Größer [b]漢字 · see" in text(pilot))
            assert (live.run.info.label, live.run.info.notes) == ("Größer [b]漢字", "see")
            assert live.run.path.name == live.id
            await pilot.press("e")
            await until(pilot, lambda: isinstance(pilot.app.screen, LabelScreen))
            await pilot.press("x", "escape")
            await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen))
    assert live.run.info.label == "Größer [b]漢字"


def priced(fake: FakeRun, started: float, ended: float, usd_per_hour: float) -> None:
    attempt: Attempt = fake.end("finished").run.attempt(1)
    attempt.started, attempt.usd_per_hour = started, usd_per_hour
    assert attempt.ended is not None
    attempt.ended.time = ended
    fake.run.write_attempt(attempt)


async def test_the_title_counts_runs_and_money(cockpit: Make, folder: Path) -> None:
    day = 86400
    for place, (before, hours, price) in enumerate(
        ((3600, 1, 2.5), (20 * 3600 + 40 * 60 + 3600, 2, 3.0), (40 * day, 9, 9.0))
    ):
        fake = FakeRun(folder, f"controls-20261127-10000{place}-amber", created=NOW - before).begin()
        priced(fake, NOW - before, NOW - before + hours * 3600, price)
    async with cockpit().run_test(size=(80, 24)) as pilot:
        # one hour of the second run was before midnight, of the third all before this month
        await until(pilot, lambda: "3 done   today $5.50 · month $8.50" in text(pilot))


async def test_what_happened_while_one_was_away(cockpit: Make, three: dict[str, FakeRun], folder: Path) -> None:
    live = FakeRun(folder, "controls-20261127-110000-delta", created=NOW - 9000).begin().started().epochs(1, 2, best=2)
    with live.locked():
        app = cockpit()
        async with app.run_test(size=(80, 24)) as pilot:
            await loaded(pilot, 4)
            assert not app.screen.query_one(AwayPanel).there
        live.epochs(3, 4, best=4)
        app = CockpitApp(folder=folder, clock=lambda: NOW + 8040)
        async with app.run_test(size=(120, 30)) as pilot:
            await until(pilot, lambda: "while you were away (2 h 14 m): delta: 2 epochs, new best 0.400" in text(pilot))
            await pilot.press("escape")
            await until(pilot, lambda: "while you were away" not in text(pilot))
        live.epochs(5)
        app = CockpitApp(folder=folder, clock=lambda: NOW + 8040 + 200)
        async with app.run_test(size=(120, 30)) as pilot:
            await loaded(pilot, 4)
            assert not app.screen.query_one(AwayPanel).there


async def test_what_is_seen_is_kept_every_so_often_on_every_screen(
    cockpit: Make, fake: FakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen_module, "KEEP_SECONDS", 0.05)
    fake.begin().started()
    app = cockpit(open_run=fake.run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await until(pilot, lambda: list((tmp_path / "state" / "cockpit").glob("seen-*.json")))


@pytest.mark.parametrize("width", [80, 100, 120, 140, 200])
async def test_a_name_is_whole_where_there_is_room_and_the_note_keeps_its_own(
    cockpit: Make, folder: Path, width: int
) -> None:
    name = "controls-20261127-201400-quarry"
    FakeRun(folder, name, label="wide").begin().started().end("finished")
    async with cockpit().run_test(size=(width, 24)) as pilot:
        await until(pilot, lambda: "wide · quarry " in text(pilot) and name in text(pilot))
        assert ("Note" in text(pilot)) == (width >= 100)


async def test_a_cursor_that_moves_is_drawn_also_when_nothing_else_is(
    cockpit: Make, three: dict[str, FakeRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coming back from a run updates the styles and forgets the lines; of ended runs no news draws them anew."""
    async with cockpit().run_test(size=(80, 24)) as pilot:
        table = pilot.app.screen.query_one(RunsTable)
        await until(pilot, lambda: len(table.rows) == len(three))
        drawn: list[int] = []
        monkeypatch.setattr(table, "refresh_line", drawn.append)
        table.notify_style_update()
        table.action_move(1)
        assert sorted(drawn) == [1, 2]  # below the header: the line that the cursor left, and the one it is on
