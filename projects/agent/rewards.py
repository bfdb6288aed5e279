"""Rewards of frames: .01 for each gold, -10 for a death, which is read from the health bar."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projects.agent.features import Features
from projects.agent.layout import AFTER, BEFORE, DEATH_REWARD, EVENT_GOLD, GOLD_REWARD, REFRACTORY

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Rewards:
    """Of the n frames of some features, or of a timeline.

    reward: (n,) float32, 0 where it is not known. known: (n,), frames that the rule could judge: their 5 frames before
    and 3 after are all there. death, event: (n,), in known frames alone.
    """

    reward: NDArray[np.float32]
    known: Bools
    death: Bools
    event: Bools


def rewards(features: Features) -> Rewards:
    """Rewards of the frames of `features`, row by row."""
    first = features.number[0]
    place = features.number - first
    there = np.zeros(int(place[-1]) + 1, bool)
    there[place] = True
    present = np.zeros_like(there)
    present[place] = ~np.isnan(features.bar).any(axis=1)
    whole = (_sum(there, -BEFORE, 0) == BEFORE) & (_sum(there, 1, AFTER + 1) == AFTER)
    known = whole[place]
    death = deaths(present, there)[place] & known
    reward = np.where(known, GOLD_REWARD * features.gold + DEATH_REWARD * death, 0.0).astype(np.float32)
    return Rewards(reward, known, death, known & events(features.gold, death))


def events(gold: NDArray[np.floating], death: Bools) -> Bools:
    """Where something happens that windows are drawn for and chances are given of: a gold step of 10, or a death."""
    return death | (gold >= EVENT_GOLD)


def deaths(present: Bools, there: Bools) -> Bools:
    """Frames (n,) at which the bar was lost: each time once, and not again within 20 frames.

    present: whether the bar is there. there: whether the frame is; one that is missing is neither with bar nor without.
    Lost: absent now, there in at least 3 of the 5 frames before, absent in at least 2 of the 3 after; this holds for
    three frames in a row, of which the first one counts.
    """
    absent = there & ~present
    lost = absent & (_sum(present & there, -BEFORE, 0) >= 3) & (_sum(absent, 1, AFTER + 1) >= 2)
    found = np.flatnonzero(lost & ~np.concatenate([[False], lost[:-1]]))
    died = np.zeros(len(present), bool)
    last = -REFRACTORY
    for frame in found.tolist():
        if frame - last >= REFRACTORY:
            died[frame], last = True, frame
    return died


def _sum(flags: Bools, first: int, end: int) -> NDArray[np.int64]:
    """For each frame t how many of `flags` are set in [t + first, t + end), as far as these are there: (n,)."""
    total = np.concatenate([[0], np.cumsum(flags)])
    frames = np.arange(len(flags))
    upper, lower = np.clip(frames + end, 0, len(flags)), np.clip(frames + first, 0, len(flags))
    counted: NDArray[np.int64] = total[upper] - total[lower]
    return counted
