"""Reading `.npz` files that may hold anything: every array checked, nothing unpickled, one exact sentence an error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from engines.basics.errors import DataError

Content = Mapping[str, NDArray[np.generic]]
ZIP_START = b"PK\x03\x04"


def array_in(file: Path | IO[bytes], *, mapped: bool = False) -> NDArray[Any]:
    """The one array of a `.npy`. Raises OSError, and ValueError alone for whatever else is wrong with it."""
    found = _read(file, mapped=mapped)
    if not isinstance(found, np.ndarray):
        raise ValueError("it holds several arrays")
    return found


def arrays_in(file: Path | IO[bytes]) -> dict[str, NDArray[Any]]:
    """Every array of a `.npz` by its name. Raises OSError, and ValueError alone for whatever else is wrong with it."""
    found = _read(file)
    if isinstance(found, np.ndarray):
        raise ValueError("it is no .npz")
    return found


def _read(file: Path | IO[bytes], *, mapped: bool = False) -> NDArray[Any] | dict[str, NDArray[Any]]:
    if isinstance(file, Path) and not mapped:
        with open(file, "rb") as opened:  # numpy leaves a file open that it cannot read
            return _read(opened)
    try:
        found = np.load(file, mmap_mode="r" if mapped else None, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        with found:
            arrays = {name: found[name] for name in found.files}
    except (OSError, ValueError):
        raise
    except Exception as error:  # numpy, zipfile, zlib and tokenize fail in a dozen ways on bytes that are none
        raise ValueError(f"{type(error).__name__}: {error}") from None
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # numpy gives the bytes of a member that has not the mark of one
            raise ValueError(f"{name} is no array")
    return arrays


def load(path: Path) -> Content:
    """Every array of an `.npz`; nothing in it is ever unpickled. Raises `DataError`."""
    try:
        with open(path, "rb") as file:
            start = file.read(len(ZIP_START))
        if start != ZIP_START and ZIP_START.startswith(start):  # numpy would take so little for a pickle
            raise DataError(f"{path}: cut short after {len(start)} bytes; expected a whole .npz file.")
        found = _read(path)
        if isinstance(found, dict):
            return found
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; expected an .npz file.") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); expected an .npz file.") from None
    except ValueError as error:
        if "pickle" in str(error).lower():
            raise DataError(
                f"{path}: holds pickled data, which is never loaded; expected an .npz of plain number arrays."
            ) from None
        raise DataError(f"{path}: damaged or not an .npz file ({error}); expected a whole .npz file.") from None
    raise DataError(f"{path}: this is a single array, expected an .npz file with several.")


def matrix(path: Path, content: Content, key: str, *widths: int) -> NDArray[np.float32]:
    """`content[key]` as float32 (N, one of `widths`), every value finite."""
    expected = " or ".join(f"(N, {width})" for width in widths)
    if key not in content:
        raise DataError(f"{path}: the array {key!r} is missing; expected {key} of shape {expected}.")
    array = content[key]
    if array.ndim != 2 or array.shape[1] not in widths:
        raise DataError(f"{path}: {key} has shape {array.shape}, expected {expected}.")
    if array.dtype.kind not in "fiub":
        raise DataError(f"{path}: {key} holds {array.dtype}, expected numbers (float32).")
    with np.errstate(over="ignore"):  # what overflows becomes inf, which is reported with its row below
        numbers = array.astype(np.float32)
    bad = ~np.isfinite(numbers).all(axis=1)
    if bad.any():
        row = int(bad.argmax())
        column = int((~np.isfinite(numbers[row])).argmax())
        raise DataError(
            f"{path}: {key} row {row} column {column} is {array[row, column]} ({int(bad.sum())} rows in all have such "
            "values), expected finite numbers."
        )
    return numbers


def same_rows(path: Path, **arrays: NDArray[np.generic]) -> None:
    """Raise `DataError` unless all `arrays` have the same number of rows, at least one."""
    rows = {key: len(array) for key, array in arrays.items()}
    if len(set(rows.values())) > 1:
        counted = ", ".join(f"{key} has {count} rows" for key, count in rows.items())
        raise DataError(f"{path}: {counted}; expected the same number of rows in each.")
    if 0 in rows.values():
        raise DataError(f"{path}: has no rows; expected at least one.")


def scalar(path: Path, content: Content, key: str, default: float) -> float:
    """One number."""
    if key not in content:
        return default
    return float(_single(path, key, content[key], "fiub", "number").astype(np.float64))


def text(path: Path, content: Content, key: str, default: str) -> str:
    """One short text."""
    if key not in content:
        return default
    value = _single(path, key, content[key], "US", "short text").item()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _single(path: Path, key: str, array: NDArray[Any], kinds: str, what: str) -> NDArray[Any]:
    """The one element of `array`, as an array without dimensions."""
    if array.size != 1 or array.dtype.kind not in kinds:
        raise DataError(f"{path}: {key} has shape {array.shape} of {array.dtype}, expected one {what}.")
    return array.reshape(())
