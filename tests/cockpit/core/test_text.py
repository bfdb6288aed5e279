import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from cockpit.core.text import cells_of, fit_apart, fit_end, fit_left, fit_right, plain


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\sixel", "sixel"),
        ("\x9b31mred", "red"),
        ("a\tb\nc\rd\x07\x08", "a   b cd"),
        ("[bold]not markup[/]", "[bold]not markup[/]"),
        ("\u202egnirts", "gnirts"),
        ("\u26a0\ufe0f hot", "\u26a0 hot"),
        ("\x1b]52;c;unfinished", ""),
    ],
)
def test_terminal_control_is_taken_out(hostile: str, shown: str) -> None:
    assert plain(hostile) == shown


@given(st.text())
def test_nothing_a_terminal_could_obey_is_left(text: str) -> None:
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in plain(text))


WIDTHS = {"a": 1, "é": 1, "漢": 2, "👍": 2, " ": 1, "\u0302": 0, "ก": 1, "\u0e35": 0, "각": 2}


@given(st.text(st.sampled_from([*WIDTHS])))
def test_each_cell_holds_a_character_with_its_marks(text: str) -> None:
    text = "|" + text
    cells = cells_of(text)
    assert "".join(cells) == text
    assert len(cells) == 1 + sum(WIDTHS[character] for character in text[1:])
    for place, cell in enumerate(cells[1:], 1):
        assert (cell == "" and WIDTHS[cells[place - 1][0]] == 2) or sum(map(WIDTHS.__getitem__, cell)) in (1, 2)


@given(st.text(st.sampled_from("aé漢字👍 "), max_size=30), st.integers(1, 20))
def test_fitted_text_has_exactly_its_width(text: str, width: int) -> None:
    assert cell_len(fit_left(text, width)) == width
    assert cell_len(fit_right(text, width)) == width
    assert cell_len(fit_end(text, width)) == width


def test_texts_with_the_same_beginning_are_cut_where_they_differ() -> None:
    sweep = [f"sweep of the learning rate and the weights, rate {rate}" for rate in ("1e-4", "3e-4")]
    assert fit_apart([*sweep, "other"], 24) == ["sweep of the learni…1e-4", "sweep of the learni…3e-4", f"{'other':24}"]
    nested = [f"{'a' * 30}{middle}{'b' * 30}{end}" for middle, end in (("x", 1), ("x", 2), ("y", 1))]
    assert fit_apart(nested, 24) == ["aaaaaa…xbbbbbbbbbbbbbb…1", "aaaaaa…xbbbbbbbbbbbbbb…2", f"aaaaaa…y{'b' * 15}…"]
    assert fit_apart(["short", "short", "longer"], 6) == ["short ", "short ", "longer"]


@given(st.lists(st.text(st.sampled_from("ab漢"), max_size=40), max_size=8), st.integers(1, 30))
def test_texts_that_are_told_apart_have_exactly_their_width(texts: list[str], width: int) -> None:
    assert [cell_len(text) for text in fit_apart(texts, width)] == [width] * len(texts)


def test_the_side_and_the_cut() -> None:
    assert fit_left("ab", 4) == "ab  "
    assert fit_right("ab", 4) == "  ab"
    assert fit_right("abcdef", 4) == "abc…"
    assert [fit_end("abcdef", width) for width in (0, 1, 4, 6, 7)] == ["", "…", "…def", "abcdef", "abcdef "]
    assert [fit_end("漢字ab", width) for width in (4, 5)] == ["… ab", "…字ab"]
