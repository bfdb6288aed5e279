"""From ticks at uneven times to frames at a steady rate: no press is lost or doubled, and no degree of a turn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from projects.controls.layout import BINARY, CONTROL_NAMES, COORDINATES, HOTBAR, LOOK
from projects.controls.recordings import Recording
from projects.controls.sending import PULSES

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Frames = NDArray[np.int64]
_ROUNDING = 1e-9
"""Less than this is owed only because sums of floats are not exact."""


class Clock:
    """Frames of `1 / fps` seconds that start with the first tick.

    times: (ticks,) seconds, rising; a tick lasts until the next, the last as long as a usual one.
    """

    def __init__(self, times: Floats, fps: float) -> None:
        self.fps = fps
        usual = float(np.median(np.diff(times)))
        ends = (np.append(times, times[-1] + usual) - times[0]) * fps
        whole = np.round(ends)
        self.ends = np.where(np.abs(ends - whole) < 1e-6, whole, ends)
        """(ticks + 1,): where each tick begins, and where the last one ends, in frames from the first.

        What is a whole number but for rounding is made one, so that a log of the same rate passes unchanged.
        """
        self.frame: Frames = np.floor(self.ends[:-1]).astype(np.int64)
        """(ticks,): the frame in which each tick begins."""
        self.frames = max(int(np.ceil(self.ends[-1])), int(self.frame[-1]) + 1)
        steady = np.arange(self.frames)
        self.latest: Frames = np.searchsorted(self.frame, steady, side="right") - 1
        """(frames,): the last tick that has begun by the end of each frame."""
        self.first: Frames = np.minimum(np.searchsorted(self.frame, steady), len(times) - 1)
        """(frames,): the first tick that begins in each frame, or after it where none does."""

    def held(self, ticks: Bools) -> Bools:
        """(ticks, n) to (frames, n): on where any tick that begins in the frame is on, else as the last tick before."""
        frames: Bools = ticks[self.latest]
        np.logical_or.at(frames, self.frame, ticks)
        return frames

    def places(self, ticks: Bools) -> Frames:
        """The frame of each of the pulses `ticks: (ticks,)`: its own or, where that has one already, the next free one.

        A pulse for which no frame is left gets one beyond the last.
        """
        places: list[int] = []
        free = 0
        for frame in self.frame[ticks].tolist():
            free = max(free, frame)
            places.append(free)
            free += 1
        return np.array(places, np.int64)

    def pulses(self, ticks: Bools) -> Bools:
        """(ticks,) to (frames,): every pulse once, in its place."""
        frames = np.zeros(self.frames, bool)
        places = self.places(ticks)
        frames[places[places < self.frames]] = True
        return frames

    def moved(self, ticks: Floats) -> Floats:
        """(ticks, n) amounts to (frames, n) amounts: each is spread evenly over its tick, so that sums are kept."""
        total = np.vstack([np.zeros(ticks.shape[1]), np.cumsum(ticks, axis=0)])
        edges = np.arange(self.frames + 1)
        return np.column_stack([np.diff(np.interp(edges, self.ends, column)) for column in total.T])


def limited(amounts: Floats, most: float) -> Floats:
    """(frames, n): no amount beyond ± `most`; what is too much for a frame is done in the following ones."""
    result = np.empty_like(amounts)
    owed = np.zeros(amounts.shape[1])
    for frame, amount in enumerate(amounts):
        owed = owed + amount
        result[frame] = owed.clip(-most, most)
        owed = owed - result[frame]
        owed[np.abs(owed) < _ROUNDING] = 0.0
    return result


def resampled(recording: Recording, fps: float) -> Recording:
    """The recording at `fps` frames a second: what happens between two frames belongs to the first of them.

    Coordinates are interpolated; flags, visibilities, state and cursor are those of the newest frame by then. What is
    held stays held, a press of one frame is one frame, a slot is chosen once, and turns keep their sums.
    """
    times = recording.timestamps - recording.timestamps[0]
    clock = Clock(times, fps)
    steady = np.arange(clock.frames) / fps
    newest = np.searchsorted(times, steady + _ROUNDING, side="right") - 1
    frames = recording.frames[newest]
    after = np.minimum(newest + 1, len(times) - 1)
    share = np.clip((steady - times[newest]) / np.maximum(times[after] - times[newest], _ROUNDING), 0, 1)[:, None]
    step = recording.frames[after, :COORDINATES] - frames[:, :COORDINATES]
    frames[:, :COORDINATES] += (share * step).astype(np.float32)
    controls = recording.controls[newest]
    controls[:, LOOK] = limited(clock.moved(recording.controls[:, LOOK].astype(np.float64)), 1.0)
    controls[:, BINARY] = _on_off(recording.controls[:, BINARY] > 0.5, clock)
    chosen = recording.controls[:, HOTBAR] > 0.5
    controls[:, HOTBAR] = 0
    choices = np.flatnonzero(chosen.any(axis=1))
    places = clock.places(np.isin(np.arange(len(times)), choices))
    slots = chosen[choices].argmax(axis=1)[places < clock.frames]
    controls[places[places < clock.frames], HOTBAR[0] + slots] = 1
    return replace(
        recording, frames=frames, controls=controls, state=recording.state[newest], timestamps=steady, fps=fps
    )


def _on_off(on: Bools, clock: Clock) -> Bools:
    """(ticks, 15) to (frames, 15): pulses of one tick stay pulses, all else is held."""
    none = np.zeros((1, on.shape[1]), bool)
    taps = on & ~np.concatenate([none, on[:-1]]) & ~np.concatenate([on[1:], none])
    taps &= [CONTROL_NAMES[column] in PULSES for column in BINARY]
    return clock.held(on & ~taps) | np.column_stack([clock.pulses(column) for column in taps.T])
