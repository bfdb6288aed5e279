"""A drive to step through, what an exported model says of each of its windows, and what moved it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.basics.errors import DataError
from engines.contract.config import load_config
from engines.contract.rundir import RunDirectory
from engines.tasks import TaskContext
from projects.sim.config import SimConfig
from projects.sim.drives import Drive, Floats, drive_paths, read_drive
from projects.sim.features import FeatureStore, encode
from projects.sim.labels import HIGH, LABELS
from projects.sim.network import SimNetwork
from projects.sim.readers.kinds import LOGS, kind_of, read_log, why_not
from projects.sim.split import split_windows
from projects.sim.vision import open_vision

CHUNK = 64


def open_recording(
    run: RunDirectory, named: str, config: Mapping[str, Any], context: TaskContext
) -> tuple[Drive, Floats | None]:
    """The drive to show, and its features where the model sees frames. Raises `DataError` for any other path."""
    path = Path(named).expanduser() if named else _validated(run)
    kind = kind_of(path)
    if kind is not None:
        frames = 0

        def tick() -> None:
            nonlocal frames
            frames += 1
            context.progress(frames, 0, "frames read")

        drive = read_log(path, kind, 10, 20.0, tick)
    else:
        path = _one_drive(path)
        drive = read_drive(path)
    if not config["model"]["dv"] or drive.frames is None:
        return drive, None
    if not config["sees_frames"]:
        raise DataError(f"{run.export}: was trained on features of the user's own, so it cannot read frames.")

    def encoded(done: int, total: int) -> None:
        context.progress(done, total, "frames encoded")

    cpu = torch.device("cpu")
    encoder = open_vision(config["model"]["vision"])
    if kind is None:
        return drive, FeatureStore(encoder, cpu).features(drive, path, encoded)
    return drive, encode(encoder, drive.frames, cpu, encoded)


def _one_drive(path: Path) -> Path:
    """The file of a drive, or the only one of a folder. Raises `DataError`."""
    if not path.exists():
        raise DataError(f"{path}: is not there, expected a drive (.npz) or a log: {LOGS}.")
    if path.suffix != ".npz" and (why := why_not(str(path))):
        raise DataError(f"{path}: {why}.")
    paths = drive_paths(path)
    if len(paths) > 1:
        raise DataError(f"{path}: holds {len(paths)} drives, expected one; name it, as in {paths[0]}.")
    return paths[0]


def _validated(run: RunDirectory) -> Path:
    """The first drive that the run has validated on. Raises `DataError` where the run's data has gone."""
    settings = load_config(run.config).settings
    assert isinstance(settings, SimConfig)
    try:
        if settings.data.train is not None:
            raise DataError(f"{run.path.name} was trained on samples, not on drives.")
        paths = drive_paths(Path(settings.data.path))
        drives = [read_drive(path) for path in paths]
        first = split_windows(drives, settings.model.frames, settings.data).validation[0]
    except DataError as error:
        raise DataError(f"{error} Or name a recording: cockpit play RUN --recording DIR.") from None
    ends = np.cumsum([len(drive) for drive in drives])
    return paths[int(np.searchsorted(ends, first, side="right"))]


@dataclass(frozen=True)
class Decided:
    """Probabilities by task of the window that ends at each frame: (N, classes), NaN for the first F - 1 frames."""

    chances: dict[str, Floats]

    @property
    def high(self) -> Floats:
        """P(high risk): (N,)."""
        return self.chances["risk"][:, HIGH]


class Windows:
    """The windows of a drive as batches of one model.

    features: (N, dv) of the drive's frames, None for a model without visual tokens. Raises `DataError` for a drive that
    the model cannot take.
    """

    def __init__(self, network: SimNetwork, settings: dict[str, Any], drive: Drive, features: Floats | None) -> None:
        self.frames, self.tokens = int(settings["frames"]), int(settings["tokens"])
        if len(drive) < self.frames:
            raise DataError(f"{drive.name}: has {len(drive)} frames, a window of this model {self.frames}.")
        if settings["dv"] and features is None:
            raise DataError(f"{drive.name}: has no frames, and this model was trained with them.")
        self._network, self._sees = network, bool(settings["dv"])
        self._telemetry = torch.from_numpy(drive.telemetry)
        self._features = torch.from_numpy(features) if features is not None else None
        self._window = torch.arange(1 - self.frames, 1)

    def __len__(self) -> int:
        return len(self._telemetry)

    def batch(self, ends: Tensor) -> dict[str, Tensor]:
        """The windows that end at the frames `ends: (n,)`."""
        batch = {"telemetry": self._telemetry[ends]}
        if self._sees and self._features is not None:
            batch["vis_feats"] = self._features[ends[:, None] + self._window]
        return batch

    @torch.inference_mode()
    def decide(self, tick: Callable[[int, int], None]) -> Decided:
        """Every window; `tick` is given how many frames are done, and of how many."""
        chances = {task: np.full((len(self), len(names)), np.nan, np.float32) for task, names in LABELS.items()}
        for ends in torch.split(torch.arange(self.frames - 1, len(self)), CHUNK):
            tick(int(ends[0]), len(self))
            output = self._network(self.batch(ends))
            for task, rows in chances.items():
                rows[ends.numpy()] = output[f"{task}_logits"].softmax(1).numpy()
        return Decided(chances)

    @torch.inference_mode()
    def moved(self, end: int) -> dict[str, float]:
        """How much each part of a window adds to P(high): what is lost with its mean of the training in its place."""
        network, batch = self._network, self.batch(torch.tensor([end]))
        variants: dict[str, dict[str, Tensor]] = {"": batch}
        if "telemetry" in network._modules:
            variants["telemetry"] = {**batch, "telemetry": network.telemetry_mean[None]}
        if "projector" in network._modules and "vis_feats" in batch:
            for token in range(self.tokens):
                part = network.segments[token] > 0
                hidden = torch.where(part[None, :, None], network.feature_mean, batch["vis_feats"])
                variants[f"segment {token + 1}"] = {**batch, "vis_feats": hidden}
        joined = {name: torch.cat([one[name] for one in variants.values()]) for name in batch}
        high: NDArray[np.float32] = network(joined)["risk_logits"].softmax(1)[:, HIGH].numpy()
        return {name: float(high[0] - high[place]) for place, name in enumerate(variants) if name}
