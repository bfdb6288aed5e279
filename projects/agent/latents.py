"""Packed latents, {video}.npz: `latents` (N, C, H, W) and `frame_indices` (N,), memory-mapped, never read whole.

Arrays that lie in the .npz as they are (`np.savez`) are mapped right there. Of a compressed one a copy is kept in the
user's cache, by the checksums and sizes that the file gives of its content.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from engines.basics.errors import DataError
from engines.basics.files import make_directory, replace_with
from projects.agent.layout import MOST_FRAMES

LATENTS, NUMBERS = "latents.npy", "frame_indices.npy"
_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""Of a member in a zip: its signature, and the lengths of name and extra field that come before its content."""
_EXPECTED = "expected latents (N, C, H, W) of float16 or float32 and frame_indices (N,) of whole numbers"


@dataclass(frozen=True)
class Latents:
    """values: (N, C, H, W), memory-mapped. number: (N,) int64, the frames they are of, rising."""

    values: NDArray[np.floating[Any]]
    number: NDArray[np.int64]


def open_latents(path: Path) -> Latents:
    """Raises `DataError` for a file that is damaged or of another form."""
    try:
        with zipfile.ZipFile(path) as archive:
            number = _numbers(path, archive)
            values = _mapped(path, archive)
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; expected the packed latents of a video.") from None
    except KeyError as error:
        raise DataError(f"{path}: {error.args[0]}; {_EXPECTED}.") from None
    except Exception as error:  # zipfile, zlib, struct and numpy fail in a dozen ways on bytes that are no .npz
        raise DataError(f"{path}: damaged or not an .npz file ({error}); pack the latents again.") from None
    if len(number) != len(values):
        raise DataError(f"{path}: has {len(values)} latents and {len(number)} frame_indices; expected as many of each.")
    return Latents(values, number)


def write_latents(path: Path, values: NDArray[np.floating[Any]], number: NDArray[np.integer[Any]]) -> None:
    """Write packed latents as float16, the same bytes for the same values. Raises OSError."""
    arrays = {LATENTS: values.astype(np.float16), NUMBERS: number.astype(np.int32)}

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, array in arrays.items():
                with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)

    replace_with(path, write)


def cache_folder() -> Path:
    """Where copies of compressed latents are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cockpit" / "latents"


def _numbers(path: Path, archive: zipfile.ZipFile) -> NDArray[np.int64]:
    with archive.open(NUMBERS) as member:
        number = np.lib.format.read_array(member, allow_pickle=False)
    if number.ndim != 1 or number.dtype.kind not in "iu" or not len(number):
        raise DataError(f"{path}: frame_indices is {number.shape} of {number.dtype}; {_EXPECTED}.")
    number = number.astype(np.int64)
    back = np.flatnonzero(np.diff(number) <= 0)
    if len(back):
        place = int(back[0])
        raise DataError(
            f"{path}: frame_indices is {number[place + 1]} after {number[place]} (row {place + 1}); expected rising "
            "numbers, each once."
        )
    if number[-1] - number[0] >= MOST_FRAMES:
        raise DataError(
            f"{path}: frame_indices go from {number[0]} to {number[-1]}, expected at most {MOST_FRAMES:,} frames in a "
            "video."
        )
    return number


def _mapped(path: Path, archive: zipfile.ZipFile) -> NDArray[np.floating[Any]]:
    member = archive.getinfo(LATENTS)
    place, start = path, _content_start(path, member)
    if member.compress_type != zipfile.ZIP_STORED:
        place, start = _unpacked(path, archive, member), 0
    with place.open("rb") as file:
        file.seek(start)
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, in_columns, dtype = read(file)
        start = file.tell()
    if len(shape) != 4 or 0 in shape or dtype.kind != "f" or dtype.itemsize > 4:
        raise DataError(f"{path}: latents is {shape} of {dtype}; {_EXPECTED}.")
    return np.memmap(place, dtype, "r", start, shape, order="F" if in_columns else "C")


def _content_start(path: Path, member: zipfile.ZipInfo) -> int:
    """Where the content of a member begins in the file."""
    with path.open("rb") as file:
        file.seek(member.header_offset)
        signature, name, extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    if signature != b"PK\x03\x04":
        raise zipfile.BadZipFile("a member does not begin where the list says")
    return member.header_offset + _LOCAL_HEADER.size + int(name) + int(extra)


def _unpacked(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Path:
    """The copy of a compressed member in the cache, made where it is not there."""
    content = sorted((one.filename, one.CRC, one.file_size, one.compress_size) for one in archive.infolist())
    kept = cache_folder() / f"{hashlib.sha256(repr(content).encode()).hexdigest()[:32]}.npy"
    if not kept.is_file() or kept.stat().st_size != member.file_size:
        try:
            make_directory(kept.parent)
            with archive.open(member) as packed:
                replace_with(kept, lambda file: shutil.copyfileobj(packed, file, 1 << 20))
        except OSError as error:
            raise DataError(
                f"{path}: its latents are compressed, and {kept.parent} cannot hold a copy "
                f"({error.strerror or error}); make space there, set XDG_CACHE_HOME, or pack them with np.savez."
            ) from None
    return kept
