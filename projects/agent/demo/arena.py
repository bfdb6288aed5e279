"""The arena: a player, a hunter whose nearness drains life, and gold; many episodes side by side.

Three cells by three without walls: who leaves on one side comes in on the other. One step a frame at 20 frames a
second, ten steps go half around. The hunter goes after the player, unsteadily and slower than it, and stays where it is
while the player is dead. All randomness comes from one generator, the same amount of it each step whatever the players
do: two policies with one seed meet the same world until they act differently in it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projects.agent.demo.picture import MIDDLE, SIZE, render
from projects.agent.layout import ABILITIES, NONE, SLICES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SPEED, HUNTER_SPEED = 0.15, 0.03
"""Cells a frame."""
SWAY = np.deg2rad(20)
"""Standard deviation of the hunter's direction from that to the player."""
CONTACT = 0.5
"""The hunter drains life within this distance, the more the nearer it is."""
DRAIN, HEALING = 0.6, 0.02
"""Life that a frame takes at no distance, and that a frame away from the hunter gives back; all of it is 1."""
TOUCH, REACH = 0.25, 0.55
"""Gold is taken within the first by itself, within the second with `q`."""
DEAD, SINKING = 20, 0.1
"""Frames that a player is gone after a death; its life goes on falling by so much a frame, and up to 0 again."""
LEAST_GOLD, MOST_GOLD = 30, 70
PASSIVE_EVERY = 10
"""Frames from one gold that everyone gets to the next."""
FADE = 0.7
"""What is left after a frame of the mark of taken gold."""
NEAR_GOLD, NEAR_HUNTER = 0.9, 1.4
"""New gold lies at least so far from the player, and the hunter from one that begins or comes back, where possible."""
TRIES = 8
Q = ABILITIES.index("q")


@dataclass
class State:
    """All there is of E episodes; the first dimension of each field is the episode."""

    player: Floats
    """(E, 2) in cells, y upwards; also of a dead one, where it fell."""
    life: Floats
    """(E,) of a player, 1 at most; below 0 while it is dead."""
    hunter: Floats
    gold: Floats
    amount: Ints
    dead: Ints
    """(E,) frames until the player is back; 0 while it lives."""
    taken: Floats
    """(E, 3) where gold was taken last, and how bright its mark still is."""
    frame: Ints

    def take(self, episodes: Ints) -> State:
        """The state of some episodes, any of them as often as it is named, as copies."""
        return State(*(getattr(self, field.name)[episodes] for field in dataclasses.fields(self)))


def direction(movement: Ints) -> Floats:
    """Unit vectors of movements (E,), zero for none: (E, 2)."""
    angle = movement * (2 * np.pi / SLICES)
    return np.where((movement == NONE)[:, None], 0.0, np.stack([np.cos(angle), np.sin(angle)], axis=1))


def way(start: Floats, end: Floats) -> Floats:
    """The shortest way from places to others (…, 2), around the world where that is shorter: (…, 2)."""
    return (end - start + SIZE / 2) % SIZE - SIZE / 2


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
        sway = random.normal(0.0, SWAY, len(state.frame))
        places = random.uniform(0, SIZE, (len(state.frame), TRIES, 2))
        amounts = random.integers(LEAST_GOLD, MOST_GOLD + 1, len(state.frame))
        state.frame += 1
        state.taken[:, 2] *= FADE
        _come_back(state, places)
        alive = state.dead == 0
        state.player = (state.player + SPEED * direction(movement) * alive[:, None]) % SIZE
        _hunt(state, sway, alive)
        death = _drain(state, alive)
        away = _length(way(state.player, state.gold))
        took = alive & ~death & ((away < TOUCH) | ((away < REACH) & abilities[:, Q]))
        gained = np.where(took, state.amount, 0).astype(np.float64)
        state.taken[took] = np.column_stack([state.gold, np.ones(len(alive))])[took]
        state.gold[took] = _far(places, state.player, NEAR_GOLD)[took]
        state.amount = np.where(took, amounts, state.amount)
        return gained + (state.frame % PASSIVE_EVERY == 0), death

    def latents(self) -> NDArray[np.float32]:
        """What is seen of each episode now: (E, 4, 3, 3), as `picture.render` says."""
        return seen(self.state)


def seen(state: State) -> NDArray[np.float32]:
    """What is seen of E episodes, their players in the middle: (E, 4, 3, 3)."""
    ones = np.ones(len(state.frame))
    things = [
        (state.hunter, ones), (state.gold, state.amount / MOST_GOLD), (state.taken[:, :2], state.taken[:, 2]),
    ]  # fmt: skip
    inview = [(MIDDLE + way(state.player, place), bright) for place, bright in things]
    return render(inview, state.life)


def _beginning(count: int, random: np.random.Generator) -> State:
    places = random.uniform(0, SIZE, (3, count, TRIES, 2))
    player = places[0, :, 0]
    return State(
        player=player.copy(),
        life=np.ones(count),
        hunter=_far(places[1], player, NEAR_HUNTER),
        gold=_far(places[2], player, NEAR_GOLD),
        amount=random.integers(LEAST_GOLD, MOST_GOLD + 1, count),
        dead=np.zeros(count, np.int64),
        taken=np.zeros((count, 3)),
        frame=np.zeros(count, np.int64),
    )


def _come_back(state: State, places: Floats) -> None:
    """Dead players wait; those that have waited live again where they fell, the hunter far from them."""
    back, dead = state.dead == 1, state.dead > 1
    state.dead = np.maximum(state.dead - 1, 0)
    state.life[dead] = np.maximum(state.life - SINKING, -SINKING * state.dead)[dead]
    state.hunter[back] = _far(places, state.player, NEAR_HUNTER)[back]
    state.life[back] = 1.0


def _hunt(state: State, sway: Floats, alive: Bools) -> None:
    """The hunter makes a step to a living player, `sway` radians off."""
    there = way(state.hunter, state.player)
    angle = np.arctan2(there[:, 1], there[:, 0]) + sway
    pace = np.minimum(HUNTER_SPEED, _length(there)) * alive
    state.hunter = (state.hunter + pace[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)) % SIZE


def _drain(state: State, alive: Bools) -> Bools:
    """Take life by the hunter's nearness, or give some back; who dies of it: (E,)."""
    near = 1 - _length(way(state.player, state.hunter)) / CONTACT
    life = np.where(near > 0, state.life - DRAIN * near, np.minimum(1.0, state.life + HEALING))
    death = alive & (life <= 0)
    state.life = np.where(alive, life, state.life)
    state.dead = np.where(death, DEAD, state.dead)
    return death


def _far(places: Floats, other: Floats, least: float) -> Floats:
    """Of the places (E, tries, 2) the first that is `least` from the other (E, 2), else the farthest: (E, 2)."""
    away = _length(way(other[:, None], places))
    chosen: Floats = places[np.arange(len(places)), np.minimum(away, least).argmax(axis=1)]
    return chosen


def _length(vectors: Floats) -> Floats:
    return np.hypot(vectors[..., 0], vectors[..., 1])
