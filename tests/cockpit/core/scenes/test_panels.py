"""Gauges, words and the timeline as cells, and their ASCII form."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from cockpit.core.ascii import in_ascii, needs_ascii, text_in_ascii
from cockpit.core.scenes.cells import Row
from cockpit.core.scenes.panels import draw_panel, draw_strip
from engines.contract.scenes import Gauge, Panel, Span, Strip, Words


def text(row: Row) -> str:
    return "".join(character for character, _ in row)


def gauge(width: int = 30, **values: float) -> str:
    """The bar of a gauge with the label `g`: what follows label, signs and their gaps."""
    (row,) = draw_panel(Panel("p", [Gauge(**({"label": "g", "value": None} | values))]), width, 1)  # type: ignore[arg-type]
    return text(row)[3:-2]


@pytest.mark.parametrize(
    ("values", "bar"),
    [
        ({"value": 0.0}, "·" * 20),
        ({"value": 1.0}, "█" * 20),
        ({"value": 0.5}, "█" * 10 + "·" * 10),
        ({"value": 0.25, "mark": 0.5}, "█" * 5 + "·" * 5 + "│" + "·" * 9),
        ({"value": 7.0}, "█" * 20),
        ({"value": -0.5, "low": -1.0}, "·" * 5 + "█" * 5 + "·" * 10),
        ({"value": 0.5, "low": -1.0, "other": -0.5}, "·" * 5 + "◆" + "·" * 4 + "█" * 5 + "·" * 5),
        ({"other": 1.0}, "·" * 19 + "◆"),
        ({"value": 0.5, "low": 1.0, "high": 1.0}, "·" * 20),
        ({"value": 1.0, "low": -1e308, "high": 1e308}, "·" * 20),
    ],
)
def test_a_gauge_is_a_bar_from_zero(values: dict[str, float], bar: str) -> None:
    assert gauge(25, **values) == bar


def test_a_difference_is_told_by_a_sign_and_a_wide_gauge_by_its_number() -> None:
    rows = draw_panel(Panel("p", [Gauge(label="jump", value=0.875, differs=True, signs=[Span("●", "first")])]), 44, 1)
    assert text(rows[0]).startswith("jump ● █")
    assert text(rows[0]).endswith(" 0.88 ≠")
    assert rows[0][-1] == ("≠", "bad")


def test_too_many_rows_stand_in_two_columns_where_there_is_room() -> None:
    panel = Panel("p", [Words([Span(f"row {number}")]) for number in range(6)])
    two = [text(row) for row in draw_panel(panel, 50, 3)]
    assert [line.split() for line in two] == [["row", str(k), "row", str(k + 3)] for k in range(3)]
    assert [text(row).strip() for row in draw_panel(panel, 30, 3)] == ["row 0", "row 1", "row 2"]
    assert len({len(line) for line in two}) == 1


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.builds(Words, st.lists(st.builds(Span, st.text(max_size=12)), max_size=3)),
            st.builds(
                Gauge, label=st.text(max_size=12), value=st.none() | st.floats(allow_nan=False, allow_infinity=False),
                other=st.none() | st.floats(allow_nan=False, allow_infinity=False), differs=st.booleans(),
            ),
        ),
        max_size=5,
    ),
    st.integers(1, 60),
    st.integers(1, 4),
)  # fmt: skip
def test_whatever_an_engine_sends_rows_keep_their_width(rows: list[Words | Gauge], width: int, height: int) -> None:
    drawn = draw_panel(Panel("p", rows), width, height)
    assert [sum(cell_len(character) for character, _ in row) for row in drawn] == [width] * height
    assert all(ord(character) >= 32 for row in drawn for character in text(row))
    for row in drawn:
        assert text(in_ascii(row)).isascii()
        assert len(text(in_ascii(row))) == width


def test_the_timeline_shows_every_peak_and_the_place() -> None:
    levels = [0.0] * 100
    levels[42] = 0.02
    rows = draw_strip(Strip("s", levels), position=50, total=101, width=10)
    assert text(rows[0]) == "    ▁     "
    assert text(rows[1]) == "━" * 5 + "█" + "─" * 4  # half-way rounds up
    assert text(draw_strip(Strip("s", [0.5, 1.0]), 0, 2, 4)[0]) == "▄▄██"
    assert text(draw_strip(None, 0, 0, 4)[1]) == "────"
    assert draw_strip(None, 3, 9, 0) == [[], []]


def test_ascii_keeps_what_is_told() -> None:
    row = [
        ("⣿", "plain"),
        ("⠁", "quiet"),
        ("█", "first"),
        ("·", "faint"),
        ("│", "plain"),
        ("≠", "bad"),
        ("語", "x"),
        ("", "x"),
    ]
    assert text(in_ascii(row)) == "*.=.|#? "
    assert text(in_ascii([("▀", "rgb:#000000:#000000"), ("▀", "rgb:#ffffff:#ffffff")])) == " @"
    assert text_in_ascii("● playing ×2 …") == "* playing x2 ~"


@pytest.mark.parametrize(
    ("environment", "encoding", "expected"),
    [
        ({"TERM": "xterm-256color"}, "utf-8", False), ({"TERM": "screen"}, "UTF-8", False),
        ({"TERM": "linux"}, "utf-8", True), ({"TERM": "dumb"}, "utf-8", True), ({}, "utf-8", True),
        ({"TERM": "xterm"}, "ascii", True), ({"TERM": "vt100"}, "utf-8", True),
        ({"TERM": "xterm", "LC_ALL": "C"}, "utf-8", True),
        ({"TERM": "xterm", "LANG": "C", "LC_CTYPE": "C.UTF-8"}, "utf-8", True),
    ],
)  # fmt: skip
def test_terminals_that_need_it_get_ascii(environment: dict[str, str], encoding: str, expected: bool) -> None:
    assert needs_ascii(environment, encoding) is expected
