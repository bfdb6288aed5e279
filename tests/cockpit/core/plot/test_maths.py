"""Smoothing, reduction and dots against slow, readable references; scales and ticks by hand."""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.core import braille
from cockpit.core.plot import smooth
from cockpit.core.plot.axis import clock, roomy_end, x_ticks
from cockpit.core.plot.groups import chart_and_role, grouped
from cockpit.core.plot.raster import rasterize
from cockpit.core.plot.reduce import Columns, points_of, reduce
from cockpit.core.plot.scale import fit_scale, height, label
from cockpit.core.plot.smooth import Smoother
from cockpit.core.plot.viewport import Viewport
from cockpit.core.series import Floats

values = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([math.nan, math.inf, -math.inf]))
many = st.lists(values, max_size=60)
weights = st.sampled_from([0.0, 0.3, 0.6, 0.9, 0.98])


def array(numbers: list[float]) -> Floats:
    return np.array(numbers, dtype=np.float64)


# -- smoothing -----------------------------------------------------------------------------------------------------


def smoothed(y: list[float], weight: float) -> list[float]:
    """By the definition: a weighted mean of all finite values so far, the weight falling with each of them."""
    result = []
    for end, value in enumerate(y, 1):
        past = [v for v in y[:end] if math.isfinite(v)][::-1]
        shares = [weight**age for age in range(len(past))]
        mean = math.fsum(s * v for s, v in zip(shares, past, strict=True)) / sum(shares) if past else math.nan
        result.append(mean if math.isfinite(value) else value)
    return result


@pytest.mark.behaviour("smoothing-unbiased-start-never")
@given(y=many, weight=weights, cut=st.integers(0, 60))
def test_smoothing_is_the_weighted_mean_however_the_series_grew(y: list[float], weight: float, cut: int) -> None:
    smoother = Smoother(weight)
    smoother.smooth(array(y[:cut]))
    expected = array(smoothed(y, weight))
    np.testing.assert_allclose(smoother.smooth(array(y)), expected, rtol=1e-9, atol=1e-6)


@pytest.mark.behaviour("smoothing-unbiased-start-never")
@given(y=many, weight=weights, cut=st.integers(0, 60))
def test_what_comes_later_changes_nothing_before(y: list[float], weight: float, cut: int) -> None:
    whole = Smoother(weight).smooth(array(y))
    assert np.array_equal(Smoother(weight).smooth(array(y[:cut])), whole[:cut], equal_nan=True)
    growing = Smoother(weight)
    before = growing.smooth(array(y[:cut])).copy()
    assert np.array_equal(growing.smooth(array(y))[: len(before)], before, equal_nan=True)


@pytest.mark.behaviour("smoothing-unbiased-start-never")
@given(value=st.floats(-1e300, 1e300), count=st.integers(1, 300), weight=weights)
def test_a_constant_stays_that_constant(value: float, count: int, weight: float) -> None:
    assert Smoother(weight).smooth(np.full(count, value)).tolist() == [value] * count


@pytest.mark.parametrize(("block", "row"), [(7, 7), (40, 8), (1000, 3), (1 << 15, 64)])
def test_rows_and_blocks_meet_without_a_seam(monkeypatch: pytest.MonkeyPatch, block: int, row: int) -> None:
    y = np.random.default_rng(1).standard_normal(500)
    expected = array(smoothed(y.tolist(), 0.98))
    monkeypatch.setattr(smooth, "BLOCK", block)
    monkeypatch.setattr(smooth, "ROW", row)
    np.testing.assert_allclose(Smoother(0.98).smooth(y), expected, rtol=1e-9, atol=1e-12)


def test_a_series_that_was_replaced_is_smoothed_again() -> None:
    smoother = Smoother(0.9)
    smoother.smooth(array([1.0, 2.0, 3.0]))
    assert smoother.smooth(array([5.0, 5.0])).tolist() == [5.0, 5.0]
    assert smoother.smooth(array([7.0, 7.0, 7.0])).tolist() == [7.0, 7.0, 7.0]


# -- reduction -----------------------------------------------------------------------------------------------------


def reduced(x: list[float], y: list[float], columns: int, start: float, end: float) -> list[tuple[object, ...]]:
    """(column, first, low, high, last, joined), point by point."""
    points = []
    for place, (at, value) in enumerate(zip(x, y, strict=True)):
        before = x[place - 1] if place else math.inf
        for edge in (start, end):
            if before < edge <= at and not (edge == end == at):
                share = (edge - before) / (at - before)
                points.append((edge, y[place - 1] + (value - y[place - 1]) * share))
        if start <= at <= end:
            points.append((at, value))
    edges = (start + (end - start) / columns * np.arange(1, columns)).tolist()
    found: dict[int, list[float]] = {}
    joined: dict[int, bool] = {}
    broken = True
    for at, value in points:
        if not math.isfinite(value):
            broken = True
            continue
        column = bisect_right(edges, at)
        joined.setdefault(column, not broken)
        found.setdefault(column, []).append(value)
        broken = False
    return [(c, v[0], min(v), max(v), v[-1], joined[c]) for c, v in found.items()]


