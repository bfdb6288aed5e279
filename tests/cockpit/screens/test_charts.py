"""The charts driven by its keys and the mouse, over made-up metrics and over a run's directory."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import pytest
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Static

from cockpit.app import CockpitApp
from cockpit.core.plot.cells import Cells
from cockpit.core.plot.frame import LEFT, plot_width
from cockpit.core.plot.picture import paint
from cockpit.screens.help import HelpScreen
from cockpit.screens.run import RunScreen
from cockpit.widgets import charts_panel, metric_chart
from cockpit.widgets.charts_panel import ChartsPanel
from cockpit.widgets.metric_chart import MetricChart
from engines.contract.steps import StepWriter
from tests.cockpit.charts_screen import ChartsScreen
from tests.cockpit.driving import keys, text, until
from tests.support.fake_metrics import FakeMetrics
from tests.support.fake_run import FakeRun

Make = Callable[..., CockpitApp]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts_panel, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(charts_panel, "SHOW_SECONDS", 0.05)


@contextlib.asynccontextmanager
async def opened(
    cockpit: Make, source: FakeMetrics, size: tuple[int, int] = (100, 40), shown: str = "score"
) -> AsyncIterator[tuple[Pilot[None], ChartsPanel]]:
    app = cockpit()
    async with app.run_test(size=size, notifications=True) as pilot:
        screen = ChartsScreen(source, source.marks)
        await app.push_screen(screen)
        await until(pilot, lambda: shown in text(pilot) and "help" in text(pilot))
        await until(pilot, lambda: screen.focused is (screen.panel.grid.selected or screen.panel.grid))
        yield pilot, screen.panel


def names(pilot: Pilot[None]) -> list[str | None]:
    return [chart.name for chart in pilot.app.screen.query(MetricChart) if chart.display]


def title(pilot: Pilot[None]) -> str:
    return str(pilot.app.screen.query_one("#state", Static).content)


def chart(pilot: Pilot[None], name: str) -> str:
    """A chart as text."""
    widget = next(chart for chart in pilot.app.screen.query(MetricChart) if chart.name == name)
    return "\n".join("".join(run for run, _ in widget._cells.row(y)) for y in range(widget.size.height))


def told(pilot: Pilot[None], name: str) -> list[str]:
    """The values in a chart's title."""
    return re.findall(r"[━╍─] (?:[a-z]+ )? *([-\d.e]+|nan|—) ", chart(pilot, name).splitlines()[0])


async def test_metrics_of_one_thing_share_a_chart_with_their_last_values(cockpit: Make) -> None:
    async with opened(cockpit, FakeMetrics(), (80, 24)) as (pilot, _):
        assert {"open", "filter", "smooth", "log", "axis", "back", "zoom in", "pan left"} <= keys(pilot).keys()
        assert "quit" in text(pilot).splitlines()[-1]
        assert names(pilot) == ["score", "loss", "grad/norm", "gpu/0", "gpu/1"]
        assert told(pilot, "loss")[-2:] == ["0.4000", "0.5000"]  # 2 / (1 + 400 / 100), and a tenth more
        legend = text(pilot).splitlines()[1]
        for word in ("─ step", "━ train", "╍ validation", "◆ saved", "↻ resume", "▲ edit", "★ best"):
            assert word in legend
        assert "400 not finite" in chart(pilot, "grad/norm")


async def test_enter_enlarges_one_and_brings_all_back(cockpit: Make) -> None:
    async with opened(cockpit, FakeMetrics(more=0)) as (pilot, panel):
        await pilot.press("tab", "enter")
        await until(pilot, lambda: names(pilot) == ["loss"])
        assert panel.grid.selected is not None
        assert panel.grid.selected.size.height > 30
        await pilot.press("escape")
        await until(pilot, lambda: names(pilot) == ["score", "loss", "grad/norm"])
        assert panel.grid.selected.name == "loss"
        await pilot.press("enter", "enter")
        await until(pilot, lambda: len(names(pilot)) == 3)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, ChartsScreen))


