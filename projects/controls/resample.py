"""From ticks at uneven times to frames at a steady rate: no press is lost or doubled, and no degree of a turn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Frames = NDArray[np.int64]


class Clock:
    """Frames of `1 / fps` seconds that start with the first tick.

    times: (ticks,) seconds, rising; a tick lasts until the next, the last as long as a usual one.
    """

    def __init__(self, times: Floats, fps: float) -> None:
        usual = float(np.median(np.diff(times)))
        self.ends = np.append(times, times[-1] + usual) - times[0]
        """(ticks + 1,): where each tick begins, and where the last one ends, in seconds from the first."""
        self.frame: Frames = np.floor(self.ends[:-1] * fps + 1e-6).astype(np.int64)
        """(ticks,): the frame in which each tick begins."""
        self.frames = max(int(np.ceil(self.ends[-1] * fps - 1e-6)), int(self.frame[-1]) + 1)
        self.fps = fps

    def held(self, ticks: Bools) -> Bools:
        """(ticks, n) to (frames, n): on where any tick that begins in the frame is on, else as the last tick before."""
        latest = np.searchsorted(self.frame, np.arange(self.frames), side="right") - 1
        frames: Bools = ticks[latest]
        np.logical_or.at(frames, self.frame, ticks)
        return frames

    def pulses(self, ticks: Bools) -> Bools:
        """(ticks,) to (frames,): every pulse once, in its frame or, where that has one already, the next free one."""
        frames = np.zeros(self.frames, bool)
        free = 0
        for frame in self.frame[ticks].tolist():
            free = max(free, frame)
            if free < self.frames:
                frames[free] = True
            free += 1
        return frames

    def moved(self, ticks: Floats) -> Floats:
        """(ticks, n) amounts to (frames, n) amounts: each is spread evenly over its tick, so that sums are kept."""
        total = np.vstack([np.zeros(ticks.shape[1]), np.cumsum(ticks, axis=0)])
        edges = np.arange(self.frames + 1) / self.fps
        return np.column_stack([np.diff(np.interp(edges, self.ends, column)) for column in total.T])


def limited(amounts: Floats, most: float) -> Floats:
    """(frames, n): no amount beyond ± `most`; what is too much for a frame is done in the following ones."""
    result = np.empty_like(amounts)
    owed = np.zeros(amounts.shape[1])
    for frame, amount in enumerate(amounts):
        owed = owed + amount
        result[frame] = owed.clip(-most, most)
        owed = owed - result[frame]
    return result
