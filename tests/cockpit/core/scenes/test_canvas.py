"""The world in braille: where dots lie, what is clipped, what is left out."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.core.scenes.canvas import draw
from cockpit.core.scenes.cells import Row
from engines.contract.scenes import Box, Image, Line, Point, Text, View

Item = Line | Box | Text | Image


def picture(items: list[Item], low: Point, high: Point, width: int, height: int) -> list[str]:
    return ["".join(character for character, _ in row) for row in draw(View(low, high, items), width, height)]


def dots(rows: list[str]) -> set[tuple[int, int]]:
    """(column, row) of every dot, by the Unicode numbering of braille patterns."""
    places = {0: (0, 0), 1: (0, 1), 2: (0, 2), 3: (1, 0), 4: (1, 1), 5: (1, 2), 6: (0, 3), 7: (1, 3)}
    return {
        (2 * x + places[bit][0], 4 * y + places[bit][1])
        for y, row in enumerate(rows)
        for x, character in enumerate(row)
        for bit in range(8)
        if 0x2800 <= ord(character) <= 0x28FF and ord(character) - 0x2800 >> bit & 1
    }


def test_a_point_lies_where_it_should_and_y_grows_upwards() -> None:
    # 4 × 2 cells are 8 × 8 dots, a world of 7 × 7 has a dot at every whole number
    for x, y in ((0, 0), (7, 0), (3, 5)):
        assert dots(picture([Line([(x, y)])], (0, 0), (7, 7), 4, 2)) == {(x, 7 - y)}


def test_a_diagonal_is_one_dot_a_column() -> None:
    assert dots(picture([Line([(0, 0), (7, 7)])], (0, 0), (7, 7), 4, 2)) == {(k, 7 - k) for k in range(8)}


@pytest.mark.parametrize("size", [(30, 20), (60, 20), (20, 40)])
def test_a_circle_stays_round(size: tuple[int, int]) -> None:
    around = [(math.cos(angle / 50), math.sin(angle / 50)) for angle in range(315)]
    found = dots(picture([Line(around)], (-1, -1), (1, 1), *size))
    wide, high = (max(place[axis] for place in found) - min(place[axis] for place in found) for axis in (0, 1))
    assert abs(wide - high) <= 1
    assert max(wide, high) + 1 == min(2 * size[0], 4 * size[1])


def test_a_line_through_the_picture_is_cut_at_its_edges() -> None:
    inside = dots(picture([Line([(0, 3), (7, 3)])], (0, 0), (7, 7), 4, 2))
    assert dots(picture([Line([(-1e9, 3), (1e9, 3)])], (0, 0), (7, 7), 4, 2)) == inside
    assert dots(picture([Line([(-5, 20), (20, 20)])], (0, 0), (7, 7), 4, 2)) == set()


def test_what_cannot_be_drawn_is_left_out() -> None:
    wild: list[Item] = [
        Line([]), Line([(1e308, -1e308), (-1e308, 1e308)]), Box(-1e308, 0, 1e308, 1e308, filled=True),
        Text(1e300, 0, "x"), Image(0, 0, 1, 1, 0, b"abc"), Image(0, 0, 1, 1, 4, b"abc"), Image(0, 0, 0, 0, 1, b"abc"),
        Image(0, 0, -1, -1, 1, b"abc"),
    ]  # fmt: skip
    for item in wild:
        assert picture([item], (0, 0), (7, 7), 4, 2) == ["    "] * 2, item
    for low, high in (((0, 0), (0, 1)), ((1, 1), (0, 0)), ((-1e300, 0), (1e300, 1))):
        assert picture([Line([(0, 0)])], low, high, 4, 2) == ["    "] * 2
    assert draw(View((0, 0), (1, 1)), 0, 5) == []


number = st.floats(allow_nan=False, allow_infinity=False)
point = st.tuples(number, number)
items = st.one_of(
    st.builds(Line, st.lists(point, max_size=4)),
    st.builds(Box, number, number, number, number, st.just("first"), st.booleans()),
    st.builds(Text, number, number, st.text(max_size=8)),
    st.builds(Image, number, number, number, number, st.integers(-2, 4), st.binary(max_size=30)),
)


@settings(deadline=None)
@given(st.lists(items, max_size=4), point, point, st.integers(1, 12), st.integers(1, 6))
def test_whatever_an_engine_sends_the_picture_keeps_its_size(
    drawn: list[Item], low: Point, high: Point, width: int, height: int
) -> None:
    rows: list[Row] = draw(View(low, high, drawn), width, height)
    assert [len(row) for row in rows] == [width] * height
    assert all(len(character) == 1 and character.isprintable() for row in rows for character, _ in row)


def test_text_has_its_middle_at_its_place_and_cannot_steer_the_terminal() -> None:
    rows = picture([Text(3.5, 0, "a\x1b[31mb\x07c\x9bd")], (0, 0), (7, 7), 4, 2)
    assert rows == ["    ", "abc "]
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for row in rows for character in row)


def test_a_box_is_an_outline_or_full() -> None:
    corners = ((0, 0), (7, 7))
    frame = dots(picture([Box(1, 1, 4, 3)], *corners, 4, 2))
    expected = {(x, y) for x in range(1, 6) for y in range(3, 7)}
    assert frame == {(x, y) for x, y in expected if x in (1, 5) or y in (3, 6)}
    assert dots(picture([Box(1, 1, 4, 3, filled=True)], *corners, 4, 2)) == expected


def test_an_image_shows_two_pixels_a_cell() -> None:
    red, green, blue, white = b"\xff\0\0", b"\0\xff\0", b"\0\0\xff", b"\xff\xff\xff"
    rows = draw(View((0, 0), (3, 3), [Image(0, 0, 3, 3, 2, red + green + blue + white)]), 2, 1)
    assert rows == [[("▀", "rgb:#ff0000:#0000ff"), ("▀", "rgb:#00ff00:#ffffff")]]


def test_the_kind_of_a_cell_is_that_of_what_was_drawn_last() -> None:
    rows = draw(View((0, 0), (1, 3), [Line([(0, 0)], "first"), Line([(1, 3)], "second")]), 1, 1)
    assert rows[0][0][1] == "second"
