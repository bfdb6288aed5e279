"""A run's config as lines to look through: as it is, or only what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len

from cockpit.core.config.diff import ABSENT, KeyRow, words
from cockpit.core.config.run_config import Edited, RunConfigFile
from cockpit.core.text import fit_left, plain
from cockpit.core.text_filter import TextFilter

Kind = Literal["section", "value", "changed", "added", "removed"]
SIGNS: dict[Kind, str] = {"changed": "~", "added": "+", "removed": "-"}
WIDEST = 32
"""Cells for a key or an old value before the rest of its line moves to the right."""


@dataclass(frozen=True)
class ConfigLine:
    kind: Kind
    key: str
    """Dotted, of what the line says; what a search looks in beside the text."""
    text: str
    now: str = ""
    """`now 0.8 since step 361` beside a setting that was changed while the run went on."""


def resolved_lines(config: RunConfigFile, edited: Mapping[str, Edited]) -> list[ConfigLine]:
    """The file's own lines."""
    keys = {line: ".".join(map(str, key)) for key, line in config.lines.items()}
    made, key = [], ""
    for number, text in enumerate(config.text.splitlines(), 1):
        key = keys.get(number, key)
        kind: Kind = "section" if text.rstrip().endswith(":") else "value"
        now = edited[key].words() if key in edited and number in keys else ""
        made.append(ConfigLine(kind, key, plain(text.rstrip()), now))
    return made


def change_lines(rows: Sequence[KeyRow], edited: Mapping[str, Edited]) -> list[ConfigLine]:
    """One line a row of two values, the other's and the run's own: sign, key, old → new in columns."""
    told = [(row.key, *(plain(words(value)) for value in row.values)) for row in rows]
    key_width = min(max((cell_len(key) for key, _, _ in told), default=0), WIDEST)
    old_width = min(max((cell_len(old) for _, old, _ in told), default=0), WIDEST)
    made = []
    for row, (key, old, new) in zip(rows, told, strict=True):
        kind = _kind(row)
        text = f"{SIGNS[kind]} {_room(key, key_width)}  {_room(old, old_width)} → {new}"
        made.append(ConfigLine(kind, row.key, text, edited[key].words() if key in edited else ""))
    return made


def matching(lines: Sequence[ConfigLine], sought: TextFilter) -> list[ConfigLine]:
    """The lines that a search lets through, by their text or their whole key."""
    return [line for line in lines if sought.lets_through(f"{line.key} {line.text}")]


def _room(text: str, width: int) -> str:
    """Padded, never cut."""
    return text if cell_len(text) > width else fit_left(text, width)


def _kind(row: KeyRow) -> Kind:
    old, new = row.values
    return "added" if old is ABSENT else "removed" if new is ABSENT else "changed"
