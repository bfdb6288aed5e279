"""The panes of a run's tabs, each alone in an app: what they show of files that change, and their keys."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from textual.app import App, ComposeResult
from textual.widget import Widget
from textual.widgets import Static

from cockpit.core.metrics.steps import Steps
from cockpit.core.run.follow import News
from cockpit.core.run.model import Notable, RunModel
from cockpit.core.run.notable import Told, tell
from cockpit.theme import variables
from cockpit.widgets import charts_panel, config_pane, events_view, pane, report_pane, system_pane
from cockpit.widgets.config_pane import ConfigLines, ConfigPane
from cockpit.widgets.events_pane import EventsPane
from cockpit.widgets.pane import Pane
from cockpit.widgets.report_pane import ReportPane, TableLines
from cockpit.widgets.status_line import StatusLine
from cockpit.widgets.system_pane import SystemPane
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.rank_loads import RankLoad, RankLoads, read_loads, write_loads
from engines.contract.steps import ABSENT, StepWriter
from tests.cockpit.conftest import StillMachine
from tests.cockpit.driving import keys, text, until
from tests.support.fake_run import FakeRun, epoch


class Host(App[None]):
    """One pane, in the cockpit's style sheet."""

    CSS_PATH = "../../../cockpit/app.tcss"

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self._widget = widget

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables(dark=True)

    def compose(self) -> ComposeResult:
        yield self._widget

    def on_mount(self) -> None:
        if isinstance(self._widget, Pane):
            self._widget.activate()


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (config_pane, "POLL_SECONDS"), (report_pane, "POLL_SECONDS"), (system_pane, "POLL_SECONDS"),
        (pane, "UNSEEN_SECONDS"), (charts_panel, "POLL_SECONDS"), (charts_panel, "SHOW_SECONDS"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, 0.02)


def report(fake: FakeRun, **tables: tuple[list[str], list[list[Any]]]) -> None:
    content = {
        name: {"columns": columns, "rows": rows, "note": f"of {name}"} for name, (columns, rows) in tables.items()
    }
    fake.run.report.write_text(json.dumps({"tables": content}))


# -- report ------------------------------------------------------------------------------------------------------------


async def test_a_report_appears_is_chosen_from_and_is_read_again_when_replaced(fake: FakeRun) -> None:
    fake.begin().started().end("failed", exit_code=1)
    async with Host(ReportPane(fake.run)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "this run is failed" in text(pilot))
        report(fake, heads=(["head", "F1"], [["act", 0.5], ["look", None]]), baselines=(["name", "n"], [["zero", 12]]))
        await until(pilot, lambda: "act   0.5000" in text(pilot))
        assert "look       —" in text(pilot)
        assert "of heads" in text(pilot)
        await pilot.press("]")
        await until(pilot, lambda: "zero  12" in text(pilot))
        await pilot.press("[")
        await until(pilot, lambda: "act   0.5000" in text(pilot))
        report(fake, heads=(["head", "F1"], [["act", 0.75]]))
        await until(pilot, lambda: "act   0.7500" in text(pilot))
        assert "baselines" not in text(pilot)
        assert not keys(pilot)["next table"]
        fake.run.report.write_text("{")
        await until(pilot, lambda: "be read as a report" in text(pilot))


async def test_the_first_column_stays_while_the_others_move(fake: FakeRun) -> None:
    columns = ["head", *(f"column{number}" for number in range(13))]
    report(fake, heads=(columns, [["act", *map(float, range(13))]]))
    async with Host(ReportPane(fake.run)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "column0" in text(pilot))
        assert "column12" not in text(pilot)
        table = pilot.app.query_one(TableLines)
        table.scroll_to(x=table.max_scroll_x, animate=False)
        await until(pilot, lambda: "column12" in text(pilot))
        assert "column0" not in text(pilot)
        (row,) = [line for line in text(pilot).splitlines() if "act" in line]
        assert row.split()[-2:] == ["12.00", "│"]


async def test_a_hidden_pane_looks_no_more(fake: FakeRun) -> None:
    one = ReportPane(fake.run)
    async with Host(one).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "No report" in text(pilot))
        one.deactivate()
        one.activate()
        report(fake, heads=(["head"], [["act"]]))
        await until(pilot, lambda: "act" in text(pilot))


