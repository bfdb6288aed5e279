"""The review of a run: the scores and targets of its best epoch, and what they belong to.

Arrays are files named by their content and never overwritten; `about.json` names them and is replaced last. So a
writer killed half-way leaves the earlier review whole, and no reader mixes two epochs.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.basics import files, npz
from engines.basics.errors import DataError
from engines.basics.reading import read_json

ABOUT = "about.json"
SAVE_LOCK = "save.lock"
"""Held in the review's folder by whoever replaces the exported config, so that no reviewed threshold is lost."""
_TRIES = 5
_AGAIN = "the next best epoch of a resumed run rewrites it"


class About(msgspec.Struct, kw_only=True):
    """What the arrays belong to: a checkpoint's file name, its step and epoch, the epoch's score."""

    checkpoint: str
    step: int
    epoch: int
    score: float | None
    arrays: dict[str, str] = {}
    """File by the name of its array."""


@dataclass(frozen=True)
class Review:
    about: About
    arrays: Mapping[str, NDArray[Any]]


def write_review(folder: Path, arrays: Mapping[str, NDArray[Any]], about: About) -> None:
    """Make `arrays` the review in `folder`, all at once. Raises OSError with the earlier review whole."""
    names = {}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        content = buffer.getvalue()
        names[name] = file = f"{name}-{_digest(content)}.npy"
        if not (folder / file).is_file():
            files.replace_bytes(folder / file, content)
    files.replace_bytes(folder / ABOUT, msgspec.json.encode(msgspec.structs.replace(about, arrays=names)))
    for old in set(folder.glob("*.npy")) - {folder / file for file in names.values()}:
        with contextlib.suppress(FileNotFoundError):
            old.unlink()


def keep_review(folder: Path, place: Path) -> None:
    """Link the review in `folder`, if there is a whole one, to `place`, where none replaces it. Raises OSError."""
    try:
        about = _read_about(folder / ABOUT)
    except DataError:
        return
    if about is None:
        return
    files.make_directory(place)
    for file in (*about.arrays.values(), ABOUT):
        files.replace_by_link(folder / file, place / file)


def read_review(folder: Path) -> Review | None:
    """The review in `folder`, None where there is none yet. Raises `DataError` for a damaged one."""
    for _ in range(_TRIES):
        about = _read_about(folder / ABOUT)
        if about is None:
            return None
        try:
            return Review(about, {name: _read_array(folder / file) for name, file in about.arrays.items()})
        except FileNotFoundError as error:  # a newer review may have come in between
            missing = error.filename
    raise DataError(f"{missing} is missing from the review; {_AGAIN}.")


def _read_about(path: Path) -> About | None:
    try:
        about = read_json(path, About)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, OSError) as error:
        raise DataError(f"{path} cannot be read as the record of a review ({error}); {_AGAIN}.") from None
    if not about.arrays or any(Path(file).name != file for file in about.arrays.values()):
        raise DataError(f"{path} names no arrays: it was written by another version; {_AGAIN}.")
    return about


def _read_array(path: Path) -> NDArray[Any]:
    content = path.read_bytes()
    try:
        if path.stem.rpartition("-")[2] != _digest(content):
            raise ValueError("its content does not match its name")
        return npz.array_in(io.BytesIO(content))
    except ValueError as error:
        raise DataError(f"{path} is damaged ({error}); {_AGAIN}.") from None


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
