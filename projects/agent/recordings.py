"""Recorded games: features and latents of a video on one timeline of frame numbers, gaps left open.

A folder of games holds features/VIDEO/features.json and latents/VIDEO.npz.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.basics.errors import DataError
from projects.agent.features import Features, read_features
from projects.agent.latents import open_latents
from projects.agent.layout import ABILITIES, UNKNOWN
from projects.agent.rewards import Rewards, rewards

FEATURES, LATENTS = "features", "latents"
FILE = "features.json"
Bools = NDArray[np.bool_]
Tick = Callable[[int, int], None]
"""Is given how many games are read, and of how many."""


@dataclass(frozen=True)
class Recording:
    """The frames of a game from the first with latents to the last, F in all, whether there or missing.

    first: number of the first one. rows: (F,) the row of each in `latents` (N, C, H, W), -1 where it is missing.
    movement: (F,) int8, UNKNOWN where it is not known. abilities: (F, 8). acted: (F,) frames whose features are there.
    rewards: of the F frames, known where the rule of deaths could judge.
    """

    name: str
    first: int
    rows: NDArray[np.int64]
    latents: NDArray[np.floating[Any]]
    movement: NDArray[np.int8]
    abilities: Bools
    acted: Bools
    rewards: Rewards

    def __len__(self) -> int:
        return len(self.rows)

    def seen(self, start: int, stop: int) -> NDArray[np.float32]:
        """The latents of frames start to stop of the timeline, 0 where they are missing: (stop - start, C, H, W)."""
        rows = self.rows[start:stop]
        there = rows >= 0
        found = np.zeros((len(rows), *self.latents.shape[1:]), np.float32)
        if there.any():
            first, last = (
                int(rows[there][0]),
                int(rows[there][-1]),
            )  # rows rise by one from frame to frame that is there
            found[there] = self.latents[first : last + 1]
        return found


def names_at(folder: Path) -> list[str]:
    """The games of a folder by name. Raises `DataError` where there is none, or where one has half of its files."""
    described = {path.parent.name for path in folder.glob(f"{FEATURES}/*/{FILE}")}
    packed = {path.stem for path in folder.glob(f"{LATENTS}/*.npz")}
    if not described and not packed:
        raise DataError(
            f"{folder}: holds no game, expected {FEATURES}/VIDEO/{FILE} and {LATENTS}/VIDEO.npz; make some with "
            "`cockpit data make agent OUT`, or parse some with `cockpit data parse GAMES OUT`."
        )
    for name in sorted(described ^ packed):
        lacking = f"{LATENTS}/{name}.npz" if name in described else f"{FEATURES}/{name}/{FILE}"
        raise DataError(f"{folder}: the game {name} lacks {lacking}; extract it again, or delete its other file.")
    return sorted(described)


def read_recording(folder: Path, name: str) -> Recording:
    """One game of a folder. Raises `DataError`."""
    path = folder / FEATURES / name / FILE
    features, latents = read_features(path), open_latents(folder / LATENTS / f"{name}.npz")
    if features.name != name:
        raise DataError(f"{path}: video_id is {features.name!r}, expected {name!r} as its folder is called.")
    first, last = int(latents.number[0]), int(latents.number[-1])
    within = (features.number >= first) & (features.number <= last)
    if not within.any():
        raise DataError(
            f"{path}: has frames {features.number[0]} to {features.number[-1]}, its latents {first} to {last}; "
            "expected them to be of the same video."
        )
    rows = np.full(last - first + 1, -1, np.int64)
    rows[latents.number - first] = np.arange(len(latents.number))
    place = features.number[within] - first
    return _on_timeline(name, first, rows, latents.values, features, within, place)


def game_of(file: Path) -> tuple[Path, str]:
    """The folder and the name of the game that a file is of, its features or its latents. Raises `DataError`."""
    path = file.absolute()
    if path.name == FILE and path.parent.parent.name == FEATURES:
        return path.parents[2], path.parent.name
    if path.suffix == ".npz" and path.parent.name == LATENTS:
        return path.parents[1], path.stem
    raise DataError(f"{file}: is no recorded game, expected …/{FEATURES}/VIDEO/{FILE} or …/{LATENTS}/VIDEO.npz.")


def _on_timeline(
    name: str, first: int, rows: NDArray[np.int64], values: NDArray[np.floating[Any]], features: Features,
    within: Bools, place: NDArray[np.int64],
) -> Recording:  # fmt: skip
    """Features of the rows `within` put at their place on the timeline."""

    def put(empty: NDArray[Any], found: NDArray[Any]) -> NDArray[Any]:
        empty[place] = found[within]
        return empty

    count = len(rows)
    gained = rewards(features)
    return Recording(
        name=name,
        first=first,
        rows=rows,
        latents=values,
        movement=put(np.full(count, UNKNOWN, np.int8), features.movement),
        abilities=put(np.zeros((count, len(ABILITIES)), bool), features.abilities),
        acted=put(np.zeros(count, bool), np.ones(len(within), bool)),
        rewards=Rewards(
            put(np.zeros(count, np.float32), gained.reward),
            put(np.zeros(count, bool), gained.known),
            put(np.zeros(count, bool), gained.death),
            put(np.zeros(count, bool), gained.event),
        ),
    )


def read_recordings(folder: Path, tick: Tick) -> list[Recording]:
    """Every game of a folder by name. Raises `DataError`, also where their latents differ in size."""
    names = names_at(folder)
    found: list[Recording] = []
    for done, name in enumerate(names):
        tick(done, len(names))
        found.append(read_recording(folder, name))
    same_shape(folder, found)
    return found


def same_shape(folder: Path, recordings: Sequence[Recording]) -> None:
    """Raises `DataError` unless all latents have one (C, H, W)."""
    for one in recordings:
        mine, others = one.latents.shape[1:], recordings[0].latents.shape[1:]
        if mine != others:
            raise DataError(
                f"{folder}: the latents of {one.name} are {_times(mine)}, those of {recordings[0].name} "
                f"{_times(others)}; expected one size in a folder."
            )


def _times(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape))
