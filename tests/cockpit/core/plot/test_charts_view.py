"""How charts are looked at, without a screen: of logs whose places are known by hand."""

from __future__ import annotations

import math
import time
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from cockpit.core.metrics.overlay import from_start
from cockpit.core.plot.axis import coordinates, place_name, x_ticks
from cockpit.core.plot.charts_view import ChartsView
from cockpit.core.plot.lines import ChartLines, Look
from cockpit.core.series import Mark, Series
from engines.basics.errors import UserError

BEGAN = 1_795_810_440.0
NAMES = ["score", "loss", "gpu/power", "gpu/memory", "GPU/heat"]


def log(steps: int, *, epochs: bool = True, name: str = "loss") -> Series:
    """Steps 0 to `steps` - 1, ten an epoch, three seconds each."""
    step = np.arange(float(steps))
    epoch = step / 10 if epochs else np.full(steps, math.nan)
    return Series(name, step, epoch, BEGAN + 3 * step, np.ones(steps))


def bounds(view: ChartsView) -> tuple[float, float]:
    return view.part.start, view.part.end


def test_the_whole_axis_is_that_of_all_series_and_grows_with_them() -> None:
    view = ChartsView().over([log(101), log(51)])
    assert bounds(view) == (0, 100)
    assert bounds(view.over([log(401), log(51)])) == (0, 400)
    assert bounds(ChartsView().over([])) == (0, 1)


def test_axes_go_round_those_that_are_told() -> None:
    view = ChartsView().over([log(101)])
    bound = {}
    for _ in range(4):
        view = view.next_axis([log(101)]).over([log(101)])
        bound[view.look.axis] = bounds(view)
    assert bound == {"epoch": (0, 10), "time": (0, 300), "clock": (BEGAN, BEGAN + 300), "step": (0, 100)}
    assert view.look.origin == 0
    without = [log(101, epochs=False)]
    assert ChartsView().over(without).next_axis(without).look.axis == "time"
    assert ChartsView(Look(axis="epoch")).over(without).look.axis == "time"  # by itself where nothing tells of it
    assert ChartsView(Look(axis="epoch")).over([]).look.axis == "epoch"


def test_hours_begin_with_the_first_point_of_all() -> None:
    later = Series("late", np.array([5.0]), np.array([0.5]), np.array([BEGAN + 600]), np.array([1.0]))
    view = ChartsView(Look(axis="time")).over([later, log(11)])
    assert view.look.origin == BEGAN
    assert bounds(view) == (0, 600)
    mark = Mark("edit", 7, 0.7, BEGAN + 21)
    assert view.place(mark) == 21
    assert (ChartsView().place(mark), ChartsView(Look(axis="epoch")).place(mark)) == (7, 0.7)


@pytest.mark.behaviour("range-and-axis-are-chosen")
def test_a_logarithmic_axis_has_all_places_above_0() -> None:
    view = ChartsView().over([log(101)]).other_axis_scale().over([log(101)])
    start, end = bounds(view)
    assert 10**start == pytest.approx(1)
    assert 100 <= 10**end < 150
    assert view.place(Mark("edit", 10, 1.0, BEGAN)) == pytest.approx(1)
    assert math.isnan(view.place(Mark("edit", 0, 0.0, BEGAN)))
    (line,) = ChartLines().make([("logged", log(101))], view.look)
    assert 10**line.x == pytest.approx(np.arange(1.0, 101.0))
    assert [text for _, text in x_ticks("step", start, end, 9, log=True)] == ["1", "2", "5", "10", "20", "50", "100"]
    assert [text for _, text in x_ticks("step", 0.0, 6.0, 9, log=True)] == [
        "1", "10", "100", "1k", "10k", "100k", "1M",
    ]  # fmt: skip
    assert place_name("step", math.log10(412), log=True) == "step 412"
    assert view.other_axis_scale().over([log(101)]) == ChartsView().over([log(101)])


