"""Samples from a dataset class: shards of our own, or a class that the config names. All are read once, into memory.

A shard is an .npz or .safetensors file, a row of each array per sample: telemetry, vis_feats or frames, *_id, weight.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engines.basics import npz
from engines.basics.errors import DataError, UserError
from engines.contract.references import load
from engines.training.project import Batch, Context
from projects.sim.config import SimConfig
from projects.sim.labels import ABSENT, LABELS, TELEMETRY

SHARDS = "projects.sim.items:Shards"
IDS = tuple(f"{task}_id" for task in LABELS)
PICTURES = {"vis_feats": ("F", "dv"), "frames": ("F", "3", "H", "W")}
"""Shapes of the two ways to give what is seen, one of them a sample."""
Sample = dict[str, Tensor]


class ItemSource:
    """Samples in memory; a dataset gives each as a dict.

    `telemetry: [8]`, one of `vis_feats: [F, dv]` and `frames: [F, 3, H, W]` (or neither), any of `risk_id`, `reason_id`
    and `action_id` (-1 or absent where nobody gave it), and, where it has one, a `weight`.
    """

    def __init__(self, dataset: Any, where: str, device: torch.device, like: ItemSource | None = None) -> None:
        """like: other samples that these have to be like. Raises `DataError` naming the first sample that is wrong."""
        try:
            count = len(dataset)
        except Exception as error:  # a class of the user's own may fail in any way
            raise DataError(f"{where}: has no length ({_said(error)}), expected a number of samples.") from None
        if not count:
            raise DataError(f"{where}: holds no sample, expected at least one.")
        first, shown = (None, "the first sample") if like is None else (like._sample(0), "a training sample")
        samples = []
        for place in range(count):
            sample = _checked(_given(dataset, place, where), first, shown, f"{where}: sample {place}")
            first = first or sample
            samples.append(sample)
        self._batch = {name: torch.stack([sample[name] for sample in samples]).to(device) for name in samples[0]}
        if not any((self._batch[name] != ABSENT).any() for name in IDS):
            raise DataError(f"{where}: no sample has a label, expected {', '.join(IDS)}.")

    def _sample(self, place: int) -> Sample:
        return {name: values[place] for name, values in self._batch.items()}

    def __len__(self) -> int:
        return len(self._batch["telemetry"])

    @property
    def telemetry(self) -> Tensor:
        """Of every sample: (n, 8)."""
        return self._batch["telemetry"]

    @property
    def labels(self) -> Tensor:
        """Of every sample: (n, 3), -1 where there is none."""
        return torch.stack([self._batch[name] for name in IDS], dim=1)

    @property
    def weights(self) -> Tensor:
        """Of every sample: (n,)."""
        return self._batch["weight"]

    @property
    def features(self) -> Tensor | None:
        """Of every frame: (n·F, dv)."""
        features = self._batch.get("vis_feats")
        return None if features is None else features.flatten(0, 1)

    @property
    def last_labels(self) -> Tensor | None:
        """Not known: samples have no order."""
        return None

    def batch(self, indices: Tensor, rng: np.random.Generator | None, ctx: Context | None = None) -> Batch:
        """As of `WindowSource`."""
        return {name: values[indices] for name, values in self._batch.items()}


def read_items(cfg: SimConfig, device: torch.device) -> tuple[ItemSource, ItemSource]:
    """What trains and what validates. Raises `UserError` for a class that cannot be loaded, else `DataError`."""
    folder = Path(cfg.data.path).expanduser()
    named = cfg.data.dataset or SHARDS
    kind = dataset_class(named, folder)
    print(f"data: {named} reads {cfg.data.train} and {cfg.data.validation} in {folder}", flush=True)
    sources: list[ItemSource] = []
    for part in (cfg.data.train, cfg.data.validation):
        path = folder / str(part)
        try:
            dataset = kind(str(path))
        except (DataError, UserError):
            raise
        except Exception as error:  # as above
            raise DataError(f"{named} cannot read {path} ({_said(error)}).") from None
        sources.append(ItemSource(dataset, str(path), device, *sources))
    return sources[0], sources[1]


def dataset_class(named: str, folder: Path) -> Any:
    """The class that `package.module:Class`, `package.module.Class` or `file.py:Class` names. Raises `UserError`."""
    reference = named if ":" in named else ":".join(named.rsplit(".", 1))
    try:
        found = load(reference, beside=folder)
    except UserError as error:
        raise UserError(f"data.dataset: {error}", exit_code=error.exit_code) from None
    if not callable(found):
        raise UserError(f"data.dataset: {named!r} is a {type(found).__name__}, expected a class.")
    return found


def _said(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:160]


def _given(dataset: Any, place: int, where: str) -> Mapping[str, Any]:
    """What the dataset gives as a sample, a dict. Raises `DataError`."""
    try:
        item = dataset[place]
    except Exception as error:  # as above
        raise DataError(f"{where}: sample {place} of {len(dataset)} cannot be had ({_said(error)}).") from None
    if not isinstance(item, Mapping) or "telemetry" not in item:
        found = f"a dict of {', '.join(map(str, item))}" if isinstance(item, Mapping) else type(item).__name__
        raise DataError(
            f"{where}: sample {place}: expected a dict with telemetry, labels and vis_feats or frames, got {found}."
        )
    return item


def _checked(item: Mapping[str, Any], first: Sample | None, shown: str, where: str) -> Sample:
    """The tensors of a sample. Raises `DataError` where it is not as the module says, or not like the `first` one."""
    sample = {"telemetry": _floats(item, "telemetry", (str(len(TELEMETRY)),), where)}
    sample |= {name: _floats(item, name, shape, where) for name, shape in PICTURES.items() if name in item}
    if len(sample) > 2:
        raise DataError(f"{where}: has both {' and '.join(PICTURES)}, expected one of them or neither.")
    if "frames" in sample and not 0 <= sample["frames"].min() <= sample["frames"].max() <= 1:
        raise DataError(f"{where}: frames go up to {float(sample['frames'].max()):g}, expected colours from 0 to 1.")
    sample |= {f"{task}_id": _label(item, task, where) for task in LABELS}
    sample["weight"] = _floats({"weight": 1.0, **item}, "weight", (), where)
    if sample["weight"] < 0:
        raise DataError(f"{where}: weight is {float(sample['weight']):g}, expected at least 0.")
    if first is not None and [(k, v.shape) for k, v in sample.items()] != [(k, v.shape) for k, v in first.items()]:
        shapes = [{name: tuple(value.shape) for name, value in one.items() if value.ndim} for one in (sample, first)]
        raise DataError(f"{where}: is {shapes[0]}, {shown} {shapes[1]}; expected all alike.")
    return sample


def _label(item: Mapping[str, Any], task: str, where: str) -> Tensor:
    given, names = item.get(f"{task}_id", ABSENT), LABELS[task]
    try:
        label = operator.index(given)
    except (TypeError, ValueError):
        label = len(names)
    if not ABSENT <= label < len(names):
        raise DataError(
            f"{where}: {task}_id is {str(given)[:40]}, expected a whole number from 0 to {len(names) - 1} "
            f"({', '.join(names)}), or -1."
        )
    return torch.tensor(label)


def _floats(item: Mapping[str, Any], name: str, shape: tuple[str, ...], where: str) -> Tensor:
    """A tensor of finite numbers. shape: a number where that length is needed, a name where any is."""
    wanted = f"({', '.join(shape)})" if shape else "one number"
    try:
        values = torch.as_tensor(item[name]).detach().float()
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{where}: {name} is no array of numbers ({_said(error)}), expected {wanted}.") from None
    fits = len(shape) == values.ndim and all(
        length == int(wanted) if wanted.isdigit() else length > 0
        for length, wanted in zip(values.shape, shape, strict=True)
    )
    if not fits:
        raise DataError(f"{where}: {name} is {tuple(values.shape)}, expected {wanted}.")
    if not values.isfinite().all():
        raise DataError(f"{where}: {name} has {int((~values.isfinite()).sum())} values that are no finite number.")
    return values


class Shards:
    """The samples of a file, or of all .npz and .safetensors files of a folder, in the order of their names."""

    def __init__(self, path: str) -> None:
        folder = Path(path)
        files = sorted(folder.glob("*.npz")) + sorted(folder.glob("*.safetensors")) if folder.is_dir() else [folder]
        if not files:
            raise DataError(f"{folder}: holds no shard, expected .npz or .safetensors files.")
        self._shards = [_shard(file) for file in files]
        self._ends = np.cumsum([len(shard["telemetry"]) for shard in self._shards])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, place: int) -> dict[str, Any]:
        number = int(np.searchsorted(self._ends, place, side="right"))
        shard = self._shards[number]
        row = place - int(self._ends[number]) + len(shard["telemetry"])
        return {name: values[row] for name, values in shard.items()}


def _shard(path: Path) -> dict[str, Any]:
    try:
        if path.suffix == ".safetensors":
            from safetensors.numpy import load_file

            arrays: dict[str, Any] = load_file(path)
        else:
            arrays = npz.arrays_in(path)
    except Exception as error:  # safetensors has exceptions of its own
        if not isinstance(error, OSError | ValueError) and "safetensors" not in repr(type(error)):
            raise
        raise DataError(f"{path}: cannot be read as a shard ({error}); write it again.") from None
    rows = {name: len(values) if values.ndim else -1 for name, values in arrays.items()}
    if "telemetry" not in rows or len(set(rows.values())) > 1 or -1 in rows.values():
        raise DataError(f"{path}: arrays have {rows} rows; expected telemetry and others with as many.")
    return arrays
