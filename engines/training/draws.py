"""Random numbers for the rows of a batch that are the same for a row however many ranks share the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


class Others(Protocol):
    """What a share needs of the ranks."""

    def add_up(self, tensors: Sequence[Tensor]) -> None: ...
    def whole(self, rows: Tensor, size: int) -> Tensor: ...


@dataclass(frozen=True)
class Share:
    """The rows from `start` to before `stop` of a batch of `size`, which this rank has.

    generator: in the same state on every rank; what is drawn for the whole batch comes from it.
    """

    start: int
    stop: int
    size: int
    ranks: Others
    generator: torch.Generator

    def __len__(self) -> int:
        return self.stop - self.start

    def of(self, make: Callable[[int], Any]) -> Any:
        """This rank's rows of what `make` gives for so many rows."""
        return make(self.size)[self.start : self.stop]

    def total(self, local: Tensor) -> Tensor:
        """The sum over the ranks, without gradient."""
        found = local.detach().clone()
        self.ranks.add_up([found])
        return found

    def whole(self, rows: Tensor) -> Tensor:
        """`(size, …)`: these rows `(len, …)` and those of the other ranks, in order."""
        return self.ranks.whole(rows, self.size)

    def part(self, number: int, parts: int) -> Share:
        """Of the share's rows those that `Tensor.tensor_split` puts into one of several parts."""
        each, rest = divmod(len(self), parts)
        start = self.start + number * each + min(number, rest)
        return Share(start, start + each + (number < rest), self.size, self.ranks, self.generator)


Random = torch.Generator | Share | None
"""Where numbers come from: torch's own generator where None."""


def rand(shape: Sequence[int], random: Random, device: torch.device) -> Tensor:
    """Numbers from 0 to 1, `shape: (rows, …)`."""
    return _drawn(torch.rand, shape, random, device=device)


def randn(shape: Sequence[int], random: Random, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """Normal numbers, `shape: (rows, …)`."""
    return _drawn(torch.randn, shape, random, device=device, dtype=dtype)


def randint(high: int, shape: Sequence[int], random: Random, device: torch.device) -> Tensor:
    """Whole numbers from 0 to before `high`, `shape: (rows, …)`."""
    return _drawn(lambda size, **given: torch.randint(high, size, **given), shape, random, device=device)


def _drawn(make: Callable[..., Tensor], shape: Sequence[int], random: Random, **given: Any) -> Tensor:
    if isinstance(random, Share):
        rows: Tensor = random.of(lambda size: make((size, *shape[1:]), generator=random.generator, **given))
        return rows
    if random is not None and random.device.type != given["device"].type:  # one on the CPU gives the same everywhere
        return make(tuple(shape), generator=random, **{**given, "device": random.device}).to(given["device"])
    return make(tuple(shape), generator=random, **given)
