"""`cockpit data stats` of recorded games: frames, gaps, deaths, and what is done how often. Free of torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engines.contract.tables import Cell, Table
from projects.agent.layout import ABILITIES, NONE, SLICES, UNKNOWN
from projects.agent.recordings import Recording, read_recordings


def tables(path: str | Path) -> dict[str, Table]:
    """Each game, then the movements, abilities and rewards of all of them. Raises `DataError`."""
    games = read_recordings(Path(path), lambda done, total: None)
    columns = (
        "game", "frames", "from", "without latents", "without features", "latents", "deaths", "gold events",
        "reward not known", "repeats",
    )  # fmt: skip
    note = (
        "Deaths and gold events (10 or more in a frame) count where the reward is known: 5 frames before and 3 after "
        "are there. Repeats: share of the frames whose movement is that of the frame before."
    )
    return {
        "games": Table(columns, tuple(map(_row, games)), note),
        "movements": _movements(games),
        "abilities": _abilities(games),
        "rewards": _rewards(games),
    }


def _row(game: Recording) -> tuple[Cell, ...]:
    deaths, events = int(game.rewards.death.sum()), int(game.rewards.event.sum())
    known = (game.movement[1:] != UNKNOWN) & (game.movement[:-1] != UNKNOWN)
    repeats = float((game.movement[1:] == game.movement[:-1])[known].mean()) if known.any() else None
    return (
        game.name, len(game), game.first, int((game.rows < 0).sum()), int((~game.acted).sum()),
        " × ".join(map(str, game.latents.shape[1:])), deaths, events - deaths, int((~game.rewards.known).sum()),
        None if repeats is None else round(repeats, 3),
    )  # fmt: skip


def _movements(games: list[Recording]) -> Table:
    every = np.concatenate([game.movement for game in games])
    names = {place: f"{360 // SLICES * place}°" for place in range(SLICES)} | {NONE: "none", UNKNOWN: "not known"}
    counts = {name: int((every == place).sum()) for place, name in names.items()}
    rows = ((name, count, round(count / len(every), 4)) for name, count in counts.items())
    return Table(("movement", "frames", "share"), tuple(rows), "0° is east, counter-clockwise.")


def _abilities(games: list[Recording]) -> Table:
    pressed = sum(game.abilities.sum(axis=0) for game in games)
    return Table(("ability", "frames"), tuple(zip(ABILITIES, np.asarray(pressed).tolist(), strict=True)))


def _rewards(games: list[Recording]) -> Table:
    reward, known, event = (
        np.concatenate([getattr(game.rewards, name) for game in games]) for name in ("reward", "known", "event")
    )
    of = reward[known]
    rows: list[tuple[Cell, ...]] = [
        ("frames with a known reward", int(known.sum())),
        ("share above 0", float((of > 0).mean().round(4)) if len(of) else None),
        ("share with an event", float(event[known].mean().round(4)) if len(of) else None),
        ("least", float(of.min().round(3)) if len(of) else None),
        ("most", float(of.max().round(3)) if len(of) else None),
        ("sum", float(of.sum(dtype=np.float64).round(2))),
    ]
    return Table(("rewards", "amount"), tuple(rows))
