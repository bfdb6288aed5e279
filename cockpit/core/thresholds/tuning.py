"""Thresholds while a person moves them: steps, locks, objectives, undo, and saving only what was reviewed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cockpit.core.thresholds.review import HeadReview, Row, ThresholdReview
from engines.basics.errors import UserError

FINE, COARSE = 1000, 20
"""Parts of the range between the lowest and the highest sensible threshold that a step is long."""
MOST_UNDO = 200


@dataclass(frozen=True)
class Sheet:
    """What saving would change, to be read before it is done."""

    new: Mapping[str, float]
    rows: list[Row]
    """Of what changes only."""
    before: Mapping[str, float | None]
    after: Mapping[str, float | None]
    refusal: str
    """Why it cannot be saved; empty where it can."""


class Tuning:
    """New thresholds beside the saved ones of `review`. A change that raises `UserError` has not been made."""

    def __init__(self, review: ThresholdReview) -> None:
        self.review = review
        self.heads: dict[str, HeadReview] = dict(review.heads)
        self.new = dict(review.saved)
        self.locked: set[str] = set()
        self._past: list[tuple[str, dict[str, float]]] = []
        """What was done, and the thresholds before it."""
        self._shown: Mapping[str, float] | None = None

    @property
    def changed(self) -> list[str]:
        return [name for name, value in self.new.items() if value != self.review.saved[name]]

    def take_over(self, earlier: Tuning) -> None:
        """Go on with an earlier review of the run: what was changed in it, can be undone and is locked, and by what
        each head is judged.
        """
        saved, before = self.review.saved, earlier.review.saved

        def moved(state: Mapping[str, float]) -> dict[str, float]:
            return saved | {name: value for name, value in state.items() if name in saved and value != before[name]}

        self.locked = earlier.locked & self.new.keys()
        self.new = moved(earlier.new)
        self._past = [(what, moved(state)) for what, state in earlier._past]
        for name in self.heads.keys() & earlier.heads.keys():
            objective = earlier.heads[name].head.objective
            if objective != earlier.review.heads[name].head.objective:
                self.heads[name] = self.heads[name].aimed_at(objective)

    # -- changing --------------------------------------------------------------------------------------------------

    def set(self, name: str, value: float) -> None:
        low, high = self.heads[name].head.bounds
        if not low <= value <= high:
            raise UserError(f"The threshold of {name} must be a number from {low:g} to {high:g}.")
        if name in self.locked:
            raise UserError(f"{name} is locked: L unlocks it.")
        self._change(f"set {name}", {name: value})

    def move(self, name: str, direction: int, *, coarse: bool) -> None:
        """To the next multiple of a step; a fine one goes on until it changes what is said yes to, if anything can."""
        it, at = self.heads[name], self.new[name]
        self.set(name, coarse_step(it, at, direction) if coarse else fine_step(it, at, direction))

    def optimise(self, names: Iterable[str]) -> int:
        """Give heads their best threshold, all but the locked and those that gain too little; the number that have it.

        Raises `UserError` where none gains enough. Resampling takes a moment: not for the thread that paints, unless
        `certainty` is known.
        """
        saved = self.review.saved
        best = {name: self.heads[name].better(saved[name]) for name in names if name not in self.locked}
        found = {name: value for name, value in best.items() if value is not None}
        if not found:
            raise UserError("No change: no best threshold gains enough over the saved one.")
        self._change(f"optimise {len(found)}", found)
        return len(found)

    def restore(self, name: str) -> None:
        """Back to what is saved."""
        self.set(name, self.review.saved[name])

    def lock(self, name: str) -> None:
        """Or unlock: a locked threshold stays as it is."""
        self.locked ^= {name}

    def undo(self) -> bool:
        """Take back the last change; whether there was one. Steps of one threshold in a row are one change."""
        if not self._past:
            return False
        self.new = self._past.pop()[1]
        return True

    @property
    def can_undo(self) -> bool:
        return bool(self._past)

    def next_objective(self, name: str) -> None:
        """Judge a head by the next of its objectives; the default one of its project comes first again in the end."""
        it, own = self.heads[name], self.review.heads[name]
        titles = [objective.title for objective in own.objectives]
        following = (titles.index(it.head.objective.title) + 1) % len(titles)
        self.heads[name] = own if following == 0 else it.aimed_at(own.objectives[following])

    def _change(self, what: str, values: Mapping[str, float]) -> None:
        after = {**self.new, **values}
        if after == self.new:
            return
        if not (self._past and self._past[-1][0] == what and what.startswith("set")):
            self._past = [*self._past[1 - MOST_UNDO :], (what, self.new)]
        self.new = after

    # -- saving ----------------------------------------------------------------------------------------------------

    def row(self, name: str) -> Row:
        return self._row(name, self.new)

    def _row(self, name: str, new: Mapping[str, float]) -> Row:
        return self.heads[name].row(self.review.saved[name], new[name])

    def sheet(self, new: Mapping[str, float]) -> Sheet:
        """What saving `new` would change; takes a moment with many frames."""
        review = self.review
        rows = [self._row(name, new) for name, value in new.items() if value != review.saved[name]]
        return Sheet(new, rows, review.totals_saved, review.totals(new), self._refusal())

    def _refusal(self) -> str:
        if self.review.file.content is None:
            return f"There is no exported config to save to: make one with `cockpit export {self.review.run.info.id}`."
        return self.review.warning

    def shown(self, sheet: Sheet) -> None:
        """A person has it before their eyes: exactly these thresholds may be saved now."""
        self._shown = dict(sheet.new)

    def save(self, *, who: str, now: float) -> None:
        """Raises `UserError` where these very thresholds were not reviewed, else as `ThresholdReview.save`."""
        if self._shown != self.new:
            raise UserError("Nothing was saved: review these thresholds first. S shows what would change.")
        self.review.save(self.new, who=who, now=now)


def fine_step(it: HeadReview, at: float, direction: int) -> float:
    """The next multiple of a 1,000th of the range that changes what is said yes to; where none does, the next one."""
    near = _step(it, at, direction, FINE)
    if not it.judged:
        return near
    score = it.tally.lowest_from(at) if direction > 0 else it.tally.highest_below(at)
    if score is None:
        return near
    low, high = it.head.bounds
    if direction > 0:  # the score is said yes to, until the threshold lies above it
        return max(near, _step(it, score, 1, FINE)) if score < high else near
    if score < low:
        return near
    above = _step(it, score, 1, FINE)
    return min(near, above if above <= score else _step(it, above, -1, FINE))


def coarse_step(it: HeadReview, at: float, direction: int) -> float:
    """The next multiple of a 20th of the range."""
    return _step(it, at, direction, COARSE)


def _step(it: HeadReview, at: float, direction: int, parts: int) -> float:
    low, high = it.head.bounds
    part = (high - low) / parts
    place = (at - low) / part
    number = math.floor(place + 1e-6) + 1 if direction > 0 else math.ceil(place - 1e-6) - 1
    return min(max(round(low + number * part, 9), low), high)
