"""Training samples as ranges of indices: what 800 million windows take is set by their ranges, not by their number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class Ranges:
    """The samples from each of `starts: (ranges,)` to before the same of `stops: (ranges,)`, in this order.

    Raises ValueError where one stops before it starts.
    """

    def __init__(self, starts: Indices, stops: Indices) -> None:
        if len(starts) != len(stops) or (stops < starts).any():
            raise ValueError("ranges: expected a stop for each start, at it or after it")
        self.starts, self.stops = starts, stops
        self._ends: Indices = np.cumsum(stops - starts)

    @classmethod
    def of(cls, samples: Samples) -> Ranges:
        """The same samples in the same order; of an array the runs of indices that follow each other."""
        match samples:
            case Ranges():
                return samples
            case range(start=start, stop=stop, step=1):
                return cls(np.array([start]), np.array([max(start, stop)]))
            case _:
                indices = np.asarray(samples, np.int64)
                begins = np.flatnonzero(np.diff(indices, prepend=indices[:1] - 2) != 1)
                lasts = np.append(begins[1:], len(indices))[: len(begins)] - 1
                return cls(indices[begins], indices[lasts] + 1)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def at(self, places: Indices) -> Indices:
        """The samples at `places: (n,)`, from 0 to before the length: (n,)."""
        which = np.searchsorted(self._ends, places, side="right")
        return self.stops[which] - (self._ends[which] - places)

    def array(self) -> Indices:
        """Every sample: (len,)."""
        lengths = self.stops - self.starts
        places = np.arange(len(self))
        places += np.repeat(self.starts - (self._ends - lengths), lengths)
        return places

    def pieces(self, longest: int) -> Ranges:
        """The same samples in ranges of at most `longest`, none of them empty."""
        lengths = self.stops - self.starts
        counts = -(-lengths // longest)
        number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        starts = np.repeat(self.starts, counts) + number * longest
        return Ranges(starts, np.minimum(starts + longest, np.repeat(self.stops, counts)))


Samples = Indices | range | Ranges
