"""A game of the expert in the arena, recorded as a video would be: features, latents, and the odds beside them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from projects.agent.demo.arena import SPEED, Arena, Floats, State, direction, seen
from projects.agent.demo.expert import EXPERT, Expert, Mind, action_odds
from projects.agent.demo.odds import Odds, event_odds
from projects.agent.demo.picture import SIZE
from projects.agent.features import Features
from projects.agent.rewards import events

PIXELS = 256
Part = TypeVar("Part", State, Mind)
_ONE = np.zeros(1, np.int64)
BAR_ABOVE = 12
"""Pixels from a player up to its health bar."""
FIRST_FRAME, APART = 100, 37
"""Frame numbers do not begin at 0, nor at the same one in all games."""


@dataclass(frozen=True)
class Game:
    """features: of F frames. step: (F, 2) in pixels. latents: (F, 4, 3, 3)."""

    features: Features
    step: Floats
    latents: NDArray[np.float32]
    odds: Odds


def record(seed: int, number: int, frames: int) -> Game:
    """The game `number` of a seed, the same one whenever it is asked for."""
    arena, expert = Arena(), Expert(1, EXPERT, np.random.default_rng((seed, number, 1)))
    arena.reset(1, seed, number)
    states, minds = [arena.state.take(_ONE)], [expert.mind.take(_ONE)]
    rows: list[tuple[NDArray[np.generic], ...]] = []
    for _ in range(frames):
        movement, abilities = expert.act(arena.state)
        rows.append((movement, abilities, *arena.step(movement, abilities)))
        states.append(arena.state.take(_ONE))
        minds.append(expert.mind.take(_ONE))
    moved, pressed, gained, died = (np.concatenate(part) for part in zip(*rows, strict=True))
    before, state = stacked(states[:-1]), stacked(states[1:])
    coming = event_odds(state, stacked(minds[1:]), EXPERT, np.random.default_rng((seed, number, 2)))
    happened = events(gained, died)
    features = Features(
        name=f"demo_{number:03d}",
        number=FIRST_FRAME + APART * number + np.arange(frames),
        movement=moved.astype(np.int8),
        abilities=pressed.astype(bool),
        gold=gained.astype(np.float64),
        bar=_bar(state),
    )
    return Game(
        features,
        step=PIXELS / SIZE * SPEED * direction(moved.astype(np.int64)) * (1, -1),
        latents=seen(state),
        odds=Odds(np.column_stack([happened, coming]), *action_odds(before, stacked(minds[:-1]), EXPERT)),
    )


def stacked(parts: Sequence[Part]) -> Part:
    """Several states, or several minds, as one with all their episodes."""
    fields = [field.name for field in dataclasses.fields(parts[0])]
    return type(parts[0])(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))


def _bar(state: State) -> Floats:
    """The place of the health bar in a picture, y downwards, (0, 0) while the player is dead: (F, 2)."""
    return np.where((state.dead == 0)[:, None], (PIXELS / 2, PIXELS / 2 - BAR_ABOVE), 0.0)