async def test_arrows_select_the_chart_above_and_below(cockpit: Make) -> None:
    async with opened(cockpit, FakeMetrics(more=36), (80, 24)) as (pilot, panel):
        await pilot.press("down", "down")
        await until(pilot, lambda: panel.grid.selected and panel.grid.selected.name == "gpu/1")  # two a row
        await until(pilot, lambda: "gpu/1" in text(pilot))
        await pilot.press("up")
        await until(pilot, lambda: panel.grid.selected and panel.grid.selected.name == "grad/norm")


async def test_a_filter_leaves_charts_with_all_its_words(cockpit: Make) -> None:
    async with opened(cockpit, FakeMetrics(more=3)) as (pilot, panel):
        await pilot.press("slash", *"1 g")
        await until(pilot, lambda: names(pilot) == ["gpu/1"])
        assert "“1 g”: 1 of 6" in title(pilot)
        await pilot.press("enter", "m")
        assert panel.view.look.smoothing == 0.98  # keys are the charts' again
        await pilot.press("slash", *"zz")
        await until(pilot, lambda: "no chart has these words" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: len(names(pilot)) == 6)
        assert "“" not in title(pilot)


async def test_zoom_pan_and_reset(cockpit: Make) -> None:
    async with opened(cockpit, FakeMetrics()) as (pilot, panel):
        await pilot.press("plus")
        view = panel.view.viewport
        assert (view.end - view.start) * 1.5 == pytest.approx(400)
        assert "step 67 to step 333" in title(pilot)
        await pilot.press("left")
        assert panel.view.viewport.start == pytest.approx(view.start - 0.2 * 400 / 1.5)
        await pilot.press("right", "right", "right", "right")
        assert panel.view.viewport.end == 400
        await pilot.press("minus")
        assert panel.view.viewport.whole
        await pilot.press("comma", "plus", "plus", "plus")
        assert panel.view.cursor == panel.view.viewport.end == 400  # zoomed around the cursor
        await pilot.press("0")
        assert panel.view.viewport.whole
        assert panel.view.cursor is None


@pytest.mark.behaviour("steps-are-smoothed-epochs-never")
async def test_smoothing_goes_round_and_values_become_logarithmic(cockpit: Make) -> None:
    async with opened(cockpit, FakeMetrics()) as (pilot, _):
        usual = chart(pilot, "loss")
        await pilot.press("m")
        assert "smoothing 0.98" in title(pilot)
        await pilot.press("m")
        assert "raw" in title(pilot)
        raw = chart(pilot, "loss")
        assert raw != usual
        for weight in ("smoothing 0.6", "by step", "smoothing 0.98"):
            await pilot.press("m")
            assert weight in title(pilot)
            assert chart(pilot, "loss") != raw
            assert told(pilot, "loss")[1:] == ["0.4000", "0.5000"]  # as logged
        await pilot.press("m")
        assert chart(pilot, "loss") == raw
        await pilot.press("o")
        assert "log" in title(pilot)
        assert "not above 0" in chart(pilot, "gpu/0")  # a sine
        assert "not above 0" not in chart(pilot, "loss")


async def test_the_axis_goes_round_steps_epochs_and_time(cockpit: Make) -> None:
    async with opened(cockpit, FakeMetrics()) as (pilot, panel):
        await pilot.press("b")
        assert "by epoch" in title(pilot)
        assert " 10 " in chart(pilot, "loss").splitlines()[-1]
        await pilot.press("b")
        assert panel.view.viewport.end == pytest.approx(720)  # 400 steps of 1.8 s
        assert " 5m " in chart(pilot, "loss").splitlines()[-1]
        await pilot.press("b")
        assert "by clock (" in title(pilot)
        await pilot.press("b")
        assert "by step" in title(pilot)