async def test_a_sentence_that_came_while_it_was_hidden_has_the_width_there_is(fake: FakeRun) -> None:
    async with Host(ReportPane(fake.run)).run_test(size=(200, 24)) as pilot:
        await until(pilot, lambda: "No report" in text(pilot))
        pane, lines = pilot.app.query_one(ReportPane), pilot.app.query_one(TableLines)
        pane.display = False
        fake.run.report.write_text("[]")
        await until(pilot, lambda: "cannot be read" in lines._instead)
        pane.display = True
        whole = ("report.json cannot be read as a report", "expected).")
        await until(pilot, lambda: all(words in text(pilot) for words in whole))
        await pilot.resize_terminal(60, 24)
        await until(pilot, lambda: lines.count > 2)
        shown = "".join(line.strip("│ ") for line in text(pilot).splitlines()[2 : 2 + lines.count])
        assert shown.replace(" ", "") == lines._instead.replace(" ", "")


async def test_a_pane_that_goes_while_it_comes_is_no_fault(fake: FakeRun) -> None:
    async with Host(Static()).run_test(size=(80, 24)) as pilot:
        pane = ReportPane(fake.run)
        pilot.app.screen.mount(pane)
        await pane.remove()


# -- config ------------------------------------------------------------------------------------------------------------


async def test_the_config_is_shown_searched_and_compared(fake: FakeRun, folder: Path) -> None:
    other = FakeRun(folder, "controls-20261127-211400-birch")
    other.run.config.write_text(other.run.config.read_text().replace("look: 0.5", "look: 0.9"))
    info = fake.run.info
    info.parent = other.id
    fake.run.write_info(info)
    edit = cmd.SetLossWeights(attempt=1, weights={"look": 0.8})
    fake.begin().started()
    async with Host(ConfigPane(fake.run)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "  look: 0.5" in text(pilot))
        fake.say(ev.CommandAnswer(command=edit, state="applied", step=361))
        await until(pilot, lambda: "look: 0.5   now 0.8 since step 361" in text(pilot))
        pilot.app.query_one(ConfigLines).focus()
        await pilot.press("slash", *"action", "enter")
        await until(pilot, lambda: "look" not in text(pilot))
        assert "action: 1.0" in text(pilot)
        await pilot.press("slash", "escape")
        await until(pilot, lambda: "look" in text(pilot))
        await pilot.press("D")
        await until(pilot, lambda: "the defaults → this run" in text(pilot))
        assert "- data.val_fraction" in text(pilot)
        await pilot.press("D")
        await until(pilot, lambda: "~ loss_weights.look  0.9 → 0.5   now 0.8 since step 361" in text(pilot))
        await pilot.press("D")
        await until(pilot, lambda: "project: controls" in text(pilot))


async def test_another_run_is_compared_with_and_one_that_is_gone_is_a_sentence(fake: FakeRun, folder: Path) -> None:
    other = FakeRun(folder, "controls-20261127-211400-birch").run
    pane = ConfigPane(fake.run)
    async with Host(pane).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "project: controls" in text(pilot))
        pane.choose(other)
        await until(pilot, lambda: "no difference" in text(pilot))
        fake.run.config.write_text("project: controls\nextra: 1\n")
        await until(pilot, lambda: "+ extra" in text(pilot))
        fake.run.config.write_text("a: [")
        await until(pilot, lambda: "bereadasaconfig" in "".join(text(pilot).replace("│", "").split()))
        shutil.rmtree(other.path)
        fake.run.config.write_text("project: controls\n")
        await until(pilot, lambda: "No run is called" in " ".join(text(pilot).split()))


# -- events ------------------------------------------------------------------------------------------------------------


async def test_events_are_chosen_by_kind_and_searched_and_the_newest_is_in_view() -> None:
    one = EventsPane()
    model = RunModel()
    alerts = [
        ev.Alert(code="x", level="warning", text=f"alert {n}", time=float(n), attempt=1, seq=n) for n in range(3000)
    ]
    best = epoch(4, best=True)
    best.time, best.attempt, best.seq = 1500.5, 1, 5000
    model.add(News(events=(*alerts, best)))
    async with Host(one).run_test(size=(80, 24)) as pilot:
        one.show(model)
        await until(pilot, lambda: "alert 2999" in text(pilot))
        assert one.view.count == 3001
        one.view.focus()
        for _ in range(4):
            await pilot.press("v")
        await until(pilot, lambda: "epoch 4, score 0.400" in text(pilot))
        assert "best: 1 of 3,001" in text(pilot)
        for _ in range(3):
            await pilot.press("v")
        await pilot.press("slash", *"/alert 17/", "enter")
        await until(pilot, lambda: "alert 1799" in text(pilot))
        assert one.view.count == 111  # 17, 170 to 179, 1700 to 1799
        model.add(
            News(events=(ev.Alert(code="x", level="error", text="alert 17 again", time=1e4, attempt=1, seq=9999),))
        )
        one.show(model)
        await until(pilot, lambda: "alert 17 again" in text(pilot))
        await pilot.press("slash", "escape")
        await until(pilot, lambda: one.view.count == 3002)


