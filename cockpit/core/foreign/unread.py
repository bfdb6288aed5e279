"""What other tools keep in formats of their own, and how to get out of it what can be watched."""

from __future__ import annotations

import contextlib
from pathlib import Path

_PACKED = "is compressed by {}; unpack it first, or compress it with gzip, which is read directly"
_FILES = {
    b"SQLite format 3\0": "is a SQLite database, as MLflow, Optuna and Aim keep; export its metrics as CSV, or have "
    "MLflow write files: MLFLOW_TRACKING_URI=file:./mlruns",
    b"PK\x03\x04": "is a zip file (an offline session of ClearML, a checkpoint, …); unpack it and watch its folder",
    b"PAR1": "is a Parquet table, which needs pyarrow to be read: `pip install pyarrow`",
    b"\x28\xb5\x2f\xfd": _PACKED.format("Zstandard"),
    b"\xfd7zXZ\0": _PACKED.format("xz"),
    b"BZh": _PACKED.format("bzip2"),
}
"""By the bytes that such files begin with."""
_SUFFIXES = {".db", ".zst", ".parquet"}
_AIM = "is a database of Aim; export the metrics of its runs as CSV from `aim up`"


def why_file(path: Path, head: bytes) -> str:
    """A sentence on a file that begins with `head`, what it is and what to do; empty where nothing is known of it."""
    return next((f"{path} {what}." for mark, what in _FILES.items() if head.startswith(mark)), "")


def why_folder(path: Path) -> str:
    """The same of a folder in which no log was found."""
    if (aim := path if path.name == ".aim" else path / ".aim").is_dir():
        return f"{aim} {_AIM}."
    for place in sorted(path.rglob("*")):
        if place.suffix in _SUFFIXES and place.is_file():
            with contextlib.suppress(OSError), open(place, "rb") as file:
                if why := why_file(place, file.read(16)):
                    return why
    return ""
