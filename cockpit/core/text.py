"""Text from logs, names and files made safe for a terminal: never markup, never a control sequence."""

from __future__ import annotations

import re

from rich.cells import cell_len, set_cell_size

ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement, clearing
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS and other strings: titles, links, clipboard
    r"|\x1b[ -/]*[0-~]"  # two-character sequences
    r"|\x9b[0-?]*[ -/]*[@-~]",  # CSI as one character
    re.DOTALL,
)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def plain(text: str) -> str:
    """`text` on one line without escape sequences, controls and invisible direction marks; tabs become spaces."""
    return _CONTROLS.sub("", ESCAPE.sub("", text.expandtabs(4).replace("\n", " ")))


def fit_left(text: str, width: int) -> str:
    """`text` in exactly `width` cells, left-aligned; the end is cut with `…`."""
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…" if width > 1 else "…"[:width]
    return set_cell_size(text, width)


def fit_right(text: str, width: int) -> str:
    """`text` in exactly `width` cells, right-aligned; the end is cut with `…`."""
    space = width - cell_len(text)
    return " " * space + text if space >= 0 else fit_left(text, width)


def run_word(run_id: str) -> str:
    """`amber`: what a person calls a run."""
    return plain(run_id).rsplit("-", 1)[-1]
