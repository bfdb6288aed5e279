"""Windows by index: resident, mapped, and cut out one by one are the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.training import windows as module
from engines.training.windows import MappedWindows, ResidentWindows, Windows, moments, sliding

CPU = torch.device("cpu")
Arrays = dict[str, NDArray[np.generic]]


def sequence(rows: int, seed: int) -> Arrays:
    random = np.random.default_rng(seed)
    return {
        "x": random.normal(size=(rows, 3)).astype(np.float32),
        "kind": random.integers(0, 9, rows).astype(np.uint8),
        "pair": random.integers(-5, 5, (rows, 2, 2)).astype(np.int16),
    }


def cut(sequences: list[Arrays], length: int, stride: int) -> list[tuple[int, Arrays]]:
    """The slow reference: every window by itself, with the number of its sequence."""
    return [
        (number, {name: array[first : first + length] for name, array in one.items()})
        for number, one in enumerate(sequences)
        for first in range(0, len(one["x"]) - length + 1, stride)
    ]


def joined(sequences: list[Arrays]) -> Arrays:
    return {name: np.concatenate([one[name] for one in sequences]) for name in sequences[0]}


@settings(max_examples=60, deadline=None)
@given(
    shards=st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=3), min_size=1, max_size=4),
    length=st.integers(1, 6),
    stride=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_window_equals_the_slow_reference(shards: list[list[int]], length: int, stride: int, seed: int) -> None:
    sequences = [[sequence(rows, seed + 7 * s + k) for k, rows in enumerate(some)] for s, some in enumerate(shards)]
    flat = [one for some in sequences for one in some]
    wanted = cut(flat, length, stride)
    windows = Windows([len(one["x"]) for one in flat], length, stride)
    assert len(windows) == len(wanted)
    if not wanted:
        return
    order = np.random.default_rng(seed).integers(0, len(wanted), 2 * len(wanted))  # some twice
    assert windows.sequences(order).tolist() == [wanted[k][0] for k in order]
    resident = ResidentWindows(joined(flat), windows, CPU)
    stored = [joined(some) for some in sequences]
    mapped = MappedWindows([len(one["x"]) for one in stored], stored.__getitem__, windows, CPU)
    for batch in (resident.gather(torch.from_numpy(order)), mapped.gather(torch.from_numpy(order))):
        for name in ("x", "kind", "pair"):
            expected = np.stack([wanted[k][1][name] for k in order])
            assert batch[name].numpy().dtype == expected.dtype
            np.testing.assert_array_equal(batch[name].numpy(), expected)


def test_shards_are_opened_as_needed_and_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OPEN_SHARDS", 2)
    for k in range(5):
        np.save(tmp_path / f"{k}.npy", np.arange(10 * k, 10 * k + 10, dtype=np.int32))
    opened: list[int] = []

    def open_shard(number: int) -> Mapping[str, NDArray[np.generic]]:
        opened.append(number)
        return {"row": np.load(tmp_path / f"{number}.npy", mmap_mode="r")}

    mapped = MappedWindows([10] * 5, open_shard, Windows([10] * 5, 4), CPU)
    assert len(mapped) == 35
    assert mapped.gather(torch.tensor([34, 0, 7, 33]))["row"][:, 0].tolist() == [46, 0, 10, 45]
    assert opened == [0, 1, 4]  # in the order of the disk, each once
    mapped.gather(torch.tensor([8, 30]))
    assert opened == [0, 1, 4]
    mapped.gather(torch.tensor([0]))
    assert opened == [0, 1, 4, 0]


def test_a_hundred_thousand_long_sequences_take_no_memory_for_their_windows() -> None:
    lengths = np.full(100_000, 8_060)
    windows = Windows(lengths, 61)
    assert len(windows) == 800_000_000
    held = [value for value in vars(windows).values() if isinstance(value, np.ndarray)]
    assert sum(array.nbytes for array in held) < 2_000_000
    last = np.array([799_999_999])
    assert windows.first_rows(last) + 61 == lengths.sum()
    assert windows.sequences(last) == 99_999


def test_rows_that_do_not_belong_together_are_refused() -> None:
    windows = Windows([5, 5], 3)
    with pytest.raises(ValueError, match="x has 9 rows, its sequences have 10"):
        ResidentWindows({"x": np.zeros(9)}, windows, CPU)
    with pytest.raises(ValueError, match="shards have 11 rows, their sequences have 10"):
        MappedWindows([11], lambda _: {}, windows, CPU)


def test_a_sliding_view_copies_nothing() -> None:
    rows = torch.arange(12.0).reshape(6, 2)
    view = sliding(rows, 4)
    assert torch.equal(view, torch.stack([rows[k : k + 4] for k in range(3)]))
    rows[2] = 0
    assert view.data_ptr() == rows.data_ptr()
    assert view[1, 1].tolist() == [0, 0]
    assert len(sliding(rows, 7)) == 0


def test_moments_are_those_of_all_the_rows_far_from_zero_too() -> None:
    rows = 1e4 + 1e-2 * torch.randn(5000, 3, generator=torch.Generator().manual_seed(1))
    rows[100:200] = 0  # between the spans
    mean, deviation = moments(rows, [(0, 100), (200, 5000)])
    kept = torch.cat([rows[:100], rows[200:]]).double()
    torch.testing.assert_close(mean, kept.mean(0), rtol=1e-12, atol=0)
    torch.testing.assert_close(deviation, kept.std(0, correction=0), rtol=1e-6, atol=0)
