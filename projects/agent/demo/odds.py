"""What the simulator knows of a game and no model sees: the ceilings of what can be predicted.

odds/VIDEO.npz beside features and latents, rows as the frames of the game: `event` (F, 9), the chance of a reward event
o frames later under the expert (what happened for o = 0); `movement` (F, 19) and `abilities` (F, 8), the chances of the
action that produced the frame, before the expert drew it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from engines.basics import npz
from engines.basics.errors import DataError
from engines.basics.files import replace_with
from projects.agent.demo.arena import Arena, Floats, State
from projects.agent.demo.expert import Expert, Habits, Mind
from projects.agent.layout import ABILITIES, MOVEMENTS, OFFSETS
from projects.agent.rewards import events

FOLDER = "odds"
COPIES = 32
"""Futures that are played from each frame: a chance of .5 is known to ± .09."""
_WIDTHS = {"event": OFFSETS + 1, "movement": MOVEMENTS, "abilities": len(ABILITIES)}


@dataclass(frozen=True)
class Odds:
    """Chances of F frames, as described above: (F, 9), (F, 19) and (F, 8)."""

    event: NDArray[np.floating]
    movement: NDArray[np.floating]
    abilities: NDArray[np.floating]


def event_odds(state: State, mind: Mind, habits: Habits, random: np.random.Generator, copies: int = COPIES) -> Floats:
    """The chance of an event 1 to 8 frames after each state (E,), by playing copies of it: (E, 8)."""
    count = len(state.frame)
    every = np.repeat(np.arange(count), copies)
    arena = Arena()
    arena.resume(state.take(every), random)
    expert = Expert(len(every), habits, random)
    expert.mind = mind.take(every)
    chances = np.empty((count, OFFSETS))
    for offset in range(OFFSETS):
        gold, death = arena.step(*expert.act(arena.state))
        chances[:, offset] = events(gold, death).reshape(count, copies).mean(axis=1)
    return chances


def write_odds(path: Path, odds: Odds) -> None:
    """Raises OSError."""
    replace_with(path, partial(_write, odds))


def read_odds(folder: Path, name: str, frames: int) -> Odds | None:
    """Those of a game of `frames` frames; None where the folder is not of the arena. Raises `DataError`."""
    path = folder / FOLDER / f"{name}.npz"
    if not path.is_file():
        return None
    try:
        content = npz.arrays_in(path)
        found = {key: content[key].astype(np.float32) for key in _WIDTHS}
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path}: damaged ({error}); make the demo games again in an empty folder.") from None
    for key, width in _WIDTHS.items():
        if found[key].shape != (frames, width):
            raise DataError(
                f"{path}: {key} has shape {found[key].shape}, its game needs ({frames}, {width}); make the demo games "
                "again in an empty folder."
            )
    return Odds(**found)


def _write(odds: Odds, file: IO[bytes]) -> None:
    np.savez(file, allow_pickle=False, **{key: getattr(odds, key).astype(np.float32) for key in _WIDTHS})
