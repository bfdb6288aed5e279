"""Windows of sequences, gathered as whole batches by index: from arrays on the device, or from memory-mapped shards.

A window is `length` consecutive rows of one sequence. Sequences lie one after the other in one array of rows, so the
number of a window gives its first row by a search among the sequences: nothing is kept for each window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Rows = NDArray[Any]
CHUNK = 1024
"""Rows that statistics look at in one piece: some MB of float64, which stay in the cache."""
OPEN_SHARDS = 64
"""Memory-mapped at a time: each takes a file descriptor."""


class Windows:
    """Every window of some sequences, numbered through all of them; sequences shorter than a window have none.

    Args:
        lengths: rows of each sequence.
        length: rows of a window.
        stride: rows from one window to the next.
    """

    def __init__(self, lengths: Sequence[int] | NDArray[np.int64], length: int, stride: int = 1) -> None:
        rows = np.asarray(lengths, np.int64)
        self.length, self.rows = length, int(rows.sum())
        self._stride = stride
        counts = np.maximum(0, (rows - length) // stride + 1)
        self._ends = np.cumsum(counts)
        self._offset = np.cumsum(rows) - rows - stride * (self._ends - counts)
        """What the first row of a window is ahead of its number times the stride, for each sequence."""

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def sequences(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which sequence each window is from: (batch,)."""
        return np.searchsorted(self._ends, indices, side="right")

    def of(self, sequence: int) -> range:
        """The numbers of a sequence's windows."""
        return range(int(self._ends[sequence - 1]) if sequence else 0, int(self._ends[sequence]))

    def first_rows(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first row of each window in the array of all rows: (batch,)."""
        first: NDArray[np.int64] = self._offset[self.sequences(indices)] + self._stride * indices
        return first


class ResidentWindows:
    """Windows of arrays that stay on the device.

    Args:
        fields: arrays (rows, …) by name, with the rows of all sequences one after the other.
    """

    def __init__(self, fields: Mapping[str, Rows], windows: Windows, device: torch.device) -> None:
        self._windows, self._device = windows, device
        self._views: dict[str, Tensor] = {}
        for name, array in fields.items():
            if len(array) != windows.rows:
                raise ValueError(f"{name} has {len(array)} rows, its sequences have {windows.rows}")
            self._views[name] = sliding(torch.from_numpy(np.ascontiguousarray(array)).to(device), windows.length)

    def __len__(self) -> int:
        return len(self._windows)

    def gather(self, indices: Tensor) -> dict[str, Tensor]:
        """The windows `indices: (batch,) int64` of each field: (batch, length, …)."""
        rows = send(torch.from_numpy(self._windows.first_rows(indices.numpy())), self._device)
        return {name: view.index_select(0, rows) for name, view in self._views.items()}


class MappedWindows:
    """The same windows from shards that are memory-mapped: the kernel reads what a batch needs and keeps what it can.

    Args:
        shards: rows of each shard; a sequence lies in one shard whole.
        open_shard: the arrays (rows, …) of a shard by number, such as `np.load(…, mmap_mode="r")` gives them.
    """

    def __init__(
        self,
        shards: Sequence[int],
        open_shard: Callable[[int], Mapping[str, Rows]],
        windows: Windows,
        device: torch.device,
    ) -> None:
        self._starts = np.concatenate([[0], np.cumsum(np.asarray(shards, np.int64))])
        if self._starts[-1] != windows.rows:
            raise ValueError(f"the shards have {self._starts[-1]} rows, their sequences have {windows.rows}")
        self._open = lru_cache(OPEN_SHARDS)(open_shard)
        self._windows, self._device = windows, device

    def __len__(self) -> int:
        return len(self._windows)

    def gather(self, indices: Tensor) -> dict[str, Tensor]:
        """As of `ResidentWindows`; read in the order in which they lie on the disk."""
        rows = self._windows.first_rows(indices.numpy())
        order = np.argsort(rows, kind="stable")
        shards = np.searchsorted(self._starts, rows[order], side="right") - 1
        found: dict[str, Rows] = {}
        for shard, places in _runs(shards, order):
            first = rows[places] - self._starts[shard]
            for name, field in self._open(shard).items():
                if name not in found:
                    found[name] = np.empty((len(rows), self._windows.length, *field.shape[1:]), field.dtype)
                found[name][places] = _view(field, self._windows.length)[first]
        return {name: send(torch.from_numpy(array), self._device) for name, array in found.items()}


def _runs(shards: NDArray[np.int64], order: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each shard in turn, with the places in a batch that are read from it."""
    cuts = np.flatnonzero(np.diff(shards)) + 1
    for run in np.split(np.arange(len(shards)), cuts):
        yield int(shards[run[0]]), order[run]


def _view(field: Rows, length: int) -> Rows:
    """Every run of `length` rows of a shard, as a view: (rows - length + 1, length, …)."""
    shape = (len(field) - length + 1, length, *field.shape[1:])
    return np.lib.stride_tricks.as_strided(field, shape, (field.strides[0], *field.strides), writeable=False)


def sliding(rows: Tensor, length: int) -> Tensor:
    """Every run of `length` of `rows: (rows, …)`, contiguous, as a view of them: (rows - length + 1, length, …)."""
    return rows.as_strided((max(0, len(rows) - length + 1), length, *rows.shape[1:]), (rows.stride(0), *rows.stride()))


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """To the device without making the host wait for it."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def moments(rows: Tensor, spans: Sequence[tuple[int, int]]) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each column of `rows: (rows, width)` over the rows in `spans`, (width,) each.

    In float64 where the device has it, around the first row: a column may move by little far from zero.
    """
    wide = torch.float32 if rows.device.type == "mps" else torch.float64
    near = rows[spans[0][0]].to(wide)  # near the mean, so that hardly a digit is lost to its square
    total, squares = torch.zeros_like(near), torch.zeros_like(near)
    for first, end in spans:
        for some in torch.split(rows[first:end], CHUNK):
            away = some.to(wide).sub_(near)
            total += away.sum(0)
            squares += away.square_().sum(0)
    count = sum(end - first for first, end in spans)
    total /= count
    return near + total, (squares / count - total.square()).clamp(min=0).sqrt()
