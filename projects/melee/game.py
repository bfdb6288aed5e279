"""A game as it is read: frames, items and a few facts; whether it is one to learn from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from engines.basics.errors import DataError
from projects.melee.layout import FRAME, ITEM, MOST_ITEMS

Reason = Literal["damaged", "players", "computer", "length", "copy"]
REASONS: dict[Reason, str] = {
    "damaged": "damaged",
    "players": "not two players",
    "computer": "a computer player",
    "length": "too short",
    "copy": "the same game again",
}
"""Why a replay is left out, in the order in which it is looked at."""
LARGEST = 1e5
"""Of positions, speeds, percents and frames in a state: far beyond every stage's edge and every game's length."""


@dataclass(frozen=True)
class Game:
    """The frames of one game, each once.

    frames: (n,) of `FRAME`, `first_item` counted from this game's first item. items: (m,) of `ITEM`. missing: names of
    fields that the replay lacks (0 in the rows). version: of the replay format, or of the table it came from.
    """

    frames: NDArray[Any]
    items: NDArray[Any]
    stage: int
    external_stage: int | None
    missing: tuple[str, ...]
    version: str

    @property
    def digest(self) -> str:
        """What happened in it, as 16 letters: the same for a copy, and for the same game in another form."""
        players = self.frames["players"]
        what = hashlib.blake2b(digest_size=8)
        for name in ("character", "action", "x", "y"):
            what.update(np.ascontiguousarray(players[name]).data)
        return what.hexdigest()


class NotTaken(DataError):
    """A readable replay that is none to learn from."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def sound(values: NDArray[Any]) -> NDArray[Any]:
    """The values of a column. Raises `DataError` where one is not finite, or larger than any that a game has."""
    if values.dtype.kind == "f" and not (good := np.abs(values, dtype=np.float64) <= LARGEST).all():
        at = int((~good).argmax())
        raise DataError(f"a value in row {at} is {values[at]:g}, expected a number within ±{LARGEST:g}.")
    return values


def blank(frames: int) -> NDArray[Any]:
    """Rows for a game, all zero."""
    return np.zeros(frames, FRAME)


def with_items(rows: NDArray[Any], counts: NDArray[np.int64], columns: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """The item table of a game, and in `rows` where each frame's items lie.

    counts: (n,) items of each frame; of more than 15 the first are kept. columns: (sum of counts,) by name of `ITEM`.
    """
    starts = np.cumsum(counts) - counts
    kept = np.arange(counts.sum()) - np.repeat(starts, counts) < MOST_ITEMS
    items = np.zeros(int(kept.sum()), ITEM)
    for name, values in columns.items():
        items[name] = values[kept]
    rows["items"] = np.minimum(counts, MOST_ITEMS)
    rows["first_item"] = np.cumsum(rows["items"], dtype=np.int64) - rows["items"]
    return items


def refuse_short(frames: int, least: int) -> None:
    """Raises `NotTaken` where a game has fewer distinct frames than `least`."""
    if frames < least:
        raise NotTaken("length", f"{frames:,} frames, fewer than {least:,}")
