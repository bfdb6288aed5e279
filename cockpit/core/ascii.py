"""Scenes for terminals without braille and block characters: every cell by one plain character."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.core.canvas import Cell, Row

_SIGNS = {
    "●": "*", "○": "o", "◆": "o", "≠": "#", "█": "=", "·": ".", "│": "|", "─": "-", "━": "=", "×": "x", "→": ">",
    "▁": ".", "▂": ".", "▃": ":", "▄": ":", "▅": "+", "▆": "+", "▇": "#", "…": "~", "‖": "=", "◢": "#", "■": "=",
    "▏": ".", "▎": ".", "▍": "-", "▌": "-", "▋": "-", "▊": "=", "▉": "=", "◌": "o", "◐": "o", "✓": "+", "✖": "x",
    "–": "-", "—": "-",
}  # fmt: skip
_DENSITY = " .:-=+*#%@"


def needs_ascii(environment: Mapping[str, str], encoding: str) -> bool:
    """Whether a terminal cannot be trusted with more than ASCII: the bare console, a dumb one, no UTF-8."""
    return environment.get("TERM", "") in ("", "dumb", "linux") or "utf" not in encoding.lower()


def in_ascii(row: Row) -> Row:
    """`row` with the same number of cells."""
    return [_plain(cell) for cell in row]


def text_in_ascii(text: str) -> str:
    """`text`, as long as before."""
    return "".join(character for character, _ in in_ascii([(character, "plain") for character in text]))


def _plain(cell: Cell) -> Cell:
    character, kind = cell
    if kind.startswith("rgb:"):
        return _brightness(kind), "plain"
    if not character or character.isascii():
        return character or " ", kind  # the second half of a wide character
    if "\u2800" <= character <= "\u28ff":  # braille: what is quiet stays so without colour
        return ("." if kind in ("quiet", "faint") else "*"), kind
    return _SIGNS.get(character, "?"), kind


def _brightness(kind: str) -> str:
    """The two pixels of a cell, `rgb:#rrggbb:#rrggbb`, as one character, the denser the brighter."""
    parts = kind.replace("#", "").split(":")[1:]
    total = sum(int(part[place : place + 2], 16) for part in parts for place in (0, 2, 4))
    return _DENSITY[total * (len(_DENSITY) - 1) // (6 * 255)]
