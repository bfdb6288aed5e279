"""Arrays of a file that may hold anything: what is expected, or one exact sentence."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.basics import npz
from engines.basics.errors import DataError


class Bomb:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._path),)


def test_every_array_is_given_and_none_that_is_pickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3), name=np.array("one"))
    content = npz.load(tmp_path / "a.npz")
    assert content["x"].tolist() == [0, 1, 2]
    assert npz.text(tmp_path, content, "name", "") == "one"
    np.savez(tmp_path / "b.npz", x=np.array([Bomb(tmp_path / "ran")], dtype=object))
    with pytest.raises(DataError, match=r"b\.npz: holds pickled data, which is never loaded"):
        npz.load(tmp_path / "b.npz")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "cut short after 0 bytes"), (b"PK\x03\x04nothing more", "damaged or not an .npz file"), (None, "no such")],
)
def test_what_is_no_npz_is_said(tmp_path: Path, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DataError) as caught:
        npz.load(tmp_path / "a.npz")
    assert str(caught.value).startswith(f"{tmp_path / 'a.npz'}: {said}")


def test_a_matrix_has_one_of_the_widths_and_finite_numbers() -> None:
    path = Path("a.npz")
    content = {"x": np.array([[1, 2], [3, 4]], np.int16), "bad": np.array([[1.0, np.inf]]), "flat": np.zeros(2)}
    found = npz.matrix(path, content, "x", 3, 2)
    assert found.dtype == np.float32
    assert found.tolist() == [[1, 2], [3, 4]]
    for key, said in {
        "gone": "the array 'gone' is missing; expected gone of shape (N, 2) or (N, 3).",
        "flat": "flat has shape (2,), expected (N, 2) or (N, 3).",
        "bad": "bad row 0 column 1 is inf (1 rows in all have such values), expected finite numbers.",
    }.items():
        with pytest.raises(DataError) as caught:
            npz.matrix(path, content, key, 2, 3)
        assert str(caught.value) == f"a.npz: {said}"


def test_rows_and_single_values() -> None:
    path = Path("a.npz")
    npz.same_rows(path, a=np.zeros(2), b=np.zeros((2, 3)))
    with pytest.raises(DataError, match="a has 2 rows, b has 3 rows; expected the same number"):
        npz.same_rows(path, a=np.zeros(2), b=np.zeros(3))
    with pytest.raises(DataError, match="has no rows"):
        npz.same_rows(path, a=np.zeros(0))
    assert npz.scalar(path, {"fps": np.array([20])}, "fps", 1.0) == 20.0
    assert npz.scalar(path, {}, "fps", 1.0) == 1.0
    with pytest.raises(DataError, match=r"fps has shape \(2,\) of float64, expected one number"):
        npz.scalar(path, {"fps": np.zeros(2)}, "fps", 1.0)


@pytest.mark.behaviour("damaged-run-harms-no-other")
def test_whatever_is_wrong_inside_an_archive_is_one_kind_of_error(tmp_path: Path) -> None:
    """A member without the mark of an array, a header that is no Python, one that asks for absurdly much."""
    header = b"\x93NUMPY\x01\x00v\x00"
    damage = {
        "no array": b"just bytes",
        "no header": header + b"{'descr': '<f4', 'shape': (3,".ljust(118) + b"\n",
        "too large": header
        + b"{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999999,), }".ljust(117)
        + b"\n",
    }
    for content in damage.values():
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("x.npy", content)
        with pytest.raises(DataError, match=r"a\.npz: damaged or not an \.npz file"):
            npz.load(tmp_path / "a.npz")
        with pytest.raises(ValueError):  # noqa: PT011  (its words are numpy's)
            npz.arrays_in(tmp_path / "a.npz")
        (tmp_path / "a.npy").write_bytes(content)
        with pytest.raises(ValueError):  # noqa: PT011
            npz.array_in(tmp_path / "a.npy")
