"""Everything in plain characters, cell for cell, for terminals that show no others."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from rich.cells import cell_len

from cockpit.core import braille
from cockpit.core.scenes.cells import Cell, Row

PLAIN_TERMINALS = frozenset({"", "dumb", "linux", "ansi", "vt52", "vt100", "vt102", "vt220"})
"""Values of TERM: no terminal, the bare console, serial lines."""
_COERCED = frozenset({"c.utf-8", "c.utf8", "utf-8"})
"""What Python itself puts into LC_CTYPE where it finds the locale C (PEP 538): says nothing of the terminal."""

_SIGNS = {
    "-": "─┄┈╌╴╶╼╾–—−▔‐‑▍▌▋", "=": "━┅┉╍═╸╺█▊▉‖", "|": "│┃║╵╷╹╻╽╿▏▎▕▐", ":": "┆┇┊┋╎╏▃▄▒", ".": "·◦▁▂░",
    "+": "±✓✔▅▆", "#": "≠▇▓■◢◣◤◥▖▗▘▙▚▛▜▝▞▟", "*": "●★•∙", "o": "○◆◇◌◐°", "x": "×✖✗", ">": "→≥▶›»", "<": "←≤◀‹«⏎",
    "^": "▲↑", "v": "▼↓", "@": "↻", "~": "…≈", '"': "“”„▀", "'": "‘’", "u": "µμ", "d": "Δ", "!": "⚠",
}  # fmt: skip
"""The characters of our own screens by what stands for them; of letters see `_letter`."""
_BOXES = range(0x2500, 0x2580)
_DENSITY = " .:-=+*#%@"
_DOTS = " ..::**##"
"""By the number of dots of a braille character."""


def needs_ascii(environment: Mapping[str, str], encoding: str) -> bool:
    """Whether a terminal cannot be trusted with more than ASCII: no better kind, an output or a locale without UTF-8.

    Where no locale is set at all, as in most containers, it can: the person's terminal is elsewhere.
    """
    names = (environment.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next((name for name in names if name and name.lower() not in _COERCED), "utf-8")
    return environment.get("TERM", "") in PLAIN_TERMINALS or not all("utf" in it.lower() for it in (encoding, locale))


def text_in_ascii(text: str) -> str:
    """`text` in as many cells as before: a wide character becomes two, a mark over a letter none."""
    if text.isascii():
        return text
    width = cell_len(text)
    return text.translate(_TABLE).ljust(width)[:width]  # the two differ only for what terminals join, as some emoji


def in_ascii(row: Row) -> Row:
    """`row` of a scene with the same number of cells."""
    return [_plain(cell) for cell in row]


def _plain(cell: Cell) -> Cell:
    character, kind = cell
    if kind.startswith("rgb:"):
        return _brightness(kind), "plain"
    if character and ord(character) in braille.CODES:  # what is quiet stays so without colour
        return ("." if kind in ("quiet", "faint") else "*"), kind
    return text_in_ascii(character)[:1] or " ", kind  # the second half of a wide character is empty


def _brightness(kind: str) -> str:
    """The two pixels of a cell, `rgb:#rrggbb:#rrggbb`, as one character, the denser the brighter."""
    parts = kind.replace("#", "").split(":")[1:]
    total = sum(int(part[place : place + 2], 16) for part in parts for place in (0, 2, 4))
    return _DENSITY[total * (len(_DENSITY) - 1) // (6 * 255)]


class _Table(dict[int, str]):
    """For `str.translate`: each character is looked into once."""

    def __missing__(self, code: int) -> str:
        self[code] = sign = _sign(chr(code))
        return sign


_TABLE = _Table({ord(character): sign for sign, characters in _SIGNS.items() for character in characters})


def _sign(character: str) -> str:
    """What stands for a character that has no sign of its own, in as many cells."""
    if character.isascii():
        return character
    if ord(character) in braille.CODES:
        return _DOTS[(ord(character) - braille.CODES.start).bit_count()]
    if ord(character) in _BOXES:
        return "+"
    width = cell_len(character)
    letter = _letter(character)
    return letter.ljust(width)[:width] if letter else "?" * width


def _letter(character: str) -> str:
    """`é` as `e`, a wide `Ａ` as `A`: the one ASCII character that its parts leave, else nothing."""
    parts = [part for part in unicodedata.normalize("NFKD", character) if not unicodedata.combining(part)]
    return parts[0] if len(parts) == 1 and parts[0].isascii() else ""
