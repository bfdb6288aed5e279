"""Text from logs, names and files made safe for a terminal: never markup, never a control sequence."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

from rich.cells import cell_len, set_cell_size

ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement, clearing
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS and other strings: titles, links, clipboard
    r"|\x1b[ -/]*[0-~]"  # two-character sequences
    r"|\x9b[0-?]*[ -/]*[@-~]",  # CSI as one character
    re.DOTALL,
)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")


def plain(text: str) -> str:
    """`text` on one line without escape sequences, controls and invisible marks; tabs become spaces.

    So do marks that ask for an emoji in colour: terminals disagree on how wide that is.
    """
    return _CONTROLS.sub("", ESCAPE.sub("", text.expandtabs(4).replace("\n", " ")))


@functools.lru_cache(2048)
def cells_of(text: str) -> tuple[str, ...]:
    """What stands in each cell of plain `text`: a character with its marks, nothing behind a wide one."""
    if text.isascii():
        return tuple(text)
    cells: list[str] = []
    last = 0
    for character in text:
        if width := cell_len(character):
            last = len(cells)
            cells += [character, *[""] * (width - 1)]
        elif cells:
            cells[last] += character
    return tuple(cells)


def fit_left(text: str, width: int) -> str:
    """`text` in exactly `width` cells, left-aligned; the end is cut with `…`."""
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…" if width > 1 else "…"[:width]
    return set_cell_size(text, width)


def fit_right(text: str, width: int) -> str:
    """`text` in exactly `width` cells, right-aligned; the end is cut with `…`."""
    space = width - cell_len(text)
    return " " * space + text if space >= 0 else fit_left(text, width)


def fit_end(text: str, width: int) -> str:
    """`text` in exactly `width` cells, left-aligned; the beginning is cut with `…`: of a path the end tells more."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    kept = cells_of(text)[1 - width :] if width > 1 else ()
    half = " " if kept[:1] == ("",) else ""
    return "…"[:width] + half + "".join(kept)


HEAD = 6
"""Cells that are left of a shared beginning."""


def fit_apart(texts: Sequence[str], width: int) -> list[str]:
    """Each of `texts` in exactly `width` cells: the end is cut, or of those that would look alike what they share."""
    fitted = [fit_left(text, width) for text in texts]
    for alike in [text for text, count in Counter(fitted).items() if count > 1]:
        places = [place for place, text in enumerate(fitted) if text == alike]
        same = [texts[place] for place in places]
        shared = sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*same, strict=False)))
        if len(set(same)) == 1 or shared <= HEAD or width <= 2 * HEAD:
            continue
        rests = fit_apart([text[shared:] for text in same], width - HEAD - 1)
        head = set_cell_size(same[0], max(width - 1 - max(cell_len(rest.rstrip()) for rest in rests), HEAD))
        for place, rest in zip(places, rests, strict=True):
            fitted[place] = fit_left(f"{head}…{rest.rstrip()}", width)
    return fitted


def run_word(run_id: str) -> str:
    """`amber`: what a person calls a run."""
    return plain(run_id).rsplit("-", 1)[-1]