@pytest.mark.behaviour("range-and-axis-are-chosen")
def test_the_clock_is_that_of_the_users_zone_and_of_each_log_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        view = ChartsView(Look(axis="clock", far=True)).over([log(101)])
        assert bounds(view) == (BEGAN, BEGAN + 300)  # no moment has a logarithm
        ticks = x_ticks("clock", BEGAN, BEGAN + 3 * 3600, 5)
        local = [datetime.fromtimestamp(at, ZoneInfo("Europe/Berlin")) for at, _ in ticks]
        assert [f"{at:%H:%M}" for at in local] == [words for _, words in ticks]
        assert {at.minute for at in local} == {0}
        assert place_name("clock", BEGAN) == f"{datetime.fromtimestamp(BEGAN, ZoneInfo('Europe/Berlin')):%F %T} CET"
        days = x_ticks("clock", BEGAN, BEGAN + 4 * 86400, 5)
        assert days[0][1] == f"{datetime.fromtimestamp(days[0][0], ZoneInfo('Europe/Berlin')):%d %b}"
    finally:
        monkeypatch.undo()
        time.tzset()
    moved = from_start({"loss": log(11)})["loss"]
    assert list(moved.time[:2]) == [0, 3]
    assert list(coordinates(moved, "clock")[:2]) == [BEGAN, BEGAN + 3]


@pytest.mark.behaviour("range-and-axis-are-chosen")
def test_a_range_is_that_of_one_chart_until_it_is_emptied() -> None:
    view = ChartsView().limit("loss", "0.2 0.9").limit("score", "auto 1")
    assert view.ranges == {"loss": (0.2, 0.9), "score": (None, 1.0)}
    assert view.range_text("score") == "auto 1"
    assert view.limit("loss", " ").ranges == {"score": (None, 1.0)}
    for wrong in ("1 0", "1", "a b", "0 nan", "1 1", "0 1 2", "0 inf"):
        with pytest.raises(UserError, match="is not a range; expected"):
            view.limit("loss", wrong)


def test_another_axis_forgets_window_and_cursor() -> None:
    view = ChartsView().over([log(101)]).point(20).zoom(True, 20)
    turned = view.next_axis([log(101)]).over([log(101)])
    assert bounds(turned) == (0, 10)
    assert turned.part.cursor is None


def test_zoom_is_half_as_much_again_and_keeps_its_place() -> None:
    view = ChartsView().over([log(301)]).zoom(True, 60)
    start, end = bounds(view)
    assert end - start == pytest.approx(200)
    assert (60 - start) / 200 == pytest.approx(60 / 300)
    assert bounds(view.zoom(False, 60)) == (0, 300)
    assert bounds(ChartsView().over([log(301)]).zoom(True, None)) == pytest.approx((50, 250))


def test_pan_moves_a_fifth_and_stops_at_the_ends() -> None:
    view = ChartsView().over([log(301)]).zoom(True, None)
    assert bounds(view.pan(1)) == pytest.approx((90, 290))
    assert bounds(view.pan(1).pan(1)) == pytest.approx((100, 300))
    assert bounds(view.pan(-1).pan(-1)) == pytest.approx((0, 200))


def test_reset_is_the_whole_axis_without_a_cursor_and_nothing_else() -> None:
    view = ChartsView().over([log(301)]).next_smoothing().filter("loss").zoom(True, None).point(9)
    assert view.part.cursor == 9
    assert view.reset() == ChartsView().over([log(301)]).next_smoothing().filter("loss")


def test_smoothing_goes_round_and_scales_are_two() -> None:
    view, weights = ChartsView(), []
    for _ in range(4):
        view = view.next_smoothing()
        weights.append(view.look.smoothing)
    assert weights == [0.6, 0.9, 0.98, 0.0]
    assert view.other_scale().look == Look(log=True)
    assert view.other_scale().other_scale() == view


def test_a_filter_asks_for_all_its_words_in_either_case() -> None:
    assert ChartsView().shown(NAMES) == NAMES
    assert ChartsView().filter("  GPU me").shown(NAMES) == ["gpu/memory"]
    assert ChartsView().filter("gpu").shown(NAMES) == ["gpu/power", "gpu/memory", "GPU/heat"]
    assert ChartsView().filter("nothing").shown(NAMES) == []


def test_one_alone_stays_whatever_the_filter_says_as_long_as_it_is_there() -> None:
    view = ChartsView().filter("gpu").enlarge("loss")
    assert view.shown(NAMES) == ["loss"]
    assert view.matching(NAMES) == ["gpu/power", "gpu/memory", "GPU/heat"]
    assert view.shown(["score", "gpu/power"]) == ["gpu/power"]
    assert view.enlarge(None).shown(NAMES) == view.matching(NAMES)
