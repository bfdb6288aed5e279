"""The arena: a player, a hunter that is death to touch, and gold; many episodes side by side.

Three cells by three, one step a frame at 20 frames a second: ten steps cross half of it. The hunter is slower than the
player, roams, and turns to a player that it sees. All randomness comes from one generator, the same amount of it each
step whatever the players do: two policies with one seed meet the same world until they act differently in it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projects.agent.demo.picture import SIZE, render
from projects.agent.layout import ABILITIES, NONE, SLICES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

EDGE = 0.15
"""Nothing comes nearer to a wall."""
SPEED, HUNTER_SPEED = 0.15, 0.06
"""Cells a frame."""
CONTACT = 0.33
"""The hunter kills within this distance."""
TOUCH, REACH = 0.25, 0.55
"""Gold is taken within the first by itself, within the second with `q`."""
SIGHT, TURN = 0.6, np.deg2rad(6)
"""How far the hunter sees, and how far it turns in a frame."""
ROAMING = np.deg2rad(12)
"""Standard deviation of its turns while it sees nobody."""
DEAD = 20
"""Frames that a player is gone after a death."""
LEAST_GOLD, MOST_GOLD = 30, 70
PASSIVE_EVERY = 10
"""Frames from one gold that everyone gets to the next."""
FADE = 0.7
"""What is left after a frame of the marks of taken gold and of a death."""
NEAR_GOLD, NEAR_HUNTER = 0.9, 1.5
"""New gold lies at least so far from the player, and a player comes back so far from the hunter, where possible."""
TRIES = 8
Q = ABILITIES.index("q")


@dataclass
class State:
    """All there is of E episodes; the first dimension of each field is the episode."""

    player: Floats
    """(E, 2) in cells, y upwards; also of a dead one, where it fell."""
    hunter: Floats
    heading: Floats
    """(E,) where the hunter goes, in radians."""
    gold: Floats
    amount: Ints
    dead: Ints
    """(E,) frames until the player is back; 0 while it lives."""
    taken: Floats
    """(E, 3) where gold was taken last, and how bright its mark still is."""
    died: Floats
    """(E, 3) the same of the last death."""
    frame: Ints

    def take(self, episodes: Ints) -> State:
        """The state of some episodes, any of them as often as it is named, as copies."""
        return State(*(getattr(self, field.name)[episodes] for field in dataclasses.fields(self)))


def direction(movement: Ints) -> Floats:
    """Unit vectors of movements (E,), zero for none: (E, 2)."""
    angle = movement * (2 * np.pi / SLICES)
    return np.where((movement == NONE)[:, None], 0.0, np.stack([np.cos(angle), np.sin(angle)], axis=1))


class Arena:
    """Episodes that are stepped together."""

    state: State

    def reset(self, count: int, *seed: int) -> None:
        """Begin `count` episodes; the same ones for the same seed."""
        random = np.random.default_rng(seed)
        self.resume(_beginning(count, random), random)

    def resume(self, state: State, random: np.random.Generator) -> None:
        """Go on from a state, which is changed from now on."""
        self.state, self._random = state, random

    def step(self, movement: Ints, abilities: Bools) -> tuple[Floats, Bools]:
        """One frame of each episode with the movements (E,) and abilities (E, 8): gold gained and deaths, (E,) each."""
        state, random = self.state, self._random
        roam = random.normal(0.0, ROAMING, len(state.frame))
        places = random.uniform(EDGE, SIZE - EDGE, (len(state.frame), TRIES, 2))
        amounts = random.integers(LEAST_GOLD, MOST_GOLD + 1, len(state.frame))
        state.frame += 1
        state.taken[:, 2] *= FADE
        state.died[:, 2] *= FADE
        _come_back(state, places)
        alive = state.dead == 0
        pace = SPEED * direction(movement) * alive[:, None]
        state.player = np.clip(state.player + pace, EDGE, SIZE - EDGE)
        _hunt(state, roam, alive)
        death = alive & (_length(state.player - state.hunter) < CONTACT)
        state.dead = np.where(death, DEAD, state.dead)
        state.died[death] = np.column_stack([state.player, np.ones(len(alive))])[death]
        away = _length(state.player - state.gold)
        took = alive & ~death & ((away < TOUCH) | ((away < REACH) & abilities[:, Q]))
        gained = np.where(took, state.amount, 0).astype(np.float64)
        state.taken[took] = np.column_stack([state.gold, np.ones(len(alive))])[took]
        state.gold[took] = _far(places, state.player, NEAR_GOLD)[took]
        state.amount = np.where(took, amounts, state.amount)
        return gained + (state.frame % PASSIVE_EVERY == 0), death

    def latents(self) -> NDArray[np.float32]:
        """What is seen of each episode now: (E, 6, 3, 3), as `picture.render` says."""
        return seen(self.state)


def seen(state: State) -> NDArray[np.float32]:
    """What is seen of E episodes: (E, 6, 3, 3)."""
    alive = state.dead == 0
    things = [
        (state.player, alive.astype(float)), (state.hunter, np.ones(len(alive))),
        (state.gold, state.amount / MOST_GOLD), (state.taken[:, :2], state.taken[:, 2]),
        (state.died[:, :2], state.died[:, 2]),
    ]  # fmt: skip
    return render(things, np.where(alive, 1.0, -state.dead / DEAD))


def _beginning(count: int, random: np.random.Generator) -> State:
    places = random.uniform(EDGE, SIZE - EDGE, (3, count, TRIES, 2))
    player = places[0, :, 0]
    return State(
        player=player.copy(),
        hunter=_far(places[1], player, NEAR_HUNTER),
        heading=random.uniform(-np.pi, np.pi, count),
        gold=_far(places[2], player, NEAR_GOLD),
        amount=random.integers(LEAST_GOLD, MOST_GOLD + 1, count),
        dead=np.zeros(count, np.int64),
        taken=np.zeros((count, 3)),
        died=np.zeros((count, 3)),
        frame=np.zeros(count, np.int64),
    )


def _come_back(state: State, places: Floats) -> None:
    """Dead players wait; those that have waited are put far from the hunter."""
    back = state.dead == 1
    state.dead = np.maximum(state.dead - 1, 0)
    state.player[back] = _far(places, state.hunter, NEAR_HUNTER)[back]


def _hunt(state: State, roam: Floats, alive: Bools) -> None:
    """The hunter turns to a player that it sees, else roams, and turns back at the walls."""
    there = state.player - state.hunter
    seen = alive & (_length(there) < SIGHT)
    off = _turned(np.arctan2(there[:, 1], there[:, 0]) - state.heading)
    state.heading = state.heading + np.where(seen, np.clip(off, -TURN, TURN), roam)
    moved = state.hunter + HUNTER_SPEED * np.stack([np.cos(state.heading), np.sin(state.heading)], axis=1)
    out = (moved < EDGE) | (moved > SIZE - EDGE)
    state.heading = np.where(out[:, 0], np.pi - state.heading, state.heading)
    state.heading = _turned(np.where(out[:, 1], -state.heading, state.heading))
    state.hunter = np.clip(moved, EDGE, SIZE - EDGE)


def _far(places: Floats, other: Floats, least: float) -> Floats:
    """Of the places (E, tries, 2) the first that is `least` from the other (E, 2), else the farthest: (E, 2)."""
    away = _length(places - other[:, None])
    chosen: Floats = places[np.arange(len(places)), np.minimum(away, least).argmax(axis=1)]
    return chosen


def _length(vectors: Floats) -> Floats:
    return np.hypot(vectors[..., 0], vectors[..., 1])


def _turned(angle: Floats) -> Floats:
    """The same angle within -π to π."""
    return (angle + np.pi) % (2 * np.pi) - np.pi
