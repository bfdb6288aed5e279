"""What is sent against everything being sent: on a made-up terminal both leave the same picture."""

from __future__ import annotations

from unicodedata import east_asian_width

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.control import Control
from rich.segment import Segment
from rich.style import Style

from cockpit.terminal_picture import TerminalPicture

WIDTH, HEIGHT = 12, 2
ACCENT = "\u0301"
STYLES = (None, Style(bold=True), Style(color="red"))


class MadeUp:
    """A terminal: what is written stays; of a wide character that loses one half the other becomes a blank."""

    def __init__(self, rocket: int = 2, accent: int = 0) -> None:
        self.rocket, self.accent = rocket, accent
        """Cells that it takes for them."""
        self.cells: dict[tuple[int, int], tuple[str, Style | None]] = {}
        self.at = (0, 0)
        self.written = ""

    def obey(self, segments: list[Segment]) -> None:
        for segment in segments:
            if segment.control:
                (_, x, y) = segment.control[0]  # type: ignore[misc]
                self.at = (int(x), int(y))
            else:
                for character in segment.text.replace("\n", ""):
                    self._write(character, segment.style)

    def _write(self, character: str, style: Style | None) -> None:
        if character == ACCENT and not self.accent:
            x, y = self.at[0] - 1, self.at[1]
            letter, style = self.cells[x, y]
            self.cells[x, y] = (letter + character, style)
            return
        (x, y), wide = self.at, self.rocket == 2 if character == "🚀" else east_asian_width(character) == "W"
        for place, text in ((x, character), *([(x + 1, "")] if wide else [])):
            before = self.cells.get((place, y), (" ", None))
            if before[0] == "":
                self.cells[place - 1, y] = (" ", None)
            if self.cells.get((place + 1, y), (" ", None))[0] == "":
                self.cells[place + 1, y] = (" ", None)
            self.cells[place, y] = (text, style)
        self.at, self.written = (x + 1 + wide, y), self.written + character


Piece = tuple[int, int, str, Style | None]
pieces = st.tuples(
    st.integers(0, 5), st.integers(0, HEIGHT - 1), st.text(st.sampled_from("ab 漢字"), min_size=1, max_size=3),
    st.sampled_from(STYLES),
)  # fmt: skip

pairs = st.tuples(
    st.sampled_from((0, 2, 4)), st.integers(0, HEIGHT - 1),
    st.lists(st.sampled_from(["ab", "  ", "漢", "🚀", "be" + ACCENT]), min_size=1, unique=True).map("".join),
    st.sampled_from(STYLES),
)  # fmt: skip
"""Nothing loses one half: Textual writes a blank for the other one."""


def drawn(*pieces: Piece) -> list[Segment]:
    return [part for x, y, text, style in pieces for part in (Control.move_to(x, y).segment, Segment(text, style))]


@pytest.mark.behaviour("epoch-costs-few-kilobytes")
@given(st.lists(st.lists(pieces, max_size=4), max_size=6))
def test_what_is_left_out_stands_there_already(updates: list[list[Piece]]) -> None:
    whole, sparing, picture = MadeUp(), MadeUp(), TerminalPicture()
    for update in updates:
        whole.obey(drawn(*update))
        sparing.obey(list(picture.news(drawn(*update))))
        assert sparing.cells == whole.cells


@pytest.mark.behaviour("name-log-signs-terminal")
@pytest.mark.parametrize(("rocket", "accent"), [(1, 0), (2, 0), (2, 1)])
@given(updates=st.lists(st.lists(pairs, max_size=4), max_size=6))
def test_a_sign_that_a_terminal_takes_for_another_width_moves_and_leaves_nothing(
    updates: list[list[Piece]], rocket: int, accent: int
) -> None:
    """Compared where other letters stand, with the picture that signs as wide as they should be give."""
    expected, shown, picture = MadeUp(), MadeUp(rocket, accent), TerminalPicture()
    blank: list[Piece] = [(0, y, " " * WIDTH, None) for y in range(HEIGHT)]
    for update in [blank, *updates]:
        expected.obey(drawn(*update))
        shown.obey(list(picture.news(drawn(*update))))
        others = [place for place, (sign, _) in expected.cells.items() if sign not in ("🚀", "", "e" + ACCENT)]
        assert [shown.cells[place] for place in others] == [expected.cells[place] for place in others]


def test_only_segments_that_differ_are_sent_each_where_it_belongs() -> None:
    bold, picture = Style(bold=True), TerminalPicture()
    row = [
        Control.move_to(3, 1).segment,
        Segment("loss "),
        Segment("0.5", bold),
        Segment("  step "),
        Segment("7", bold),
    ]
    assert list(picture.news(row)) == row  # one after the other, moved to once
    assert list(picture.news(row)) == []
    assert list(picture.news([*row[:2], Segment("0.4", bold), *row[3:]])) == drawn((8, 1, "0.4", bold))
    assert list(picture.news([*row[:2], Segment("0.4"), Segment("  step 7")])) == [
        *drawn((8, 1, "0.4", None)), Segment("  step 7")
    ]  # fmt: skip
    picture.forget()
    assert list(picture.news(row)) == row
