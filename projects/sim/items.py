"""Samples from a dataset class: shards of our own, or a class that the config names. All are read once, into memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engines.basics.errors import DataError, UserError
from engines.contract.references import load
from engines.training.project import Batch, Context
from projects.sim.config import SimConfig
from projects.sim.labels import ABSENT, LABELS, TELEMETRY

SHARDS = "projects.sim.shards:Shards"
IDS = tuple(f"{task}_id" for task in LABELS)
PICTURES = {"vis_feats": 2, "frames": 4}
"""Dimensions of the two ways to give what is seen."""


class ItemSource:
    """Samples in memory; a dataset gives each as a dict.

    `telemetry: [8]`, one of `vis_feats: [F, dv]` and `frames: [F, 3, H, W]` (or neither), any of `risk_id`, `reason_id`
    and `action_id` (-1 or absent where nobody gave it), and, where it has one, a `weight`.
    """

    def __init__(self, dataset: Any, where: str, device: torch.device) -> None:
        count = len(dataset)
        if not count:
            raise DataError(f"{where}: holds no sample, expected at least one.")
        first = _checked(dataset[0], None, f"{where}: sample 0")
        columns: dict[str, list[Tensor]] = {name: [] for name in first}
        for place in range(count):
            item = _checked(dataset[place], first, f"{where}: sample {place}")
            for name, column in columns.items():
                column.append(item[name])
        self._batch = {name: torch.stack(column).to(device) for name, column in columns.items()}
        if not any((self._batch[name] != ABSENT).any() for name in IDS):
            raise DataError(f"{where}: no sample has a label, expected {', '.join(IDS)}.")

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
    sources = []
    for part in (cfg.data.train, cfg.data.validation):
        path = folder / str(part)
        try:
            dataset = kind(str(path))
        except (DataError, UserError):
            raise
        except Exception as error:  # a class of the user's own may fail in any way
            raise DataError(f"{named} cannot read {path} ({type(error).__name__}: {error}).") from None
        sources.append(ItemSource(dataset, str(path), device))
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


def _checked(item: Any, first: Mapping[str, Tensor] | None, where: str) -> dict[str, Tensor]:
    """The tensors of a sample. Raises `DataError` where it is not as the module says, or not as the first one."""
    if not isinstance(item, Mapping) or "telemetry" not in item:
        raise DataError(
            f"{where}: expected a dict with telemetry, labels and vis_feats or frames, got {type(item).__name__}."
        )
    sample = {"telemetry": _floats(item, "telemetry", 1, where)}
    if sample["telemetry"].shape != (len(TELEMETRY),):
        raise DataError(
            f"{where}: telemetry has {len(sample['telemetry'])} values, expected 8 ({', '.join(TELEMETRY)})."
        )
    sample |= {name: _floats(item, name, dims, where) for name, dims in PICTURES.items() if name in item}
    for task, names in LABELS.items():
        label = int(item.get(f"{task}_id", ABSENT))
        if not ABSENT <= label < len(names):
            raise DataError(
                f"{where}: {task}_id is {label}, expected 0 to {len(names) - 1} ({', '.join(names)}), or -1."
            )
        sample[f"{task}_id"] = torch.tensor(label)
    sample["weight"] = torch.tensor(float(item.get("weight", 1.0)))
    if not torch.isfinite(sample["weight"]) or sample["weight"] < 0:
        raise DataError(f"{where}: weight is {float(sample['weight'])}, expected a finite number of at least 0.")
    if first is not None and [(k, v.shape) for k, v in sample.items()] != [(k, v.shape) for k, v in first.items()]:
        shapes = [{name: tuple(value.shape) for name, value in one.items() if value.ndim} for one in (sample, first)]
        raise DataError(f"{where}: is {shapes[0]}, the first sample {shapes[1]}; expected all alike.")
    return sample


def _floats(item: Mapping[str, Any], name: str, dims: int, where: str) -> Tensor:
    values = torch.as_tensor(item[name]).float()
    if values.ndim != dims or not values.isfinite().all():
        raise DataError(f"{where}: {name} is {tuple(values.shape)}, expected {dims} dimensions of finite numbers.")
    return values
