"""Packed latents: mapped where they lie, or from a copy that is kept; one sentence for each fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.basics.errors import DataError
from projects.agent.latents import cache_folder, open_latents, write_latents


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def values(seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=(5, 3, 2, 4)).astype(np.float16)


NUMBERS = np.array([4, 5, 6, 9, 10], np.int32)


def test_plain_arrays_are_mapped_right_in_the_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", frame_indices=NUMBERS, other=np.arange(3), latents=values())
    write_latents(tmp_path / "b.npz", values(), NUMBERS)
    for name in ("a", "b"):
        found = open_latents(tmp_path / f"{name}.npz")
        assert isinstance(found.values, np.memmap)
        assert Path(str(found.values.filename)) == tmp_path / f"{name}.npz"
        np.testing.assert_array_equal(found.values, values())
        assert found.number.tolist() == NUMBERS.tolist()
    assert not cache_folder().exists()
    with np.load(tmp_path / "b.npz") as content:
        assert content["latents"].dtype == np.float16
        assert content["frame_indices"].dtype == np.int32


def test_of_compressed_arrays_a_copy_is_kept_by_content(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", latents=values(), frame_indices=NUMBERS)
    (tmp_path / "b.npz").write_bytes((tmp_path / "a.npz").read_bytes())
    np.savez_compressed(tmp_path / "c.npz", latents=values(1), frame_indices=NUMBERS)
    found = {name: open_latents(tmp_path / f"{name}.npz").values for name in "abc"}
    assert isinstance(found["a"], np.memmap)
    np.testing.assert_array_equal(found["a"], values())
    np.testing.assert_array_equal(found["c"], values(1))
    assert len(list(cache_folder().iterdir())) == 2
    kept = next(iter(cache_folder().iterdir()))
    kept.write_bytes(kept.read_bytes()[:-10])
    np.testing.assert_array_equal(open_latents(tmp_path / "a.npz").values, values())
    np.testing.assert_array_equal(open_latents(tmp_path / "c.npz").values, values(1))


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", latents=values(), frame_indices=NUMBERS)
    (tmp_path / "cache").write_text("a file, no folder")
    with pytest.raises(DataError, match=r"are compressed, and .* cannot hold a copy"):
        open_latents(tmp_path / "a.npz")


def test_the_same_values_make_the_same_bytes(tmp_path: Path) -> None:
    for name in "ab":
        write_latents(tmp_path / f"{name}.npz", values(), NUMBERS)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"latents": values()}, r"frame_indices.* in the archive.*; expected latents \(N, C, H, W\)"),
        ({"frame_indices": NUMBERS}, r"latents.* in the archive"),
        ({"latents": values()[:4], "frame_indices": NUMBERS}, "has 4 latents and 5 frame_indices"),
        ({"latents": values()[:, 0], "frame_indices": NUMBERS}, r"latents is \(5, 2, 4\) of float16"),
        ({"latents": values().astype(int), "frame_indices": NUMBERS}, "of int64; expected latents"),
        ({"latents": values(), "frame_indices": NUMBERS[::-1]}, r"frame_indices is 9 after 10 \(row 1\)"),
        ({"latents": values(), "frame_indices": NUMBERS.astype(np.int64) << 27}, "expected at most 10,000,000 frames"),
        ({"latents": values(), "frame_indices": NUMBERS / 2}, r"frame_indices is \(5,\) of float64"),
        ({"latents": values().astype(object), "frame_indices": NUMBERS}, "latents is .* of object"),
    ],
)
def test_each_fault_is_one_sentence(tmp_path: Path, arrays: dict[str, Any], said: str) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=said):
        open_latents(tmp_path / "a.npz")


def test_damaged_files_are_said(tmp_path: Path) -> None:
    write_latents(tmp_path / "a.npz", values(), NUMBERS)
    whole = (tmp_path / "a.npz").read_bytes()
    for content in (b"", b"nonsense", whole[: len(whole) // 2]):
        (tmp_path / "b.npz").write_bytes(content)
        with pytest.raises(DataError, match=r"damaged or not an \.npz file"):
            open_latents(tmp_path / "b.npz")
    with pytest.raises(DataError, match="no such file"):
        open_latents(tmp_path / "c.npz")
