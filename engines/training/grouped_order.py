"""An order for more samples than fit into memory: shuffled, and yet what is near in time is near on disk."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from engines.training.order import Purpose, generator
from engines.training.samples import Indices, Ranges, Samples


class GroupedOrder:
    """Blocks in random order, and the samples of each group of blocks permuted together.

    A block is a range of the samples (a shard, a recording), cut where it is longer than `block`. Each pass puts the
    blocks in a new order and permutes the samples of each `group` of them; batches are cut from what that gives, so a
    pass sees every sample once, except what does not fill a last batch. Holds its blocks and the samples of the groups
    that the last batch came from.

    soon: called with the blocks of a group before they are read, of the next group while one is given: a source on a
    disk can have them fetched while steps are taken.
    """

    def __init__(
        self,
        samples: Samples,
        batch_size: int,
        seed: int,
        *,
        block: int = 8192,
        group: int = 64,
        soon: Callable[[Ranges], None] | None = None,
    ) -> None:
        self._blocks = Ranges.of(samples).pieces(block)
        self._batch, self._seed, self._group, self._soon = batch_size, seed, group, soon
        self._pass = _Pass(self._blocks, group, (seed, 0, 0))

    @property
    def steps_per_pass(self) -> int:
        return max(1, len(self._blocks) // self._batch)

    def indices(self, epoch: int, step: int) -> Tensor:
        """Fewer than a batch only where there are fewer samples."""
        number, place = divmod(step, self.steps_per_pass)
        if self._pass.key != (self._seed, epoch, number):
            self._pass = _Pass(self._blocks, self._group, (self._seed, epoch, number))
        first = place * self._batch
        stop = min(first + self._batch, len(self._blocks))
        if self._soon is not None and (blocks := self._pass.not_asked_for(stop - 1)) is not None:
            self._soon(blocks)
        return torch.from_numpy(self._pass.samples(first, stop))


class _Pass:
    """One pass: the order of its blocks, where each group ends, and the groups looked at last."""

    def __init__(self, blocks: Ranges, group: int, key: tuple[int, int, int]) -> None:
        """`key` is seed, epoch and the number of the pass in it."""
        self.key = key
        self._blocks, self._group = blocks, group
        seed, *counters = key
        self._order = generator(seed, Purpose.ORDER, *counters).permutation(len(blocks.starts))
        lengths = (blocks.stops - blocks.starts)[self._order]
        self._ends = np.add.reduceat(lengths, np.arange(0, len(lengths), group)).cumsum()
        self._groups: dict[int, Indices] = {}
        self._asked = -1  # the last group whose blocks were given by `not_asked_for`

    def not_asked_for(self, place: int) -> Ranges | None:
        """The blocks of the group of `place`, then those of the next one, each of them once; None after that."""
        number = self._group_of(place)
        if self._asked > number or self._asked == number == len(self._ends) - 1:
            return None
        self._asked = number + (self._asked == number)
        return self._blocks_of(self._asked)

    def samples(self, first: int, stop: int) -> Indices:
        """From place `first` to before `stop` of the pass, 0 ≤ first < stop: (stop - first,)."""
        lowest, highest = self._group_of(first), self._group_of(stop - 1)
        self._groups = {
            number: self._groups[number] if number in self._groups else self._permuted(number)
            for number in range(lowest, highest + 1)
        }
        pieces = []
        for number, group in self._groups.items():
            begins = int(self._ends[number]) - len(group)
            pieces.append(group[max(first - begins, 0) : stop - begins])
        return np.concatenate(pieces)

    def _permuted(self, number: int) -> Indices:
        """All samples of a group."""
        seed, *counters = self.key
        return generator(seed, Purpose.GROUP, *counters, number).permutation(self._blocks_of(number).array())

    def _blocks_of(self, number: int) -> Ranges:
        blocks = self._order[number * self._group : (number + 1) * self._group]
        return Ranges(self._blocks.starts[blocks], self._blocks.stops[blocks])

    def _group_of(self, place: int) -> int:
        return int(np.searchsorted(self._ends, place, side="right"))
