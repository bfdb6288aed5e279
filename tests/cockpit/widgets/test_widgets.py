"""Widgets apart from their screens: what they draw, and that they draw no more than what changed."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from textual.app import App, ComposeResult
from textual.widget import Widget

from cockpit.core.plot.frame import Sign, View
from cockpit.core.plot.lines import Look
from cockpit.core.run.follow import Log, News
from cockpit.core.run.model import RunModel
from cockpit.core.runs.summary import RunSummary
from cockpit.core.series import Series
from cockpit.theme import DEFAULT, THEMES, variables
from cockpit.widgets import throttle
from cockpit.widgets.epoch_table import EpochTable
from cockpit.widgets.log_view import LogView
from cockpit.widgets.metric_chart import Drawing, MetricChart
from cockpit.widgets.runs_table import RunsTable
from cockpit.widgets.table_pane import FullTable
from cockpit.widgets.throttle import Throttle
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.spec import Column
from tests.support.fake_run import COLUMNS, epoch


class Host(App[None]):
    """One widget, in the cockpit's theme and style sheet."""

    CSS_PATH = "../../../cockpit/app.tcss"

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.register_theme(THEMES[DEFAULT])
        self.theme = DEFAULT
        self._widget = widget

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables(dark=True)

    def compose(self) -> ComposeResult:
        yield self._widget


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Regions that widgets ask to be drawn, an empty tuple for a whole widget."""
    asked: list[tuple[Any, ...]] = []
    real = Widget.refresh

    def refresh(self: Widget, *regions: Any, **options: Any) -> Widget:
        if isinstance(self, EpochTable | RunsTable | MetricChart | LogView):
            asked.append(regions)
        return real(self, *regions, **options)

    monkeypatch.setattr(Widget, "refresh", refresh)
    return asked


def model_with(*events: ev.Event) -> RunModel:
    model = RunModel()
    started = ev.RunStarted(
        project="p", device="cpu", epochs=9, steps_per_epoch=10, columns=COLUMNS, stages=[], patience=3
    )
    model.add(News(events=(started, *events)))
    return model


@pytest.mark.behaviour("table-10-000-epochs")
async def test_a_new_row_draws_itself_and_the_one_before(drawn: list[tuple[Any, ...]]) -> None:
    table = EpochTable()
    async with Host(table).run_test(size=(80, 20)) as pilot:
        model = model_with(epoch(1, best=True), epoch(2), epoch(3))
        table.show(model)
        await pilot.pause()
        drawn.clear()
        table.show(model)
        assert drawn == []
        model.add(News(events=(epoch(4),)))
        table.show(model)
        lines = {region[0].y for region in drawn if region}
        assert lines == {3, 4}  # below the header: rows 3 (no longer the newest) and 4


async def test_when_the_best_epoch_changes_both_rows_are_drawn(drawn: list[tuple[Any, ...]]) -> None:
    table = EpochTable()
    async with Host(table).run_test(size=(80, 20)) as pilot:
        model = model_with(epoch(1, best=True), epoch(2), epoch(3))
        table.show(model)
        await pilot.pause()
        drawn.clear()
        model.add(News(events=(epoch(4, best=True),)))
        table.show(model)
        assert {region[0].y for region in drawn if region} == {1, 3, 4}
        assert [table.line(index).plain[-1] for index in range(4)] == ["4", "4", "4", "★"]


@pytest.mark.behaviour("table-10-000-epochs")
async def test_ten_thousand_rows_are_no_burden(drawn: list[tuple[Any, ...]]) -> None:
    table = EpochTable()
    async with Host(table).run_test(size=(80, 20)) as pilot:
        table.show(model_with(*(epoch(number, loss=0.5, score=0.5) for number in range(1, 10_001))))
        await pilot.pause()
        assert table.count == 10_000
        assert len(drawn) < 100
        assert table.line(9_999).plain.split()[0] == "10000"
        assert table.scroll_y == table.max_scroll_y


def drawing(end: float, *signs: Sign) -> Drawing:
    return Drawing(Look(), View("step", 0.0, end), signs, legend=True)


def picture(chart: MetricChart) -> str:
    return "\n".join(chart.render_line(y).text for y in range(chart.size.height))


def steps(values: np.ndarray[Any, np.dtype[np.float64]], name: str = "train.loss") -> Series:
    x = np.arange(len(values), dtype=np.float64)
    return Series(name, x, x, x, values)


async def test_a_chart_that_would_look_the_same_is_not_drawn_again(drawn: list[tuple[Any, ...]]) -> None:
    chart = MetricChart("Loss")
    y = np.exp(-np.arange(100_000) / 30_000)
    best = drawing(1e5, Sign("best", 50_000.0))
    async with Host(chart).run_test(size=(80, 20)) as pilot:
        chart.show([], best)
        assert "no value yet" in picture(chart)
        chart.show([("train", steps(y))], best)
        await pilot.pause()
        before = picture(chart)
        assert "★ best" in before
        drawn.clear()
        middle = y.copy()
        middle[1] = (y[0] + y[2]) / 2  # lies within its pixel column
        chart.show([("train", steps(middle))], best)
        assert drawn == []
        spike = y.copy()
        spike[60_000] = 0.9
        chart.show([("train", steps(spike))], best)
        assert sum(region.area for regions in drawn for region in regions) < 40  # a column of one cell
        assert picture(chart) != before


async def test_the_curves_set_the_range_and_a_wild_step_is_cut_off_at_it() -> None:
    chart = MetricChart("Loss")
    async with Host(chart).run_test(size=(80, 20)) as pilot:
        wild = steps(np.array([900.0] + [0.5] * 99), "loss")
        chart.show([("logged", wild), ("train", steps(np.array([1.0, 0.0])))], drawing(99.0))
        await pilot.pause()
        assert "900" not in picture(chart)
        assert max(float(word) for word in re.findall(r"(\S+)┤", picture(chart))) <= 1.5
        chart.show([("logged", wild)], drawing(99.0))
        assert max(float(word) for word in re.findall(r"(\S+)┤", picture(chart))) >= 800


@pytest.mark.parametrize(
    "values", [[], [np.nan], [np.nan, np.inf], [1.0], [2.0, 2.0], [1e300, -1e300], [0.0, np.nan, 1.0]]
)
async def test_every_series_can_be_drawn(values: list[float]) -> None:
    chart = MetricChart("Loss")
    async with Host(chart).run_test(size=(40, 10)) as pilot:
        chart.show([("train", steps(np.array(values)))], drawing(2.0))
        await pilot.pause()
        assert ("×" in picture(chart)) == (not np.isfinite(values).all())
        await pilot.resize_terminal(3, 2)
        await pilot.pause()
        picture(chart)


async def test_a_log_stays_where_the_person_scrolled_while_lines_fall_off_its_start() -> None:
    view = LogView()
    async with Host(view).run_test(size=(40, 12)) as pilot:
        view.show(Log(tuple(f"line {number}" for number in range(100)), 0))
        await pilot.pause()
        was_following = view.following
        view.scroll_to(y=50, animate=False)
        await pilot.pause()
        assert (was_following, view.following) == (True, False)
        view.show(Log(tuple(f"line {number}" for number in range(10, 110)), 10))
        await pilot.pause()
        assert view.line(round(view.scroll_y)).plain == "line 50"
        view.scroll_end(animate=False)
        await pilot.pause()
        view.show(Log(tuple(f"line {number}" for number in range(20, 120)), 20))
        await pilot.pause()
        assert view.line(view.count - 1).plain == "line 119"
        assert view.scroll_y == view.max_scroll_y


def summary(number: int, **values: Any) -> RunSummary:
    return RunSummary(
        path=Path(f"/runs/{number}"), id=f"run-{number}", created=float(number), state="finished", **values
    )


@pytest.mark.behaviour("epoch-costs-few-kilobytes")
async def test_the_list_of_runs_draws_only_the_line_that_changed(drawn: list[tuple[Any, ...]]) -> None:
    table = RunsTable()
    async with Host(table).run_test(size=(80, 20)) as pilot:
        rows = [summary(number) for number in range(10)]
        table.show(rows, 100.0)
        await pilot.pause()
        drawn.clear()
        table.show(rows, 100.0)
        assert drawn == []
        rows[4] = summary(4, score=0.5)
        table.show(rows, 100.0)
        assert {region[0].y for region in drawn} == {5}


async def test_no_column_of_the_list_is_cut_silently_beside_a_scrollbar_or_without_one() -> None:
    table = RunsTable()
    now = 16 * 60.0
    async with Host(table).run_test(size=(80, 24)) as pilot:
        for width in (80, 100, 120, 200, 70):
            await pilot.resize_terminal(width, 24)
            for count in (3, 30, 3):
                rows = [
                    summary(number, done=7, total=12_345, score=0.5, project=f"p{number % 2}")
                    for number in range(count)
                ]
                table.show([replace(row, id="controls-20261127-201400-" + "x" * 9, created=0.1) for row in rows], now)
                await pilot.pause()
                assert table.show_vertical_scrollbar == (count == 30)
                header, lines = table.render_line(0).text, [table.render_line(y).text for y in (1, 2)]
                titles = ["State", "Run", *(["Project"] if width > 104 else []), "Epoch", "Score", "Spent", "Age"]
                assert header.split()[: len(titles)] == titles
                end = header.index("Age") + len("Age")
                assert [line[:end].rsplit(" ", 2)[1:] for line in lines] == [["15", "m"]] * 2, (width, count)
                assert all("…" in line or "-xxxxxxxxx " in line for line in lines)


async def test_rows_stay_below_their_titles_beyond_the_ten_thousandth_epoch() -> None:
    table = EpochTable()
    async with Host(table).run_test(size=(100, 20)) as pilot:
        model = model_with(epoch(1, best=True))
        for number, planned in ((9_999, 9), (10_000, 9), (10_001, 250_000)):  # further than planned, then lengthened
            order = cmd.SetEpochs(attempt=0, epochs=planned)
            model.add(News(events=(ev.CommandAnswer(command=order, state="applied", step=1), epoch(number))))
            table.show(model)
            await pilot.pause()
            ends = [match.end() for match in re.finditer(r"\S+", table.header().plain)]
            for index in range(table.count):
                line = table.line(index).plain.removesuffix(" ★")
                assert [match.end() for match in re.finditer(r"\S+", line)] == ends, number


async def test_wide_columns_give_way_so_that_score_and_rate_are_seen_whole() -> None:
    """Also while the terminal is made narrower and wider; the tab with all columns shows all of them."""
    wide = [Column(f"Wide{place}", f"train.wide{place}", wide=True) for place in range(12)]
    columns = [Column("Ep", "epoch", "d"), *wide, Column("Score", "score"), Column("LR", "lr", ".1e")]
    started = ev.RunStarted(project="p", device="cpu", epochs=9, steps_per_epoch=10, columns=columns, stages=[])
    model = RunModel()
    model.add(News(events=(started, *(epoch(number, best=number == 2) for number in range(1, 40)))))
    table = EpochTable()
    async with Host(table).run_test(size=(80, 20)) as pilot:
        table.show(model)
        whole = table.needs_width
        for width, shown in ((80, 9), (whole, 12), (40, 3), (whole - 1, 11), (whole, 12)):
            await pilot.resize_terminal(width, 20)
            await pilot.pause()
            header, line = table.render_line(0).text.split(), table.render_line(table.size.height - 1).text
            assert header == ["Ep", *(one.title for one in wide[:shown]), "Score", "LR"], width
            assert line.split()[-1] == "5.0e-4", width
            assert "more column" not in str(table.border_title)
            assert table.needs_width == whole
    full = FullTable()
    async with Host(full).run_test(size=(40, 20)):
        full.use(columns)
        assert full.header().plain.split() == [column.title for column in columns]


async def test_what_is_asked_for_often_is_shown_seldom_and_never_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "time", SimpleNamespace(monotonic=lambda: 0.0))  # all of it is asked at once
    shows: list[int] = []
    state = [0]
    host = Host(Widget())
    async with host.run_test() as pilot:
        seldom = Throttle(host, 0.2, lambda: shows.append(state[0]))
        for value in range(1, 50):
            state[0] = value
            seldom.ask()
        assert shows == [1]
        while len(shows) < 2:
            await pilot.pause(0.02)
        assert shows == [1, 49]


async def test_news_do_not_wait_behind_a_clock_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "time", SimpleNamespace(monotonic=lambda: 0.0))
    shows: list[str] = []
    said = [""]
    host = Host(Widget())
    async with host.run_test() as pilot:
        seldom = Throttle(host, 0.2, lambda: shows.append(said[0]))
        for said[0], news in (("clock", False), ("news", True), ("more news", True), ("clock again", False)):
            seldom.ask(news=news)
        assert shows == ["clock", "news"]  # the rest not so soon after news, and together
        while len(shows) < 3:
            await pilot.pause(0.02)
        assert shows == ["clock", "news", "clock again"]
