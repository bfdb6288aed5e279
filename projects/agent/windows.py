"""Windows of recorded games as whole batches: T frames that follow each other in number, with masks for gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.basics.errors import DataError
from engines.training.project import Batch, Context
from engines.training.windows import Windows as Numbered
from engines.training.windows import send
from projects.agent.recordings import Recording

MOST_ROWS = 16_384
"""Latents that mean and deviation are taken from, evenly spread: neighbours are so alike that more add little."""
CHUNK = 128
"""Of them in memory at a time."""
LEAST_PRESENT = 0.5
"""Share of a window's frames that must have latents."""


@dataclass(frozen=True)
class Statistics:
    """Mean and standard deviation of each channel of the latents, (C,) each; deviation 1 where one is constant."""

    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]

    def normalised(self, latents: NDArray[np.float32]) -> NDArray[np.float32]:
        """Of latents (…, C, H, W)."""
        normal: NDArray[np.float32] = (latents - self.mean[:, None, None]) / self.deviation[:, None, None]
        return normal

    def restored(self, latents: NDArray[np.float32]) -> NDArray[np.float32]:
        """What `normalised` was given: (…, C, H, W)."""
        raw: NDArray[np.float32] = latents * self.deviation[:, None, None] + self.mean[:, None, None]
        return raw


def statistics(recordings: Sequence[Recording]) -> Statistics:
    """Over the training games. Raises `DataError` where latents are not finite."""
    step = max(1, sum(len(one.latents) for one in recordings) // MOST_ROWS)
    total, squares, count = np.zeros(1), np.zeros(1), 0
    for one in recordings:
        for first in range(0, len(one.latents), step * CHUNK):
            values = np.asarray(one.latents[first : first + step * CHUNK : step], np.float64)
            _check_finite(one, values)
            total, squares = total + values.sum(axis=(0, 2, 3)), squares + (values**2).sum(axis=(0, 2, 3))
            count += values.size // values.shape[1]
    mean = total / count
    deviation = np.sqrt(np.maximum(squares / count - mean**2, 0))
    return Statistics(mean.astype(np.float32), np.where(deviation < 1e-4, 1, deviation).astype(np.float32))


class Windows:
    """Windows of T frames of some games; those with an event can also be drawn by numbers of their own.

    Windows 0 to `count` are all there are; window `count + j` is the one called `relevant[j]`, for the half of the
    draws that is to come from windows with an event.

    Args:
        frames: T. stride: frames from the start of one window to that of the next.
    """

    def __init__(
        self, recordings: Sequence[Recording], normal: Statistics, frames: int, stride: int, device: torch.device
    ) -> None:
        self.recordings, self.statistics, self.frames = list(recordings), normal, frames
        self._device = device
        numbered = Numbered([len(one) for one in recordings], frames, stride)
        every = np.arange(len(numbered))
        ends = np.cumsum([len(one) for one in recordings])
        game = numbered.sequences(every)
        start = numbered.first_rows(every) - (ends - [len(one) for one in recordings])[game]
        kept = self._counted(game, start, [one.rows >= 0 for one in recordings]) >= LEAST_PRESENT * frames
        if not kept.any():
            longest = max(recordings, key=len)
            raise DataError(
                f"{len(recordings)} games, the longest of them {longest.name} with {len(longest)} frames, have no "
                f"window of {frames} frames with latents for half of them; set data.frames lower, or take longer games."
            )
        self.game, self.start = game[kept], start[kept]
        """Which game each window is of, and its first frame on the timeline of that: (count,) each."""
        events = self._counted(self.game, self.start, [one.rewards.event for one in recordings])
        self.relevant: NDArray[np.int64] = np.flatnonzero(events)
        """Numbers of the windows that hold an event."""
        self._numbers = np.concatenate([np.arange(self.count), self.relevant])

    @property
    def count(self) -> int:
        """Windows, each counted once."""
        return len(self.start)

    def __len__(self) -> int:
        return self.count + len(self.relevant)

    def batch(self, indices: Tensor, rng: np.random.Generator | None, ctx: Context | None = None) -> Batch:
        """Of windows `indices: (B,)`, `relevant` where they are drawn by the numbers of those with an event:

        latents (B, T, C, H, W), normalised, 0 where missing; present (B, T); movement (B, T) int64, -1 where not known;
        abilities (B, T, 8); acted (B, T), frames whose features are there; reward (B, T) and rewarded (B, T), frames
        whose reward is known; event (B, T), a gold step of 10 or a death among those; relevant (B,).

        Raises `DataError` for latents that are not finite.
        """
        chosen = indices.numpy()
        drawn = chosen >= self.count
        numbers = self._numbers[chosen]
        parts = [self._window(int(number)) for number in numbers]
        found = {name: np.stack([part[name] for part in parts]) for name in parts[0]} | {"relevant": drawn}
        return {name: send(torch.from_numpy(array), self._device) for name, array in found.items()}

    def _window(self, number: int) -> dict[str, NDArray[np.generic]]:
        one, start = self.recordings[self.game[number]], int(self.start[number])
        span = slice(start, start + self.frames)
        present = one.rows[span] >= 0
        seen = one.seen(start, start + self.frames)
        _check_finite(one, seen)
        latents = np.where(present[:, None, None, None], self.statistics.normalised(seen), np.float32(0))
        return {
            "latents": latents,
            "present": present,
            "movement": one.movement[span].astype(np.int64),
            "abilities": one.abilities[span].astype(np.float32),
            "acted": one.acted[span],
            "reward": one.rewards.reward[span],
            "rewarded": one.rewards.known[span],
            "event": one.rewards.event[span],
        }

    def _counted(
        self, game: NDArray[np.int64], start: NDArray[np.int64], flags: Sequence[NDArray[np.bool_]]
    ) -> NDArray[np.int64]:
        """How many of the `flags` of its game are set in each window: (windows,)."""
        before = np.concatenate([[0], np.cumsum(np.concatenate(flags))])
        lengths = np.array([len(one) for one in flags])
        first = (np.cumsum(lengths) - lengths)[game] + start
        counted: NDArray[np.int64] = before[first + self.frames] - before[first]
        return counted


def _check_finite(one: Recording, values: NDArray[np.floating]) -> None:
    if not np.isfinite(values).all():
        raise DataError(f"{one.name}: its latents hold NaN or infinite values, expected numbers; pack them again.")