async def test_an_axis_that_the_log_does_not_know_is_left_out(cockpit: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    source = FakeMetrics()
    whole = source.series()
    for one in whole.values():
        one.epoch[:] = np.nan
    monkeypatch.setattr(source, "series", lambda: whole)
    async with opened(cockpit, source) as (pilot, panel):
        await pilot.press("b")
        await until(pilot, lambda: panel.view.look.axis == "time")


async def test_one_cursor_tells_the_values_of_all_charts(cockpit: Make) -> None:
    async with opened(cockpit, FakeMetrics()) as (pilot, _):
        await pilot.press("comma")  # the last epoch of the score, which is selected
        await until(pilot, lambda: "at step 400" in title(pilot))
        await pilot.press("comma", "comma")
        assert "at step 360" in title(pilot)
        assert told(pilot, "loss")[1:] == [f"{2 / 4.6:.4g}", f"{2 / 4.6 + 0.1:.4g}"]
        assert told(pilot, "gpu/1") == [f"{1 + np.sin(12):.4g}"]
        assert told(pilot, "grad/norm") == ["nan"]
        await pilot.press("full_stop")
        assert "at step 380" in title(pilot)
        assert "┊" in chart(pilot, "gpu/0")


async def test_the_mouse_points_zooms_and_opens(cockpit: Make) -> None:
    async with opened(cockpit, FakeMetrics(more=0), (90, 40)) as (pilot, panel):
        first = next(iter(panel.query(MetricChart)))
        columns = plot_width(first.size.width)
        middle = Offset(LEFT + columns // 2, 4)
        await pilot.hover(first, offset=middle)
        await until(pilot, lambda: panel.view.cursor == 200)  # the epoch nearest to the middle
        await pilot.double_click(first, offset=middle)
        await until(pilot, lambda: names(pilot) == ["score"])
        await pilot._post_mouse_events([charts_scroll("up")], first, offset=middle)
        await until(pilot, lambda: not panel.view.viewport.whole)
        await pilot._post_mouse_events([charts_scroll("down")], first, offset=middle)
        await until(pilot, lambda: panel.view.viewport.whole)


def charts_scroll(direction: str) -> Any:
    from textual import events

    return {"up": events.MouseScrollUp, "down": events.MouseScrollDown}[direction]


@pytest.mark.behaviour("epoch-costs-few-kilobytes")
async def test_it_follows_and_sends_only_what_changed(cockpit: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    source = FakeMetrics(steps=402)
    async with opened(cockpit, source) as (pilot, panel):
        regions: list[Any] = []
        real = Widget.refresh

        def refresh(self: Widget, *asked: Any, **options: Any) -> Widget:
            if isinstance(self, MetricChart):
                regions.extend(asked or ["whole"])
            return real(self, *asked, **options)

        monkeypatch.setattr(Widget, "refresh", refresh)
        before = source.polled
        await until(pilot, lambda: source.polled > before + 3)
        assert regions == []  # nothing new, nothing drawn
        source.steps = 403
        await until(pilot, lambda: told(pilot, "gpu/0") == [f"{np.sin(402 / 30):.4g}"])
        assert "whole" not in regions
        cells = sum(region.area for region in regions)
        assert 0 < cells < 0.2 * panel.grid.size.area  # the axis ends at 410 before and after
        source.steps = 404
        await until(pilot, lambda: "2 bad lines" in text(pilot))


async def test_nothing_is_polled_or_drawn_under_another_screen(cockpit: Make) -> None:
    source = FakeMetrics()
    async with opened(cockpit, source) as (pilot, _):
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen) and "Logarithmic" in text(pilot))
        polled = source.polled
        source.steps = 500
        await pilot.pause(0.5)
        assert source.polled <= polled + 1  # that was under way
        await pilot.press("escape")
        await until(pilot, lambda: "0.3333" in chart(pilot, "loss"))


@pytest.mark.parametrize(("size", "more"), [((80, 24), 36), ((200, 50), 0), ((30, 8), 2)])
async def test_any_number_of_charts_in_any_size(cockpit: Make, size: tuple[int, int], more: int) -> None:
    async with opened(cockpit, FakeMetrics(more=more), size) as (_, panel):
        shown = [one for one in panel.query(MetricChart) if one.display]
        assert len(shown) == 3 + more
        assert all(one.size.width >= min(38, size[0] - 2) and one.size.height >= 9 for one in shown)
        if more == 0:
            assert panel.grid.max_scroll_y == 0  # all are in view


async def test_in_a_hidden_tab_it_draws_nothing_and_escape_is_the_screens(cockpit: Make) -> None:
    async with opened(cockpit, FakeMetrics()) as (pilot, panel):
        panel.display = False
        await pilot.pause()
        assert not panel.seen
        panel.display = True
        await until(pilot, lambda: panel.seen)
        panel.following = False
        assert not panel.seen
        panel.following = True
        await pilot.press("escape")  # nothing to undo
        await until(pilot, lambda: not isinstance(pilot.app.screen, ChartsScreen))


async def test_marks_and_lines_have_ascii_signs_of_their_own(cockpit: Make) -> None:
    app = cockpit(ascii_only=True)
    async with app.run_test(size=(100, 40)) as pilot:
        source = FakeMetrics()
        await app.push_screen(ChartsScreen(source, source.marks))
        await until(pilot, lambda: "open" in text(pilot) and "score" in text(pilot))
        for word in (". step", "* train", "o validation", "s saved", "r resume", "^ edit", "B best"):
            assert word in str(title(pilot))
        await until(pilot, lambda: "B" in chart(pilot, "score").splitlines()[-2])
        assert chart(pilot, "loss").isascii()


async def test_without_metrics_it_says_so_and_shows_the_first(cockpit: Make) -> None:
    source = FakeMetrics(empty=True)
    async with opened(cockpit, source, shown="no metric logged yet") as (pilot, _):
        await pilot.press("m", "o", "b", "plus", "comma", "enter", "0", "down", "slash", "escape")
        source.empty, source.steps = False, 420
        await until(pilot, lambda: "no metric" not in text(pilot) and told(pilot, "loss")[-1:] == ["0.4846"])


async def test_a_run_opens_its_charts(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started().epochs(1, 2, 3, best=2)
    StepWriter(fake.run.steps, ["epoch", "time", "loss"]).append(
        np.array([[s, 1, s // 10 + 1, 1e9 + s, 0.5 - s / 100] for s in range(30)], dtype=np.float64)
    )
    app = cockpit(open_run=fake.run)
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and "lost" in text(pilot))
        await pilot.press("3")
        await until(pilot, lambda: app.screen.query(ChartsPanel) and "score" in text(pilot))
        await until(pilot, lambda: told(pilot, "loss") == ["0.2100", "0.3333"])  # of step 29, of epoch 3
        assert "★" in chart(pilot, "score")
        panel = app.screen.query_one(ChartsPanel)
        await pilot.press("enter")
        await until(pilot, lambda: panel.view.enlarged)
        await pilot.press("escape")  # the panel's, as long as there is something to undo
        await until(pilot, lambda: not panel.view.enlarged and isinstance(app.screen, RunScreen))


async def test_of_many_charts_only_those_in_view_are_painted(cockpit: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    painted: list[str] = []

    def counted(title: str, *rest: Any, **more: Any) -> Cells:
        painted.append(title)
        return paint(title, *rest, **more)

    monkeypatch.setattr(metric_chart, "paint", counted)
    async with opened(cockpit, FakeMetrics(more=60), (80, 24)) as (pilot, panel):
        await until(pilot, lambda: len(panel.grid.shown) > 60 and "score" in text(pilot))
        await pilot.press("enter", "enter", "m")
        await pilot.pause()
        assert len(set(painted)) < 12
        await until(pilot, lambda: panel.grid.max_scroll_y > 0)
        await pilot.press("pagedown")
        await until(pilot, lambda: "score" not in text(pilot))
        assert all(title in text(pilot) for title in painted[-2:])


@pytest.mark.behaviour("range-and-axis-are-chosen")
async def test_the_range_of_a_chart_is_typed_and_the_axis_made_logarithmic(cockpit: Make) -> None:
    async with opened(cockpit, FakeMetrics()) as (pilot, panel):
        await pilot.press("tab", "Y", *"9 1", "enter")
        await until(pilot, lambda: "'9 1' is not a range" in text(pilot))
        await pilot.press("home", "delete", "delete", "delete", *"0 4", "enter")
        await until(pilot, lambda: panel.view.ranges == {"loss": (0, 4)})
        await until(pilot, lambda: "loss 0 to 4" in title(pilot))
        assert re.search(r"^│ +4(\.0)?┤", chart(pilot, "loss"), re.MULTILINE)
        await pilot.press("Y", "escape")
        await until(pilot, lambda: isinstance(pilot.app.focused, MetricChart))
        assert panel.view.ranges == {"loss": (0, 4)}
        await pilot.press("O")
        assert "by step · log x" in title(pilot)
        assert panel.view.viewport.start == 0  # of step 1
        await pilot.press("b", "b", "b")
        assert panel.view.look.axis == "clock"
        assert "by clock (" in title(pilot)
        assert "log x" not in title(pilot)
