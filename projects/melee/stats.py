"""`cockpit data stats` of a store of games: how much there is of what, and what is missing. Free of torch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from engines.contract.tables import Cell, Table
from projects.melee.game import REASONS
from projects.melee.layout import CHARACTERS, STAGES
from projects.melee.store import Store

SECONDS = 60.0
"""Frames of a second."""


def tables(path: str | Path) -> dict[str, Table]:
    """Games, stages, characters, missing fields and what was left out. Raises `DataError`."""
    place = Path(path)
    store = Store(place)
    games = [placed.game for placed in store.games]
    frames = sum(game.frames for game in games)
    size = sum(file.stat().st_size for file in place.iterdir())
    stages = Counter(STAGES.get(game.stage, "another stage") for game in games)
    fighters = Counter(_character(one) for game in games for one in game.characters)
    missing = Counter(field for game in games for field in game.missing)
    left = Counter(REASONS[one.reason] for contents in store.contents for one in contents.left)
    whole: list[tuple[Cell, ...]] = [
        ("games", len(games)), ("with every field", sum(not game.missing for game in games)), ("frames", frames),
        ("hours", round(frames / SECONDS / 3600, 2)), ("items", sum(game.items for game in games)),
        ("bytes a frame", round(size / max(1, frames), 1)),
        ("longest game, frames", max((game.frames for game in games), default=0)),
    ]  # fmt: skip
    return {
        "store": Table(("what", "amount"), tuple(whole)),
        "stages": _counted("stage", stages),
        "characters": _counted("character", fighters),
        "missing fields": _counted("field", missing),
        "left out": _counted("reason", left),
        "fields": _fields(store),
    }


def _character(number: int) -> str:
    return CHARACTERS[number] if number < len(CHARACTERS) else f"character {number}"


def _counted(what: str, counts: Counter[str]) -> Table:
    return Table((what, "number"), tuple(counts.most_common()))


def _fields(store: Store) -> Table:
    """Least, mean and most of a few numbers over every frame of the games that have them."""
    rows: list[tuple[Cell, ...]] = []
    for field in ("percent", "x", "y", "shield", "speed_air_x", "speed_y", "hitlag", "stocks"):
        least, most, total, count = np.inf, -np.inf, 0.0, 0
        for place, placed in enumerate(store.games):
            if field not in placed.game.missing:
                values = store.game(place)[0]["players"][field]
                least, most = min(least, float(values.min())), max(most, float(values.max()))
                total, count = total + float(values.sum(dtype=np.float64)), count + values.size
        if count:
            rows.append((field, round(least, 2), round(total / count, 3), round(most, 2)))
    return Table(("field", "least", "mean", "most"), tuple(rows))
