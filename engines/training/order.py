"""Which samples a step sees, from counters alone: a position in the run needs no state, and ranks agree."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


class _Purpose(IntEnum):
    """Keeps the random streams of one seed apart."""

    ORDER = 0
    SAMPLE = 1


def _generator(seed: int, purpose: _Purpose, *counters: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, purpose, *counters))))


def step_generator(seed: int, epoch: int, step: int) -> np.random.Generator:
    """Randomness of the samples of one step (augmentation, history dropout)."""
    return _generator(seed, _Purpose.SAMPLE, epoch, step)


class ShuffledOrder:
    """Every epoch a new permutation of `samples: (n,) int64`, cut into whole batches.

    An epoch longer than the data goes through several permutations; one shorter sees a random part.
    """

    def __init__(self, samples: npt.NDArray[np.int64], batch_size: int, seed: int) -> None:
        self._samples = samples
        self._batch = batch_size
        self._seed = seed
        self._cached: tuple[int, int, Tensor] | None = None

    @property
    def steps_per_pass(self) -> int:
        """Whole batches in one pass over the data, at least one."""
        return max(1, len(self._samples) // self._batch)

    def indices(self, epoch: int, step: int) -> Tensor:
        """Samples of step `step` (from 0) of an epoch: (batch,) int64, fewer only when there are fewer samples."""
        pass_number, place = divmod(step, self.steps_per_pass)
        if self._cached is None or self._cached[:2] != (epoch, pass_number):
            permuted = _generator(self._seed, _Purpose.ORDER, epoch, pass_number).permutation(self._samples)
            self._cached = (epoch, pass_number, torch.from_numpy(permuted))
        return self._cached[2][place * self._batch : (place + 1) * self._batch]
