"""Which samples a step sees, from counters alone: a position in the run needs no state, and ranks agree."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from engines.training.samples import Ranges, Samples


class Purpose(IntEnum):
    """Keeps the random streams of one seed apart."""

    ORDER = 0
    SAMPLE = 1
    GROUP = 2


def generator(seed: int, purpose: Purpose, *counters: int) -> np.random.Generator:
    """The random numbers of one purpose at one place, the same ones whenever it is asked."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, purpose, *counters))))


def step_generator(seed: int, epoch: int, step: int) -> np.random.Generator:
    """Randomness of the samples of one step (augmentation, history dropout)."""
    return generator(seed, Purpose.SAMPLE, epoch, step)


class Order(Protocol):
    """Which samples each step of an epoch sees. What it gives depends on its arguments alone, never on earlier calls:
    a killed run asks for the same position again."""

    @property
    def steps_per_pass(self) -> int:
        """Steps in one pass over the samples, at least one: an epoch, unless `training.steps_per_epoch` says more."""
        ...

    def indices(self, epoch: int, step: int) -> Tensor:
        """Samples of step `step` (from 0) of an epoch (from 0): (batch,) int64, on the CPU."""
        ...


class ShuffledOrder:
    """Every epoch a new permutation of all samples, cut into whole batches.

    An epoch longer than the data goes through several permutations; one shorter sees a random part. Holds all samples
    and their permutation, 16 bytes a sample: `GroupedOrder` is for those that do not fit.
    """

    def __init__(self, samples: Samples, batch_size: int, seed: int) -> None:
        self._samples = Ranges.of(samples).array()
        self._batch = batch_size
        self._seed = seed
        self._cached: tuple[int, int, Tensor] | None = None

    @property
    def steps_per_pass(self) -> int:
        return max(1, len(self._samples) // self._batch)

    def indices(self, epoch: int, step: int) -> Tensor:
        """Fewer than a batch only where there are fewer samples."""
        pass_number, place = divmod(step, self.steps_per_pass)
        if self._cached is None or self._cached[:2] != (epoch, pass_number):
            permuted = generator(self._seed, Purpose.ORDER, epoch, pass_number).permutation(self._samples)
            self._cached = (epoch, pass_number, torch.from_numpy(permuted))
        return self._cached[2][place * self._batch : (place + 1) * self._batch]


class MixedOrder:
    """Each sample of a batch drawn by itself, with replacement: a set by its probability, then evenly one of the set.

    Sets may overlap. A pass is as many steps as `draws` samples fill. Where the losses must know which set a sample
    was drawn from, a project gives each set index ranges of its own, and its source maps them back.

    Raises ValueError for probabilities that do not add up to 1, and for an empty set that has one.
    """

    def __init__(
        self, sets: Sequence[Samples], probabilities: Sequence[float], batch_size: int, seed: int, *, draws: int
    ) -> None:
        self._sets = [Ranges.of(samples) for samples in sets]
        self._edges = np.cumsum(probabilities)
        if len(sets) != len(probabilities) or min(probabilities) < 0 or abs(self._edges[-1] - 1) > 1e-6:
            raise ValueError(f"probabilities of {len(sets)} sets: expected one each, adding up to 1")
        if any(chance and not len(samples) for samples, chance in zip(self._sets, probabilities, strict=True)):
            raise ValueError("sets: expected samples in each that has a probability above 0")
        self._batch, self._seed = batch_size, seed
        self.steps_per_pass = max(1, draws // batch_size)

    def indices(self, epoch: int, step: int) -> Tensor:
        """Always a whole batch."""
        random = generator(self._seed, Purpose.ORDER, epoch, step)
        chosen = np.searchsorted(self._edges / self._edges[-1], random.random(self._batch), side="right")
        where = random.random(self._batch)
        drawn = np.empty(self._batch, np.int64)
        for number, samples in enumerate(self._sets):
            of_set = chosen == number
            drawn[of_set] = samples.at((where[of_set] * len(samples)).astype(np.int64))
        return torch.from_numpy(drawn)