def test_only_new_events_are_put_into_words(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []

    def counting(notable: Notable) -> Told:
        told.append(notable)
        return tell(notable)

    monkeypatch.setattr(events_view, "tell", counting)
    view = events_view.EventsView()
    monkeypatch.setattr(view, "_choose", lambda: None)
    model = RunModel()
    model.add(News(events=tuple(ev.Alert(code="x", level="info", text="", time=float(n), seq=n) for n in range(100))))
    view.show(model)
    model.add(News(events=(ev.Alert(code="x", level="info", text="", time=100.0, seq=100),)))
    view.show(model)
    view.show(model)
    assert len(told) == 101


# -- system ------------------------------------------------------------------------------------------------------------


async def test_the_machine_is_shown_now_and_over_the_hours_that_were_recorded(fake: FakeRun) -> None:
    one = SystemPane(fake.run, StillMachine())
    async with Host(one).run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "97 %  604 W 71 °C" in text(pilot))
        await until(pilot, lambda: "No machine history" in text(pilot))
        fake.run.system.mkdir()
        writer = StepWriter(fake.run.system, ["gpu0.utilisation", "cores_busy"])
        writer.append(np.array([[1000.0 + 5 * n, 1, 0.9, 5.5] for n in range(720)]))
        await until(pilot, lambda: "GPU 0 busy %" in text(pilot) and "CPU cores busy" in text(pilot))
        await until(pilot, lambda: "No machine history" not in text(pilot))
        assert "1h" in text(pilot)  # the axis is time: an hour was recorded
        one.deactivate()
        assert not one.charts.following
        one.activate()
        writer.append(np.array([[1000.0 + 5 * n, 1, 0.9, 5.5] for n in range(720, 2160)]))
        await until(pilot, lambda: "3h" in text(pilot))


@pytest.mark.behaviour("ranks-rows")
async def test_each_rank_has_a_row_and_the_slowest_is_marked(fake: FakeRun) -> None:
    one = SystemPane(fake.run, StillMachine())
    async with Host(one).run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "97 %  604 W 71 °C" in text(pilot))
        assert "rank" not in text(pilot)
        fast = RankLoad(0, "box\x1b[2J-0", "cuda:0", 0.010, 0.004, 3 << 30)
        slow = RankLoad(1, "[red]box-1[/]", "cuda:1", 0.014, 0.0, 3 << 30)
        newest = fake.begin().attempt
        write_loads(fake.run, RankLoads(newest, [fast, slow]))
        await until(pilot, lambda: "slowest" in text(pilot))
        rows = [line.split() for line in text(pilot).splitlines() if "cuda:" in line]
        assert rows[0][:7] == ["0", "box-0", "cuda:0", "10.0", "ms", "4.0", "ms"]
        assert rows[1][:7] == ["1", "[red]box-1[/]", "cuda:1", "14.0", "ms", "0.0", "ms"]
        assert rows[1][-1] == "slowest"
        assert rows[0][-1] != "slowest"
        write_loads(fake.run, RankLoads(newest + 1, [fast, slow]))
        await until(pilot, lambda: "slowest" not in text(pilot))
        fake.run.rank_loads.write_bytes(b"\x00{")
        assert read_loads(fake.run) == []


# -- the line of numbers -----------------------------------------------------------------------------------------------


async def test_a_run_that_logs_no_loss_has_none_in_its_line_of_numbers() -> None:
    line, model = StatusLine(), RunModel()
    async with Host(line).run_test(size=(80, 24)):
        for loss, words in ((ABSENT, "step 7"), (np.nan, "step 7   loss nan"), (0.5, "step 7   loss 0.5000")):
            model.steps = Steps(np.array([[6.0], [1e9], [loss]]), ("step", "time", "loss"))
            line.show(model, None, None, None)
            assert line.render().plain.rstrip() == words
