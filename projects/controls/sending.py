"""What a game is sent of an on-off control at a threshold: the policy's rules over all frames of a review at once.

`docs/controls.md` lists the rules; `projects.controls.policy.rules` carries them out frame by frame. Torch-free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.thresholds.tally import raised
from projects.controls.layout import BINARY, CONTROL_NAMES

Bools = NDArray[np.bool_]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]

PULSE_COOLDOWN = 0.3
"""Seconds from one firing of a pulse to the next."""
LONGEST_HOLD = 10.0
"""Seconds after which a held key is let go of, whatever the model says."""
LONGEST_GAP = 0.5
"""Seconds between frames beyond which the stream counts as broken: the difference of two poses is no velocity then."""
LEAST_FRAMES = 3
"""Frames that must be buffered before anything is pressed."""
ROUNDING = 1e-6
"""Seconds: times that differ by less are equal, so that 6 frames of 1/20 s are .3 s whatever the rounding."""
PULSES = (
    "jump", "attack", "drop_item", "swap_offhand", "open_inventory", "inv_left_click", "inv_right_click",
)  # fmt: skip
"""The controls that are pulses unless a config says otherwise; the others are held."""


@dataclass(frozen=True)
class Rules:
    """How the 15 on-off controls are sent. margins: (15,) of the hysteresis. holds: (15,) held keys; else pulses."""

    margins: Doubles
    holds: Bools

    @classmethod
    def of(cls, hysteresis_margin: float, pulse_margin: float | None, kinds: Mapping[str, str]) -> Rules:
        """From the settings of `post_processing`; without a `pulse_margin`, pulses have that of the held keys."""
        names = (CONTROL_NAMES[column] for column in BINARY)
        holds = np.array([kinds.get(name, "pulse" if name in PULSES else "hold") == "hold" for name in names])
        of_pulses = hysteresis_margin if pulse_margin is None else pulse_margin
        return cls(np.where(holds, hysteresis_margin, of_pulses), holds)


def levels(thresholds: Doubles, margins: Doubles) -> tuple[Doubles, Doubles]:
    """From which probability on a control goes on, and below which it goes off: (n,) each.

    The margin is at most half the way from the threshold to 0 and to 1: beyond them no probability could ever turn a
    control on, or off again.
    """
    space = np.maximum(np.minimum(thresholds, 1 - thresholds) / 2, 0)
    kept = np.minimum(margins, space)
    return thresholds + kept, thresholds - kept


def streams(groups: Ints, times: Doubles) -> Ints:
    """(n,): numbers of the streams, which end with a session, a gap or a clock that does not go forward."""
    step = np.diff(times)
    breaks = (np.diff(groups) != 0) | (step <= 0) | (step > LONGEST_GAP)
    return np.concatenate([[0], np.cumsum(breaks)]) if len(times) else np.zeros(0, np.int64)


def far_apart(stream: Ints, times: Doubles) -> Doubles:
    """(n,): `times` inside each stream, with the streams so far apart that the first pulse of each may always fire."""
    first = np.append(True, stream[1:] != stream[:-1])[: len(times)]
    begins = times[np.maximum.accumulate(np.where(first, np.arange(len(times)), 0))]
    clock: Doubles = times - begins
    apart: Doubles = clock + np.cumsum(first) * (clock.max(initial=0.0) + 1)
    return apart


def asked(groups: Ints, stream: Ints) -> Bools:
    """(n,): where the policy decides: after a break inside a session it waits until three frames are buffered.

    The first frame of a review's session has a full window before it.
    """
    places = np.arange(len(stream))
    first = np.append(True, stream[1:] != stream[:-1])[: len(stream)]
    start = np.maximum.accumulate(np.where(first, places, 0))
    broken = (start > 0) & (groups[start] == groups[start - 1])
    return np.asarray(~broken | (places - start >= LEAST_FRAMES - 1))


class SentControl:
    """One control on the n frames where it means something, in time order.

    Args:
        scores: (n,) its probabilities. rows: (n,) ascending, the place of each frame among all frames of the review:
            a frame between two of them on which the control means nothing turns it off.
        stream, clock, decided: (n,) of `streams`, `far_apart` and `asked`.
        margin, hold: of `Rules`.
    """

    def __init__(
        self, scores: NDArray[np.floating], rows: Ints, stream: Ints, clock: Doubles, decided: Bools,
        margin: float, hold: bool,
    ) -> None:  # fmt: skip
        n = len(scores)
        self._begins = np.ones(n, np.bool_)
        self._begins[1:] = (np.diff(rows) != 1) | (np.diff(stream) != 0)
        self.margin = margin
        self._clock, self._hold = clock, hold
        if not decided.all():
            scores = np.where(decided, scores, -np.inf)
        self.scores = through_margin(scores, self._begins, margin) if margin > 0 else scores
        """(n,): the highest threshold at which the control is on, after hysteresis."""

    def at(self, threshold: float) -> Bools:
        """(n,): on which frames it is sent."""
        on = self.scores >= raised(np.asarray(threshold, np.float64), self.scores.dtype)
        before = np.append(False, on[:-1])[: len(on)]
        edge = on & (~before | self._begins)
        return self._held(on, edge) if self._hold else self._fired(edge)

    def _held(self, on: Bools, edge: Bools) -> Bools:
        """Without what is beyond ten seconds of a press."""
        starts = np.flatnonzero(edge)
        goes_on = np.append(on[1:] & ~edge[1:], False)[: len(on)]
        stops = np.flatnonzero(on & ~goes_on)
        longest = LONGEST_HOLD - ROUNDING
        long = self._clock[stops] - self._clock[starts] >= longest
        for start, stop in zip(starts[long], stops[long], strict=True):
            release = np.searchsorted(self._clock[start : stop + 1], self._clock[start] + longest)
            on[start + release : stop + 1] = False
        return on

    def _fired(self, edge: Bools) -> Bools:
        """Without what is within the cooldown of the last one: from each that fires to the next that may.

        A press that is a cooldown after the one before fires whatever that did, so chains start at each of these, and
        all go on side by side.
        """
        at = np.flatnonzero(edge)
        clock = self._clock[at]
        free = clock + (PULSE_COOLDOWN - ROUNDING)
        fires = np.append(True, clock[1:] >= free[:-1])[: len(at)]
        places = np.flatnonzero(fires)
        while len(places):
            places = np.searchsorted(clock, free[places])
            places = places[places < len(at)]
            places = places[~fires[places]]
            fires[places] = True
        sent = np.zeros(len(edge), np.bool_)
        sent[at[fires]] = True
        return sent


def presses(arrays: Mapping[str, NDArray[Any]]) -> list[Doubles]:
    """How long each press of each of the 15 controls is in the data of a review, in seconds: a frame is its step."""
    stream = streams(arrays["groups"], arrays["times"])
    step = np.append(np.diff(arrays["times"]), 0.0)
    inside = np.append(stream[1:] == stream[:-1], False)[: len(stream)]
    step = np.where(inside, step, np.median(step[inside]) if inside.any() else 0.0)
    found = []
    for on in (arrays["targets"] & arrays["masks"]).T:
        begins = on & ~np.append(False, on[:-1] & inside[:-1])[: len(on)]
        number = np.cumsum(begins)[on] - 1
        found.append(np.bincount(number, weights=step[on], minlength=int(begins.sum())).astype(np.float64))
    return found


def through_margin(scores: NDArray[np.floating], begins: Bools, margin: float) -> Doubles:
    """(n,): the highest threshold at which hysteresis has a control on, on each of the frames `scores: (n,)`.

    With `levels(t) = (rise, fall)`, both of which grow with t: a probability p turns a control on at all t up to
    rise⁻¹(p) and keeps it on at all t up to fall⁻¹(p). So the highest is s[i] = max(rise⁻¹(p[i]),
    min(s[i − 1], fall⁻¹(p[i]))), from nothing where a stretch `begins`, and a threshold compares with s as it does
    with p where there is no margin. A score that is not a number stays so, and the others are as without it.
    """
    p = scores.astype(np.float64)
    damaged = np.isnan(p)
    rise = np.maximum(p - margin, np.maximum(p / 1.5, 2 * p - 1))
    fall = np.minimum(p + margin, np.minimum(2 * p, (p + 0.5) / 1.5))
    fall[begins] = rise[begins]
    rise[damaged], fall[damaged] = -np.inf, np.inf
    highest = clamped(rise, fall)
    highest[damaged] = np.nan
    return highest


def clamped(low: Doubles, high: Doubles) -> Doubles:
    """(n,): s[i] = max(low[i], min(s[i − 1], high[i])), from −∞; low ≤ high.

    Stretches of √n side by side: each is one clamp, which gives what the next begins with.
    """
    n = len(low)
    size = max(1, math.isqrt(n))
    stretches = -(-n // size)
    limits = np.empty((2, stretches * size))
    limits[0, :n], limits[1, :n] = low, high
    limits[0, n:], limits[1, n:] = -np.inf, np.inf
    lows, highs = np.ascontiguousarray(limits.reshape(2, stretches, size).transpose(0, 2, 1))
    lowest, highest = np.full(stretches, -np.inf), np.full(stretches, np.inf)
    for a, b in zip(lows, highs, strict=True):
        lowest, highest = np.maximum(a, np.minimum(lowest, b)), np.maximum(a, np.minimum(highest, b))
    begin, carried = [], -math.inf
    for a, b in zip(lowest.tolist(), highest.tolist(), strict=True):
        begin.append(carried)
        carried = max(a, min(carried, b))
    found, value = np.empty_like(lows), np.array(begin)
    for k, (a, b) in enumerate(zip(lows, highs, strict=True)):
        value = found[k] = np.maximum(a, np.minimum(value, b))
    each: Doubles = found.T.ravel()[:n].copy()
    return each
