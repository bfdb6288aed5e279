"""Samples in .npz or .safetensors files, a row of each array per sample: telemetry, vis_feats or frames, *_id."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from engines.basics.errors import DataError


class Shards:
    """The samples of a file, or of all .npz and .safetensors files of a folder, in the order of their names."""

    def __init__(self, path: str) -> None:
        folder = Path(path)
        files = sorted(folder.glob("*.npz")) + sorted(folder.glob("*.safetensors")) if folder.is_dir() else [folder]
        if not files:
            raise DataError(f"{folder}: holds no shard, expected .npz or .safetensors files.")
        self._shards = [_read(file) for file in files]
        self._ends = np.cumsum([len(shard["telemetry"]) for shard in self._shards])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, place: int) -> dict[str, Any]:
        number = int(np.searchsorted(self._ends, place, side="right"))
        shard = self._shards[number]
        row = place - int(self._ends[number]) + len(shard["telemetry"])
        return {name: values[row] for name, values in shard.items()}


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.suffix == ".safetensors":
            from safetensors.numpy import load_file

            arrays: dict[str, Any] = load_file(path)
        else:
            if not zipfile.is_zipfile(path):
                raise ValueError("it is no .npz")
            with np.load(path, allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
    except Exception as error:  # safetensors has exceptions of its own, numpy several
        if not isinstance(error, OSError | ValueError | EOFError | zipfile.BadZipFile) and "safetensors" not in repr(
            type(error)
        ):
            raise
        raise DataError(f"{path}: cannot be read as a shard ({error}); write it again.") from None
    rows = {name: len(values) if values.ndim else -1 for name, values in arrays.items()}
    if "telemetry" not in rows or len(set(rows.values())) > 1 or -1 in rows.values():
        raise DataError(f"{path}: arrays have {rows} rows; expected telemetry and others with as many.")
    return arrays
