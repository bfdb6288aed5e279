"""Both themes are readable, and what charts tell by colour is told apart with any colour vision."""

from itertools import chain

import numpy as np
import pytest

from cockpit.theme import DEFAULT, RUN_COLOURS, THEMES
from tests.support.colour_vision import VISIONS, contrast, difference, nearest_pair

TEXT = ("train", "validation", "edit", "good", "bad", "best", "name", "resume", "quiet")
MARKS = ("train-faint", "validation-faint", "faint")
LEAST_DIFFERENCE = 10.0
"""CIEDE2000. One is just seen with the samples edge to edge; on thin lines apart from each other several times that is
needed, and the usual palettes for eight categories fall to between 1 and 4 with some colour vision."""

BOTH = pytest.mark.parametrize("name", list(THEMES))
EVERY = pytest.mark.parametrize("vision", list(VISIONS))


def variable(theme: str, name: str) -> str:
    return THEMES[theme].variables[name]


def test_the_default_is_one_of_ours() -> None:
    assert DEFAULT in THEMES
    assert {theme.dark for theme in THEMES.values()} == {True, False}


@BOTH
def test_text_is_readable_on_every_background(name: str) -> None:
    theme = THEMES[name]
    assert theme.background
    assert theme.panel
    assert theme.foreground
    colours = {"foreground": theme.foreground} | {text: variable(name, text) for text in TEXT}
    ratios = {
        text: min(contrast(colour, on) for on in (theme.background, theme.panel)) for text, colour in colours.items()
    }
    assert {text: ratio for text, ratio in ratios.items() if ratio < 4.5} == {}
    assert contrast(theme.background, variable(name, "best")) >= 4.5  # the word under a cursor of the accent's colour


@BOTH
def test_marks_and_lines_stand_out(name: str) -> None:
    background = str(THEMES[name].background)
    lines = [*(variable(name, mark) for mark in MARKS), *RUN_COLOURS["dark" if THEMES[name].dark else "light"]]
    assert [colour for colour in lines if contrast(colour, background) < 3] == []


@pytest.mark.behaviour("eight-runs-told-apart")
@EVERY
@pytest.mark.parametrize("kind", list(RUN_COLOURS))
def test_eight_runs_are_told_apart(kind: str, vision: str) -> None:
    assert len(set(RUN_COLOURS[kind])) == 8
    least, pair = nearest_pair(list(RUN_COLOURS[kind]), vision)
    assert least >= LEAST_DIFFERENCE, pair


@EVERY
@BOTH
def test_what_a_chart_marks_is_told_apart(name: str, vision: str) -> None:
    marks = [variable(name, mark) for mark in ("train", "validation", "edit", "best", "resume")]
    least, pair = nearest_pair(marks, vision)
    assert least >= LEAST_DIFFERENCE, pair


def test_the_measures_agree_with_published_values() -> None:
    """Pairs and differences from the paper on CIEDE2000; contrasts from WCAG's definition."""
    pairs = [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425), ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((50, 2.5, 0), (50, 3.1736, 0.5854), 1.0), ((50, 2.5, 0), (50, 0, -2.5), 4.3065),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ]  # fmt: skip
    for one, other, expected in pairs:
        assert difference(np.array(one), np.array(other)) == pytest.approx(expected, abs=1e-4)
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert np.sum(list(chain(*VISIONS.values())), axis=1) == pytest.approx(1, abs=1e-5)  # grey stays grey