@settings(max_examples=200)
@given(
    points=st.lists(st.tuples(st.integers(0, 40), values), max_size=50),
    columns=st.integers(1, 12),
    window=st.tuples(st.integers(-5, 40), st.integers(1, 30)),
)
def test_columns_hold_first_lowest_highest_and_last(
    points: list[tuple[int, float]], columns: int, window: tuple[int, int]
) -> None:
    points = sorted(points, key=lambda point: point[0])
    x, y = [float(at) for at, _ in points], [value for _, value in points]
    start, end = float(window[0]), float(sum(window))
    curve = reduce(points_of(array(x), array(y)), columns, start, end)
    told = list(zip(curve.place, curve.first, curve.low, curve.high, curve.last, curve.joined, strict=True))
    expected = reduced(x, y, columns, start, end)
    assert [(int(row[0]), bool(row[5])) for row in told] == [(row[0], row[5]) for row in expected]
    np.testing.assert_allclose(
        np.array([row[1:5] for row in told], dtype=np.float64),
        np.array([row[1:5] for row in expected], dtype=np.float64),
        rtol=1e-9, atol=1e-9,
    )  # fmt: skip


@pytest.mark.behaviour("million-steps-spike-step")
@pytest.mark.parametrize("zoom", [1, 10, 1000, 100_000])
def test_a_spike_of_one_step_in_a_million_shows_at_every_zoom(zoom: int) -> None:
    x, y = np.arange(1e6), np.ones(1_000_000)
    y[500_000] = 9.0
    half = 5e5 / zoom
    curve = reduce(points_of(x, y), 60, 5e5 - half, 5e5 + half)
    assert curve.high.max() == 9.0
    assert rasterize(curve, 60, 28, 0.0, 10.0, "dashed")[:4].any()  # near the top


# -- dots ----------------------------------------------------------------------------------------------------------


def one_a_column(*heights: float | None) -> Columns:
    there = [(place, value) for place, value in enumerate(heights) if value is not None]
    y = array([value for _, value in there])
    joined = [place > 0 and heights[place - 1] is not None for place, _ in there]
    return Columns(np.array([place for place, _ in there]), y, y, y, y, np.array(joined))


def drawn(curve: Columns, columns: int, rows: int, dash: str = "solid") -> list[str]:
    dots = rasterize(curve, columns, rows, 0.0, rows - 1.0, dash)
    return ["".join("#" if dot else "." for dot in row) for row in dots]


def test_neighbours_are_joined_and_gaps_are_not() -> None:
    assert drawn(one_a_column(0, 0, None, 3, 3), 5, 4) == ["...##", ".....", ".....", "##..."]
    assert drawn(one_a_column(0, 4), 2, 5) == [".#", ".#", "##", "#.", "#."]


def test_a_line_over_empty_columns_is_straight() -> None:
    y = array([0.0, 4.0])
    curve = Columns(np.array([0, 4]), y, y, y, y, np.array([False, True]))
    picture = rasterize(curve, 5, 5, 0.0, 4.0, "solid")
    assert all(picture[4 - place, place] for place in range(5))
    assert not picture[0, 0]
    assert not picture[4, 4]


@pytest.mark.behaviour("nan-gap-mark-count")
def test_a_lone_point_is_drawn_even_in_the_gap_of_a_dash() -> None:
    assert drawn(one_a_column(None, None, None, None, 2), 6, 3, "dashed")[0] == "....#."
    flat = drawn(one_a_column(*[1.0] * 12), 12, 3, "dashed")[1]
    assert flat == "####..####.."


def test_a_range_of_one_value_is_drawn_where_it_is() -> None:
    scale = fit_scale(2.0, 2.0, 3, log=False)
    assert scale.low < 2.0 < scale.high


def test_dots_become_the_braille_of_unicode() -> None:
    dots = np.zeros((4, 4), dtype=np.bool_)
    dots[0, 0] = dots[3, 1] = dots[1, 3] = True
    codes = braille.characters(dots)
    # Unicode names braille patterns by dots: 1 2 3 7 down the left, 4 5 6 8 down the right.
    assert [chr(code) for code in codes[0]] == ["\N{BRAILLE PATTERN DOTS-18}", "\N{BRAILLE PATTERN DOTS-5}"]


# -- scales and axes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [
        (0.0, 0.1, "0"), (0.35, 0.05, "0.35"), (1.0, 0.5, "1.0"), (1200.0, 200.0, "1.2k"), (2000.0, 500.0, "2.0k"),
        (3.4e-5, 1e-6, "3.4e-5"), (-2e-4, 1e-4, "-0.0002"), (5e-4, 5e-4, "0.0005"), (1e6, 1e5, "1.0M"),
        (40.0, 20.0, "40"), (5e20, 1e20, "5e20"),
    ],
)  # fmt: skip
def test_labels_are_short_and_as_precise_as_their_distance(value: float, step: float, text: str) -> None:
    assert label(value, step) == text


