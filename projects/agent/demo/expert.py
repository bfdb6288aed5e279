"""The scripted expert: good at gold, careless of the hunter, and noisy. It plays many episodes side by side.

It goes in six directions. Its flaw can be mended: of the hunter that comes near it takes notice about one time in
three, and runs into it else on the way to gold. A player that always notices (`CAREFUL`) shows what the world has to
give. What it presses says nothing of whether it lives: dead, it goes on for what it sees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projects.agent.demo.arena import REACH, Bools, Floats, Ints, State, way
from projects.agent.layout import ABILITIES, MOVEMENTS, NONE, SLICES

ALARM = 0.75
"""The hunter is near within this distance."""
FLEEING = 2.0
"""How much the way off the hunter counts against the way to the gold, at half the distance of alarm."""
WAYS = 6
HOLD = np.deg2rad(40)
"""It keeps its direction while that is so near to the one it wants; half of the way to the next is 30°."""
SLICE = 2 * np.pi / SLICES
STRAYS = np.array([*range(0, SLICES, SLICES // WAYS), NONE])
"""Movements that it strays with."""
Q, W = ABILITIES.index("q"), ABILITIES.index("w")


@dataclass(frozen=True)
class Habits:
    """Probabilities, by the frame but for `notices`."""

    notices: float = 0.33
    """That the hunter is noticed, once each time it comes near."""
    strays: float = 0.02
    returns: float = 0.2
    """Begins to go in a drawn direction (or none), and ends that."""
    takes: float = 0.85
    """Presses q with gold in reach."""
    presses: float = 0.01
    """Presses q without."""
    shouts: float = 0.7
    """Presses w, which does nothing, while it flees."""


EXPERT = Habits()
STEADY = Habits(strays=0.0, returns=1.0, takes=1.0, presses=0.0)
"""The expert without noise, its flaw left."""
CAREFUL = Habits(notices=1.0, strays=0.0, returns=1.0, takes=1.0, presses=0.0)


@dataclass
class Mind:
    """What the expert of each episode (E,) has in mind."""

    last: Ints
    """Its last movement."""
    near: Bools
    noticed: Bools
    stray: Ints
    """The movement it strays with; -1 while it does not."""

    @classmethod
    def new(cls, count: int) -> Mind:
        return cls(np.full(count, NONE), np.zeros(count, bool), np.zeros(count, bool), np.full(count, -1))

    def take(self, episodes: Ints) -> Mind:
        """Of some episodes, any of them as often as it is named, as copies."""
        return Mind(self.last[episodes], self.near[episodes], self.noticed[episodes], self.stray[episodes])


@dataclass(frozen=True)
class _Wishes:
    """What would be done of each episode (E,): to the gold, off the hunter, and what decides between them."""

    near: Bools
    gold: Ints
    off: Ints
    reach: Bools


class Expert:
    """Plays E episodes; what it draws comes from its own generator, the same amount each frame."""

    def __init__(self, count: int, habits: Habits, random: np.random.Generator) -> None:
        self.mind = Mind.new(count)
        self._habits, self._random = habits, random

    def act(self, state: State) -> tuple[Ints, Bools]:
        """The next movements (E,) and abilities (E, 8)."""
        habits, mind, wishes = self._habits, self.mind, _wishes(state, self.mind.last)
        drawn = self._random.random((4, len(state.frame)))
        strange = self._random.choice(STRAYS, len(state.frame))
        entered = wishes.near & ~mind.near
        mind.noticed = wishes.near & np.where(entered, drawn[0] < habits.notices, mind.noticed)
        mind.near = wishes.near
        straying = mind.stray >= 0
        mind.stray = np.where(
            straying,
            np.where(drawn[1] < habits.returns, -1, mind.stray),
            np.where(drawn[1] < habits.strays, strange, -1),
        )
        movement = np.where(mind.noticed, wishes.off, wishes.gold)
        movement = np.where(mind.stray >= 0, mind.stray, movement)
        mind.last = movement
        abilities = np.zeros((len(movement), len(ABILITIES)), bool)
        abilities[:, Q] = drawn[2] < np.where(wishes.reach, habits.takes, habits.presses)
        abilities[:, W] = mind.noticed & (drawn[3] < habits.shouts)
        return movement, abilities


def action_odds(state: State, mind: Mind, habits: Habits) -> tuple[Floats, Floats]:
    """The probabilities of what an expert would do, before it draws: movements (E, 19) and abilities (E, 8)."""
    wishes = _wishes(state, mind.last)
    notices = wishes.near * np.where(mind.near, mind.noticed, habits.notices)
    straying = mind.stray >= 0
    episodes = np.arange(len(notices))
    sensible = np.zeros((len(notices), MOVEMENTS))
    sensible[episodes, wishes.off] += notices
    sensible[episodes, wishes.gold] += 1 - notices
    movement = np.where(straying, habits.returns, 1 - habits.strays)[:, None] * sensible
    movement[:, STRAYS] += np.where(straying, 0.0, habits.strays / len(STRAYS))[:, None]
    movement[straying, mind.stray[straying]] += 1 - habits.returns
    abilities = np.zeros((len(notices), len(ABILITIES)))
    abilities[:, Q] = np.where(wishes.reach, habits.takes, habits.presses)
    abilities[:, W] = notices * habits.shouts
    return movement, abilities


def _wishes(state: State, last: Ints) -> _Wishes:
    to_gold, off = way(state.player, state.gold), way(state.hunter, state.player)
    away, danger = np.hypot(*to_gold.T), np.hypot(*off.T)
    fear = FLEEING * (ALARM / 2 / np.maximum(danger, 0.1))
    fleeing = to_gold / np.maximum(away, 1e-6)[:, None] + (fear / np.maximum(danger, 1e-6))[:, None] * off
    return _Wishes(danger < ALARM, _movement(to_gold, last), _movement(fleeing, last), away < REACH)


def _movement(wanted: Floats, last: Ints) -> Ints:
    """The movement of wanted directions (E, 2): the last one while it is near enough."""
    angle = np.arctan2(wanted[:, 1], wanted[:, 0])
    off = np.abs((angle - last * SLICE + np.pi) % (2 * np.pi) - np.pi)
    nearest = np.rint(angle * WAYS / (2 * np.pi)).astype(np.int64) % WAYS * (SLICES // WAYS)
    return np.where((last < SLICES) & (off < HOLD), last, nearest)
