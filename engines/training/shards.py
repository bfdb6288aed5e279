"""Checkpoints in shards: the tensors that ranks hold together, written by all of them at once.

torch.distributed.checkpoint writes and reads them as safetensors, with the place of each shard in the file's own JSON
header: its default index is a pickle, and reading one can run code. Everything else of a checkpoint is in last.pt,
which names the folder and its files; until it does, the older checkpoint stands.
"""

from __future__ import annotations

import math
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from engines.basics import files
from engines.basics.errors import DataError
from engines.contract.rundir import RunDirectory
from engines.runs.saved import SHARDS
from engines.training.ranks import Together

if TYPE_CHECKING:
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

Like = Callable[[str, torch.Size, torch.dtype], Tensor]
"""What a tensor of that name, shape and type is read into."""
_ELSE = "move the checkpoint away to resume from the next older one in its folder."


def write(run: RunDirectory, content: Mapping[str, Any], ranks: Together) -> dict[str, Any]:
    """Write this rank's shards; gives `content` without them, naming them. All ranks do it.

    Raises OSError, on every rank, where one of them cannot write.
    """
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    tensors, rest = _divided(content)
    path = ranks.from_first(_new_folder(run, content["state"]["step"]) if ranks.first else None)
    if not isinstance(path, Path):
        raise OSError(path)
    fault: OSError | None = None
    try:
        with ranks.computing():
            writer = HuggingFaceStorageWriter(str(path), save_distributed=True)
            save(tensors, storage_writer=writer, process_group=ranks.control)
    except CheckpointException as error:
        causes = [cause for cause, _ in error.failures.values()]
        fault = next((cause for cause in causes if isinstance(cause, OSError)), None)
        if fault is None:
            raise RuntimeError(f"the shards could not be written: {causes[0]}") from None
    if fault is not None:
        _remove(path, ranks)
        raise fault
    own: dict[str, int] | OSError
    try:
        own = {name: size for name, size in _files(path).items() if name.startswith(f"shard-{ranks.number + 1:05d}-")}
        for name in own:
            files.sync_file(path / name)  # torch's writer does it before the file's last bytes leave its buffer
        files.sync_directory(path)
        files.sync_directory(path.parent)
    except OSError as error:
        own = error
    written: dict[str, int] = {}  # as each rank sees its own: a network disk lists those of others late
    for each in ranks.gathered(own):
        if isinstance(each, OSError):
            _remove(path, ranks)
            raise each
        written |= each
    shapes = {name: list(tensor.shape) for name, tensor in tensors.items()}
    return {**rest, "shards": {"folder": path.name, "files": written, "shapes": shapes}}


def join(checkpoint: Path, content: Mapping[str, Any], like: Like | None = None) -> dict[str, Any]:
    """What `write` was given, of the `content` of a checkpoint; tensors as `like` makes them, whole without it.

    Raises `DataError` for shards that are missing or damaged.
    """
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata
    from torch.distributed.checkpoint.state_dict_loader import load

    named = content["shards"]
    if not isinstance(folder := named["folder"], str) or not SHARDS.fullmatch(folder):
        raise DataError(f"{checkpoint} names a folder that no checkpoint has; choose another file.")
    path = checkpoint.parent / folder
    if (_files(path) if path.is_dir() else {}) != named["files"]:
        raise DataError(f"{path} does not have the shards that {checkpoint.name} names; {_ELSE}")
    reader, found = HuggingFaceStorageReader(str(path)), {}
    there = reader.read_metadata().state_dict_metadata
    for name, shape in named["shapes"].items():
        about = there.get(name)
        if not isinstance(about, TensorStorageMetadata) or not _is_whole(about, shape):
            raise DataError(f"{path} lacks a part of {name}; {_ELSE}")
        found[name] = (like or _whole)(name, about.size, about.properties.dtype)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        try:
            load(found, storage_reader=reader, no_dist=True)  # each rank reads what it needs, without the others
        except CheckpointException as error:
            raise DataError(f"{path} cannot be read ({error.failures[0][0]}); {_ELSE}") from None
    whole = {key: value for key, value in content.items() if key != "shards"}
    whole["model"] = dict(content["model"])
    optimizer = whole["optimizer"] = dict(content["optimizer"])
    optimizer["state"] = {place: dict(values) for place, values in optimizer["state"].items()}
    for name, tensor in found.items():
        part, _, key = name.partition(".")
        if part == "model":
            whole["model"][key] = tensor
        else:
            place, _, key = key.partition(".")
            optimizer["state"].setdefault(int(place), {})[key] = tensor
    return whole


def _is_whole(about: TensorStorageMetadata, shape: Sequence[int]) -> bool:
    """Whether the files have as many numbers of it as it had."""
    return list(about.size) == shape and sum(part.sizes.numel() for part in about.chunks) == math.prod(shape)


def _divided(content: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors that ranks hold together, by name, and the rest."""
    state = content["optimizer"]["state"]
    tensors: dict[str, Tensor]
    tensors = {f"model.{name}": value for name, value in content["model"].items() if isinstance(value, DTensor)}
    moments = {(place, key): value for place, values in state.items() for key, value in values.items()}
    tensors |= {f"optimizer.{place}.{key}": one for (place, key), one in moments.items() if isinstance(one, DTensor)}
    rest = {
        **content,
        "model": {name: value for name, value in content["model"].items() if not isinstance(value, DTensor)},
        "optimizer": {
            **content["optimizer"],
            "state": {
                place: {key: value for key, value in values.items() if not isinstance(value, DTensor)}
                for place, values in state.items()
            },
        },
    }
    return tensors, rest


def _files(folder: Path) -> dict[str, int]:
    """Bytes of each shard by name; whatever else lies there is not read."""
    return {one.name: one.stat().st_size for one in folder.glob("*.safetensors")}


def _new_folder(run: RunDirectory, step: int) -> Path | str:
    """A folder of its own: the shards of last.pt stay while others are written. Or why it cannot be made."""
    number = 1
    while (path := run.checkpoints / f"shards_{step}_{number}").exists():
        number += 1
    try:
        files.make_directory(path)
    except OSError as error:
        return error.strerror or str(error)
    return path


def _remove(path: Path, ranks: Together) -> None:
    if ranks.first:
        shutil.rmtree(path, ignore_errors=True)


def _whole(name: str, shape: torch.Size, dtype: torch.dtype) -> Tensor:
    return torch.empty(shape, dtype=dtype)
