"""Windows of drives as a training source: rows lie once in memory, batches gather them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.basics.errors import DataError
from engines.training.project import Batch, Context
from projects.sim.drives import Drive, Floats
from projects.sim.labels import ABSENT, LABELS
from projects.sim.vision import as_input


@dataclass(frozen=True)
class FrameRows:
    """Drives laid end to end: telemetry (N, 8), labels (N, 3), features (N, dv) or frames (N, H, W, 3) or neither."""

    telemetry: Tensor
    labels: Tensor
    features: Tensor | None
    frames: Tensor | None
    drive: NDArray[np.int64]
    horizon: NDArray[np.int64]

    @classmethod
    def of(cls, drives: Sequence[Drive], features: Sequence[Floats] | None, device: torch.device) -> FrameRows:
        """Lay them out; with `features` the frames are left out. Raises `DataError` where frames differ in size."""
        frames = None
        if features is None and drives[0].frames is not None:
            frames = torch.from_numpy(np.concatenate([frames_like(drives[0], drive) for drive in drives]))
        lengths = [len(drive) for drive in drives]
        return cls(
            telemetry=torch.from_numpy(np.concatenate([drive.telemetry for drive in drives])).to(device),
            labels=torch.from_numpy(np.concatenate([drive.labels for drive in drives])).long().to(device),
            features=None if features is None else torch.from_numpy(np.concatenate(features)).to(device),
            frames=frames,
            drive=np.repeat(np.arange(len(drives)), lengths),
            horizon=np.repeat([drive.about.horizon for drive in drives], lengths),
        )


def frames_like(first: Drive, drive: Drive) -> NDArray[np.uint8]:
    """The frames of `drive`. Raises `DataError` where they are not as the first drive's."""
    assert first.frames is not None
    size = first.frames.shape[1:]
    if drive.frames is None or drive.frames.shape[1:] != size:
        said = "no frames" if drive.frames is None else f"frames of {drive.frames.shape[2]} × {drive.frames.shape[1]}"
        raise DataError(
            f"{drive.name}: has {said}, but {first.name} has frames of {size[1]} × {size[0]}; raw frames need one "
            "size, so set model.cached to true or parse them apart."
        )
    return drive.frames


class WindowSource:
    """The windows of `frames` frames that end at each of the rows `ends: (n,)`."""

    def __init__(self, rows: FrameRows, ends: NDArray[np.int64], frames: int) -> None:
        self.rows, self.ends = rows, torch.from_numpy(ends)
        self._window = torch.arange(1 - frames, 1)

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def telemetry(self) -> Tensor:
        """Of every window: (n, 8)."""
        return self.rows.telemetry[self.ends]

    @property
    def labels(self) -> Tensor:
        """Of every window: (n, 3), -1 where there is none."""
        return self.rows.labels[self.ends]

    @property
    def weights(self) -> Tensor:
        """Of every window: (n,)."""
        return torch.ones(len(self), device=self.rows.telemetry.device)

    @property
    def features(self) -> Tensor | None:
        """Of every frame that is in a window: (frames, dv)."""
        if self.rows.features is None:
            return None
        return self.rows.features[torch.unique(self.ends[:, None] + self._window)]

    @property
    def last_labels(self) -> Tensor:
        """The newest label whose future is over when the window ends: (n, 3), -1 where none is."""
        ends = self.ends.numpy()
        earlier = ends - self.rows.horizon[ends]
        known = (earlier >= 0) & (self.rows.drive[np.maximum(earlier, 0)] == self.rows.drive[ends])
        labels = self.rows.labels[torch.from_numpy(np.maximum(earlier, 0))]
        return torch.where(torch.from_numpy(known)[:, None].to(labels.device), labels, ABSENT)

    def batch(self, indices: Tensor, rng: np.random.Generator | None, ctx: Context | None = None) -> Batch:
        """`telemetry: (b, 8)`, `risk_id`, `reason_id`, `action_id`, `weight: (b,)`, and `vis_feats: (b, F, dv)` or
        `frames: (b, F, 3, H, W)` where the drives have frames."""
        ends = self.ends[indices]
        device = self.rows.telemetry.device
        labels = self.rows.labels[ends]
        batch = {"telemetry": self.rows.telemetry[ends], "weight": torch.ones(len(ends), device=device)}
        batch |= {f"{task}_id": labels[:, place] for place, task in enumerate(LABELS)}
        window = ends[:, None] + self._window
        if self.rows.features is not None:
            batch["vis_feats"] = self.rows.features[window]
        elif self.rows.frames is not None:
            batch["frames"] = as_input(self.rows.frames[window]).to(device)
        return batch
