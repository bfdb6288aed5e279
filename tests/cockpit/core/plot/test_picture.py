"""Lines and the pictures made of them, read as text."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any
from unicodedata import combining, east_asian_width

import numpy as np
import pytest

from cockpit.core.plot.axis import AxisName, extent
from cockpit.core.plot.cells import Cells
from cockpit.core.plot.frame import STYLE, Sign, View
from cockpit.core.plot.glyphs import ASCII, UNICODE
from cockpit.core.plot.groups import RUN_ROLES, Role
from cockpit.core.plot.lines import ChartLines, Look, Member
from cockpit.core.plot.picture import paint
from cockpit.core.series import Floats, Series

NAN = math.nan


def series(name: str, y: list[float], step: Floats | None = None, **more: Any) -> Series:
    x = np.arange(float(len(y))) if step is None else step
    return Series(name, x, x / 10, 1e9 + x * 60, np.array(y), **more)


def picture(
    *members: Member, look: Look | None = None, end: float = 10.0, size: tuple[int, int] = (50, 12),
    cursor: float | None = None, signs: tuple[Sign, ...] = (), ascii: bool = False,
) -> Cells:  # fmt: skip
    look = look or Look()
    lines = ChartLines().make(members, look)
    glyphs = ASCII if ascii else UNICODE
    return paint("loss", lines, signs, View(look.axis, 0.0, end, cursor), size, glyphs, log=look.log)


def rows(cells: Cells) -> list[str]:
    return ["".join(text for text, _ in cells.row(y)) for y in range(len(cells.texts))]


def styles(cells: Cells) -> set[str]:
    names = list(STYLE)
    return {names[style] for style in np.unique(cells.styles)}


def test_values_at_the_end_and_at_the_cursor() -> None:
    train, validation = series("train.loss", [9, 8, 7, 6.5]), series("val.loss", [5, 4, 3], np.array([1.0, 2.0, 3.0]))
    members: list[Member] = [("train", train), ("validation", validation)]
    wide = rows(picture(*members, size=(60, 12)))[0].split()
    assert wide[3:] == ["━", "train", "6.500", "╍", "validation", "3", "─╮"]
    assert rows(picture(*members, size=(46, 12)))[0].split()[3:] == ["━", "train", "6.500", "╍", "val", "3", "─╮"]
    narrow = rows(picture(*members, size=(40, 12)))[0].split()
    assert narrow[3:] == ["━", "6.500", "╍", "3", "─╮"]  # no room for words
    assert rows(picture(*members, cursor=1.1, size=(40, 12)))[0].split()[3:7] == ["━", "8", "╍", "5"]
    assert rows(picture(*members, cursor=0.0, size=(40, 12)))[0].split()[3:7] == ["━", "9", "╍", "—"]


def test_of_runs_all_values_are_told_or_none() -> None:
    runs: list[Member] = [(role, series("score", [0.25, 0.5])) for role in RUN_ROLES[:3]]
    assert rows(picture(*runs, size=(50, 12)))[0].split()[3:-1] == ["●", "0.5000", "■", "0.5000", "▲", "0.5000"]
    assert "0.5000" not in rows(picture(*runs, size=(40, 12)))[0]


def test_wild_steps_do_not_flatten_the_epochs_they_lie_behind() -> None:
    wild = [1.0 + (step % 20 == 0) * 99 for step in range(400)]  # a column has several steps: each has a wild one
    epochs = series("train.loss", [1.5, 0.5], np.array([200.0, 400.0]))
    text = rows(picture(("train", epochs), ("logged", series("loss", wild)), end=400.0))
    labels = [float(row[1:8]) for row in text[1:-2] if row[1:8].strip()]
    assert max(labels) <= 2
    assert text[1][9:-2].strip()  # and yet they are seen, at the upper edge


@pytest.mark.behaviour("nan-gap-mark-count")
def test_what_is_not_finite_is_a_gap_with_a_mark_and_a_count() -> None:
    cells = picture(("logged", series("loss", [1, NAN, NAN, math.inf, 1, 1])), ascii=True)
    text = rows(cells)
    assert "3 not finite" in text[-1]
    assert text[-2].count("x") == 3
    line = next(row for row in text[1:-2] if "*" in row)
    assert line[9 : 9 + 39].strip() == "*" + " " * 14 + "*" * 4 + "*"  # 39 columns for 10 steps, joined from 4 to 5


def test_a_chart_without_a_value_has_no_axis() -> None:
    empty = rows(picture(("train", series("loss", []))))
    assert [row.strip("│ ") for row in empty[1:-1] if row.strip("│ ")] == ["no value yet"]
    assert set(empty[-1]) == set("╰─╯")


def test_a_chart_of_nothing_finite_says_so() -> None:
    assert "no finite values here" in "\n".join(rows(picture(("logged", series("loss", [NAN, NAN])))))
    assert "no value yet" in "\n".join(rows(picture(("logged", series("loss", [])))))


def test_on_a_logarithmic_scale_what_is_not_above_zero_is_counted() -> None:
    text = rows(picture(("logged", series("loss", [10, 0, -1, 1000])), look=Look(log=True)))
    assert "2 not above 0" in text[-1]
    assert any(row.startswith("│    100") for row in text)
    assert "not above" not in "".join(rows(picture(("logged", series("loss", [10, 0, -1, 1000])))))


def test_minus_infinity_is_not_finite_and_not_a_value_below_zero() -> None:
    (line,) = ChartLines().make([("logged", series("loss", [-math.inf, 1, -1, 0, NAN]))], Look(log=True))
    assert line.bad.tolist() == [0, 4]
    assert line.hidden.tolist() == [2, 3]
    assert (line.points.x.tolist(), line.points.y.tolist()) == ([1], [0])


@pytest.mark.behaviour("smoothing-unbiased-start-never", "title-says-what-status-says")
def test_raw_values_stay_faint_behind_the_smoothed_ones_and_are_what_is_told() -> None:
    cells = picture(("train", series("train.loss", [0, 0, 0, 8])), look=Look(smoothing=0.9))
    assert {"train", "train-faint"} <= styles(cells)
    assert "8" in rows(cells)[0]
    assert "train-faint" not in styles(picture(("train", series("train.loss", [0, 0, 0, 8]))))


def test_every_step_gives_way_to_the_epochs_it_belongs_to() -> None:
    steps, epochs = series("loss", [3, 2, 1]), series("train.loss", [2.5, 1.5])
    assert "step" not in styles(picture(("logged", steps)))
    assert {"step", "train"} <= styles(picture(("logged", steps), ("train", epochs)))


def test_old_branches_are_faint_and_known_by_step_only() -> None:
    one = series("loss", [3, 2, 1], old=((np.array([1.0, 2.0]), np.array([9.0, 9.0])),))
    assert "old" in styles(picture(("logged", one)))
    assert "old" not in styles(picture(("logged", one), look=Look(axis="epoch"), end=1.0))


def test_axes() -> None:
    one = series("loss", [3, 2, 1, 1, 1])
    assert " 2 " in rows(picture(("logged", one), end=4.0))[-1]
    by_epoch = series("loss", [3, 2, 1], np.array([0.0, 100.0, 200.0]))
    assert " 10 " in rows(picture(("logged", by_epoch), look=Look(axis="epoch"), end=20.0))[-1]
    by_time = rows(picture(("logged", one), look=Look(axis="time", origin=1e9), end=240.0))[-1]
    assert " 2m " in by_time


def test_signs_stand_where_they_belong_later_ones_on_top() -> None:
    signs = (Sign("edit", 5.0), Sign("best", 5.0), Sign("resume", 50.0))
    axis = rows(picture(("logged", series("loss", [1, 2])), signs=signs))[-2]
    assert axis.index("★") == 9 + 19  # half of 39 columns
    assert "▲" not in axis
    assert "↻" not in axis  # out of view


def test_points_out_of_order_and_without_a_place() -> None:
    odd = series("loss", [1, 2, 3], np.array([2.0, NAN, 0.0]))
    (line,) = ChartLines().make([("logged", odd)], Look())
    assert line.x.tolist() == [0.0, 2.0]
    assert line.raw.tolist() == [3.0, 1.0]


@pytest.mark.behaviour("eight-runs-told-apart")
def test_lines_are_told_apart_without_colour() -> None:
    flat, other = [1.0] * 11, [2.0] * 11
    text = rows(picture(("train", series("train.loss", flat)), ("validation", series("val.loss", other)), ascii=True))
    plot = "\n".join(row[9:-2] for row in text[1:-2])
    assert "*" * 20 in plot
    assert "oooo  oooo" in plot


@pytest.mark.parametrize("size", [(0, 0), (1, 1), (5, 2), (16, 5), (12, 40), (300, 3)])
def test_any_size_can_be_painted(size: tuple[int, int]) -> None:
    cells = picture(("logged", series("loss", [1, NAN, 3])), size=size, signs=(Sign("best", 1.0),), cursor=1.0)
    assert cells.texts.shape == size[::-1]


@pytest.mark.behaviour("nan-both-infinities-place")
@pytest.mark.parametrize("extreme", [[-1.7e308, 1.7e308], [5e-324, 0.0], [1e300, 1e300], [0.0, -0.0], [1e-300, 1e300]])
def test_any_number_can_be_painted(extreme: list[float]) -> None:
    for log in (False, True):
        for smoothing in (0.0, 0.9):
            cells = picture(("logged", series("loss", extreme)), look=Look(log=log, smoothing=smoothing))
            assert rows(cells)[0].startswith("╭─ loss")


def test_changes_are_the_cells_that_differ() -> None:
    before, after = Cells.blank(10, 3), Cells.blank(10, 3)
    after.write(4, 1, "ab", STYLE["train"])
    after.write(2, 2, " ", STYLE["axis"])
    assert after.changes(before) == [(1, 4, 6), (2, 2, 3)]
    assert after.row(1) == [("    ", 0), ("ab", STYLE["train"]), ("    ", 0)]


def width(text: str) -> int:
    """In cells, by what Unicode says of its characters."""
    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in text)


@pytest.mark.parametrize(
    ("x", "text", "shown"),
    [
        (0, "a漢b", "a漢b  "), (4, "漢字", "    漢"), (3, "漢字", "   漢 "), (-1, "漢字", " 字   "),
        (1, "x\u0302y", " x\u0302y   "), (5, "漢", "      "), (9, "漢", "      "),
    ],
)  # fmt: skip
def test_wide_characters_take_two_cells_and_are_cut_at_their_borders(x: int, text: str, shown: str) -> None:
    cells = Cells.blank(6, 1)
    cells.write(x, 0, text, 0)
    assert rows(cells) == [shown]
    assert width(shown) == 6


def test_what_is_written_over_half_a_wide_character_leaves_no_other_half() -> None:
    for x, shown in ((0, "- b漢c"), (1, " -b漢c"), (3, "漢b- c"), (4, "漢b -c")):
        cells = Cells.blank(6, 1)
        cells.write(0, 0, "漢b漢c", 0)
        cells.write(x, 0, "-", 1)
        assert rows(cells) == [shown]


def test_of_a_wide_character_both_halves_are_sent() -> None:
    before, after = Cells.blank(6, 3), Cells.blank(6, 3)
    for y, (old, new) in enumerate((("a漢", "a字"), ("漢漢", "漢xx"), ("漢b", "漢b"))):
        before.write(0, y, old, 0)
        after.write(0, y, new, 0)
    after.styles[2, 1] = 1
    assert after.changes(before) == [(0, 1, 3), (1, 2, 4), (2, 0, 2)]


@pytest.mark.parametrize(
    "name", ["損失関数", "損失 · 検証データ全体の平均値を示す長い名前", "loss/θ\u0302", "épreuve", "각도"]
)
@pytest.mark.parametrize("columns", [16, 21, 38, 39, 61])
def test_a_name_of_any_script_keeps_the_frame_straight(name: str, columns: int) -> None:
    members: list[Member] = [("train", series("train.loss", [9, 6.5])), ("validation", series("val.loss", [5, 3]))]
    lines = ChartLines().make(members, Look())
    title = rows(paint(name, lines, (), View("step", 0.0, 10.0), (columns, 12), UNICODE))[0]
    assert width(title) == columns
    assert title.startswith(f"╭─ {name[:2]}")
    assert title.endswith("─╮")
    if columns > 60:
        assert title.split(" ━ ")[0].rstrip("─ ")[3:] in (name, name.split(" · ")[0])


def labels(cells: Cells) -> list[str]:
    """Of the y axis, from the top down."""
    return [words for row in rows(cells)[1:-2] if (words := row[1:8].strip())]


@pytest.mark.behaviour("labels-differ-axes-reach-limits")
@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (9.2481e-5, 9.2489e-5, ["9.2484", "9.2486"]),
        (0.9602, 0.9618, ["0.9610", "0.9615"]),
        (0.96125, 0.96131, ["0.96126", "0.96128"]),
        (-3.20001e-7, -3.20009e-7, None), (1e-300, 2e-300, None), (123456.1, 123456.4, None),
        (1 + 1e-9, 1 + 3e-9, None), (-5e12, 7e12, None), (0.1, 0.1 + 1e-7, None),
    ],
)  # fmt: skip
def test_labels_of_the_y_axis_are_whole_and_all_different(low: float, high: float, said: list[str] | None) -> None:
    cells = picture(("logged", series("loss", [low, high, low])), end=2.0, size=(50, 18))
    found = labels(cells)
    assert len(found) >= 2
    assert len(set(found)) == len(found)
    assert max(map(len, found)) <= 7
    assert not any(re.search(r"e[-+]?$", words) for words in found)
    if said is not None:
        assert set(said) <= set(found)


@pytest.mark.behaviour("labels-differ-axes-reach-limits")
def test_a_common_power_of_ten_stands_below_the_labels() -> None:
    text = rows(picture(("logged", series("loss", [9.2481e-5, 9.2489e-5])), end=1.0, size=(50, 18)))
    assert "×1e-5" in text[-2][:9]
    assert "×1e" not in rows(picture(("logged", series("loss", [1.0, 2.0])), end=1.0))[-2]


@pytest.mark.behaviour("steps-are-smoothed-epochs-never")
def test_the_range_is_that_of_smoothed_steps_and_epochs_and_not_of_raw_ones() -> None:
    noise = [1.0 + (-1) ** step * 0.9 for step in range(400)]
    smooth = picture(("logged", series("loss", noise)), look=Look(smoothing=0.98), end=400.0)
    assert all(0.5 < float(words) < 1.95 for words in labels(smooth)[1:-1])
    assert max(map(float, labels(picture(("logged", series("loss", noise)), end=400.0)))) >= 1.9
    assert {"train-faint", "train"} <= styles(smooth)  # the raw ones are there all the same


@pytest.mark.behaviour("steps-are-smoothed-epochs-never")
def test_values_per_epoch_are_never_smoothed() -> None:
    """Whatever they are called; a metric that has several in an epoch is smoothed."""
    numbers = np.arange(1.0, 5.0)
    each = Series("score", numbers * 10, numbers, numbers, np.array([0.0, 0.0, 0.0, 8.0]))
    roles: tuple[Role, ...] = ("score", "train", "logged")
    for role in roles:
        (line,) = ChartLines().make([(role, each)], Look(smoothing=0.98))
        assert line.points.y.tolist() == [0, 0, 0, 8]
    halves = replace(each, epoch=numbers / 2)
    *_, line = ChartLines().make([("logged", halves)], Look(smoothing=0.98))
    assert 0 < line.points.y[-1] < 8


@pytest.mark.behaviour("labels-differ-axes-reach-limits")
@pytest.mark.parametrize(
    ("limits", "values", "bounds"),
    [
        ((0.0, 100.0), [41.0, 42.0], (0, 100)),
        ((0.0, None), [1.99, 2.005], (0, 2.0)),
        ((None, None), [41, 42], (41, 42)),
    ],
)
def test_an_axis_reaches_its_limits(
    limits: tuple[float | None, float | None], values: list[float], bounds: tuple[float, float]
) -> None:
    cells = picture(("logged", replace(series("busy %", values), limits=limits)), end=1.0)
    found = [float(words) for words in labels(cells)]
    assert (min(found), max(found)) == bounds


@pytest.mark.behaviour("labels-differ-axes-reach-limits")
def test_a_lone_point_is_a_sign() -> None:
    assert sum(row.count("●") for row in rows(picture(("score", series("score", [0.5]))))) == 1
    gaps = picture(("score", series("score", [0.5, NAN, 0.6, NAN, 0.7, 0.8])))
    assert sum(row.count("●") for row in rows(gaps)) == 2
    assert not any("●" in row for row in rows(picture(("score", series("score", [0.5, 0.6])))))


@pytest.mark.behaviour("fork-shows-parents-curve")
@pytest.mark.parametrize("axis", ["step", "epoch", "time"])
def test_what_led_to_a_fork_is_drawn_faint_on_every_axis(axis: AxisName) -> None:
    places = np.arange(10.0)
    parent = Series("loss", places, places / 10, 1e9 + places, np.full(10, 3.0))
    own = Series("loss", places + 10, places / 10 + 1, 1e9 + 500 + places, np.full(10, 1.0), before=parent)
    look = Look(axis=axis, origin=1e9 if axis == "time" else 0.0)
    before, line = ChartLines().make([("logged", own)], look)
    assert (before.behind, before.style, len(before.x)) == (True, "old", 10)
    assert before.x[-1] < line.x[0]
    start, end = extent([own], axis)
    assert (start, end) == {"step": (0, 19), "epoch": (0, 1.9), "time": (1e9, 1e9 + 509)}[axis]


@pytest.mark.parametrize("ascii", [False, True])
def test_the_band_of_a_mean_lies_between_its_edges_behind_the_lines(ascii: bool) -> None:
    level = np.full(11, 1.0)
    mean = series("1:score", [5.0] * 11, band=(2 * level, 8 * level))
    ramp = series("2:score", [float(value) for value in range(11)])
    cells = picture(("run-1", mean), ("run-2", ramp), ascii=ascii)
    banded = np.flatnonzero((cells.styles == STYLE["run-1-band"]).any(axis=1))
    dots = 1 if ascii else 4  # a character; nine rows of them from 10 to 0, below the frame
    at = {value: 1 + round((10 - value) / 10 * (9 * dots - 1)) // dots for value in (8, 5, 2)}
    assert (banded.min(), banded.max()) == (at[8], at[2])
    assert "run-2-band" not in styles(cells)
    assert (cells.styles[at[5]] == STYLE["run-1"]).sum() > 20  # the line is over its band
    alone = rows(picture(("run-1", mean), ascii=ascii))
    assert {row[1:8].strip() for row in alone} & {"8", "2"}  # the range is that of the band
    log = ChartLines().make(
        [("run-1", series("1:loss", [1.0, 10.0], band=(level[:2] * 0, level[:2] * 100)))], Look(log=True)
    )
    assert log[0].band is not None
    assert len(log[0].band[0]) == 0  # an edge that is not above 0 has no place on a logarithmic scale


def test_a_band_is_smoothed_as_its_line() -> None:
    y = [0.0, 1.0] * 20
    one = series("1:score", y, band=(np.array(y) - 1, np.array(y) + 1))
    line = ChartLines().make([("run-1", one)], Look(smoothing=0.9))[0]
    assert line.band is not None
    assert np.allclose(line.band[1], line.points.y - 1)
    assert np.allclose(line.band[2], line.points.y + 1)


@pytest.mark.behaviour("outliers-leave-the-range")
def test_outliers_are_left_out_of_the_range_where_that_is_asked_for() -> None:
    wild = series("loss", [1.0 + (step == 200) * 1e6 for step in range(400)])
    (line,) = ChartLines().make([("logged", wild)], Look())
    view = View("step", 0.0, 400.0)
    tops = []
    for trimmed in (False, True):
        cells = paint("loss", (line,), (), view, (50, 12), UNICODE, trimmed=trimmed)
        tops.append(labels(cells)[0])
    assert tops[0].endswith("M")
    assert float(tops[1]) < 2
    assert rows(cells)[1][9:-2].strip()  # seen at the upper edge all the same


@pytest.mark.behaviour("range-and-axis-are-chosen")
@pytest.mark.parametrize("log", [False, True])
def test_a_range_that_was_set_is_that_of_the_chart_to_the_end(log: bool) -> None:
    (line,) = ChartLines().make([("logged", series("loss", [1.0, 3.0, 200.0, 2.0]))], Look(log=log))
    view = View("step", 0.0, 3.0)
    cells = paint("loss", (line,), (), view, (50, 14), UNICODE, log=log, ends=(1.0, 10.0))
    told = [float(label) for label in labels(cells)]
    assert max(told) == 10
    assert rows(cells)[1][1:8].strip() == "10"  # the upper edge
    assert min(told) >= 1
    assert rows(cells)[1][9:-2].strip()  # what is beyond is drawn at the edge
    above = paint("loss", (line,), (), view, (50, 14), UNICODE, log=log, ends=(1000.0, None))
    assert min(float(label.removesuffix("k")) for label in labels(above)) >= 1  # no value is there, and no error


def test_a_legend_cuts_no_label_of_the_axis() -> None:
    (line,) = ChartLines().make([("logged", series("loss", [1.0] * 41))], Look())
    view, signs = View("step", 0.0, 40.0), (Sign("edit", 20.0), Sign("best", 30.0))
    edge = rows(paint("loss", (line,), signs, view, (50, 12), UNICODE, legend=True))[-1]
    assert edge == "╰─ ▲ edit  ★ best ──────── 20 ────── 30 ───── 40 ╯"