@given(low=st.floats(-1e9, 1e9), span=st.floats(1e-2, 1e9), ticks=st.integers(1, 12))
def test_a_scale_holds_its_range_and_not_much_more(low: float, span: float, ticks: int) -> None:
    high = low + span
    scale = fit_scale(low, high, ticks, log=False)
    slack = 1e-6 * max(abs(low), abs(high), span)
    assert scale.low <= low + slack
    assert scale.high >= high - slack
    assert scale.high - scale.low <= (high - low) * 3.6 + slack
    assert all(scale.low - slack <= at <= scale.high + slack for at, _ in scale.ticks)
    assert len(scale.ticks) >= 2


def test_a_scale_has_two_ticks_and_no_digit_more_than_tells_them_apart() -> None:
    assert [text for _, text in fit_scale(1.9993, 2.0006, 3, log=False).ticks] == ["1.9995", "2.0000", "2.0005"]
    assert [text for _, text in fit_scale(2.0, 2.0, 3, log=False).ticks] == ["1", "2", "3"]
    assert [text for _, text in fit_scale(-0.6, 0.6, 3, log=True).ticks] == ["0.316", "1", "3.16"]


def test_a_logarithmic_scale_has_decades() -> None:
    heights = height(array([0.001, 1.0, 0.0, -3.0, 1000.0]), log=True)
    assert np.isnan(heights).tolist() == [False, False, True, True, False]
    scale = fit_scale(-3.0, 3.0, 3, log=True)
    assert [text for _, text in scale.ticks] == ["0.01", "1", "100"]


def test_the_largest_numbers_have_a_scale() -> None:
    scale = fit_scale(-1.7e308, 1.7e308, 3, log=False)
    assert math.isfinite(scale.high - scale.low)
    assert scale.ticks


def test_an_end_that_was_set_stays_where_no_value_reaches_it() -> None:
    over, under = fit_scale(0.1, 0.4, 3, log=False, bottom=5.0), fit_scale(0.1, 0.4, 3, log=False, top=-5.0)
    assert (over.low, under.high) == (5.0, -5.0)
    assert (over.high > 5.0, under.low < -5.0) == (True, True)


def test_hours_are_told_as_clocks_tell_them() -> None:
    assert [clock(s) for s in (0, 45, 90, 720)] == ["0s", "45s", "1m30", "12m"]
    assert [clock(s) for s in (4800, 86400 * 2 + 3600 * 3)] == ["1h20", "2d 3h"]
    assert [text for _, text in x_ticks("time", 0.0, 7200.0, 4)] == ["0s", "30m", "1h", "1h30", "2h"]
    assert [text for _, text in x_ticks("epoch", 0.0, 41.0, 4)] == ["0", "20", "40"]


def test_a_growing_axis_moves_seldom() -> None:
    ends = [roomy_end(0.0, float(step)) for step in range(100, 1000)]
    assert all(end >= step for end, step in zip(ends, range(100, 1000), strict=True))
    assert len(set(ends)) == 91


def test_a_window_zooms_in_place_and_stays_within_the_axis() -> None:
    view = Viewport(0.0, 100.0).zoom(2.0, at=20.0)
    assert (view.start, view.end) == (10.0, 60.0)  # 20 is still at a fifth of the width
    assert view.pan(-1.0).start == 0.0
    assert view.pan(9.0).end == 100.0
    assert view.zoom(0.1, None).whole


def test_a_window_at_the_end_goes_along_with_it() -> None:
    at_end = Viewport(0.0, 100.0).zoom(2.0, at=100.0)
    assert (at_end.grow(0.0, 130.0).start, at_end.grow(0.0, 130.0).end) == (80.0, 130.0)
    elsewhere = Viewport(0.0, 100.0).zoom(2.0, at=0.0)
    assert (elsewhere.grow(0.0, 130.0).start, elsewhere.grow(0.0, 130.0).end) == (0.0, 50.0)


def test_train_and_validation_share_a_chart() -> None:
    names = ["score", "train.loss", "gpu/power", "val_loss", "eval/loss", "loss", "accuracy/test", "gpu/memory", "lr"]
    assert grouped(names) == {
        "score": [("score", "score")],
        "loss": [("train", "train.loss"), ("validation", "val_loss"), ("validation", "eval/loss"), ("logged", "loss")],
        "gpu/power": [("logged", "gpu/power")],
        "gpu/memory": [("logged", "gpu/memory")],
        "accuracy": [("test", "accuracy/test")],
        "lr": [("logged", "lr")],
    }
    later = ["eval/time", "lr", "train/loss", "eval/accuracy", "score"]
    assert list(grouped(later)) == ["score", "loss", "time", "lr", "accuracy"]
    assert chart_and_role("train_loss_step") == ("loss", "logged")
    assert chart_and_role("train_loss_epoch") == ("loss", "train")
    assert chart_and_role("training") == ("training", "logged")
    assert chart_and_role("val loss") == ("loss", "validation")
