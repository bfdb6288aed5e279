"""Windows gathered as whole batches from arrays that stay on the device.

Every session lies in the arrays after five lead rows of zeros, so a window is 30 consecutive rows and the 34 past
controls it shows are 34 consecutive rows, whatever session it is in. Base rows hold all but the history, which is a
sliding view on the controls: 1.7 times the raw bytes, where rows with their history would be twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import torch
from torch import Tensor

from engines.training.draws import Share
from engines.training.project import Batch, Context
from engines.training.windows import moments, send, sliding
from projects.controls.augment import draw, random_rows, shown_rows, write_frames
from projects.controls.config import Augmentation
from projects.controls.features import SOURCES, lagged_state, target_frames
from projects.controls.layout import (
    CONTROL_SIZE,
    COORDINATES,
    FEATURE_SIZE,
    FRAME_FEATURES,
    HISTORY,
    HISTORY_FEATURES,
    STATE_FEATURES,
    VELOCITY_FEATURES,
    WINDOW,
)
from projects.controls.masks import Masks, frame_masks
from projects.controls.recordings import Recording

BASE = HISTORY_FEATURES.start
LEAST_DEVIATION = 1e-6
WHITEN_FLOOR = 0.006
"""Metres: what moves less is not blown up to the size of what moves."""
ROW = 672
"""Rows of a batch lie this many floats apart, one more than they have: aligned writes save a quarter of the time."""
MASK_NAMES = tuple(field.name for field in fields(Masks))


class WindowSource:
    """The windows of some sessions, an `engines.training.project.Source`.

    Args:
        recordings: the sessions, in the order their windows are numbered.
        device: where the arrays live and batches are made.
        history_dropout: chance that a past frame's controls are hidden from a window, in every row that shows them.
        augmentation: what else is done to training windows; nothing where absent.
    """

    def __init__(
        self,
        recordings: Sequence[Recording],
        device: torch.device,
        history_dropout: float,
        augmentation: Augmentation | None = None,
    ) -> None:
        rows = sum(_padding(len(recording)) + len(recording) for recording in recordings)
        base = np.zeros((rows, BASE), np.float32)
        controls = np.zeros((rows, CONTROL_SIZE), np.float32)
        masks = np.zeros((rows, len(MASK_NAMES)), np.bool_)
        real = np.zeros(rows, np.bool_)
        starts, row = [], 0
        self._spans: list[tuple[int, int]] = []
        """First row of each session, and the one after its last."""
        for recording in recordings:
            first = row + _padding(len(recording))
            row = first + len(recording)
            base[first:row, FRAME_FEATURES] = recording.frames
            coordinates = recording.frames[:, :COORDINATES]
            np.subtract(coordinates[1:], coordinates[:-1], out=base[first + 1 : row, VELOCITY_FEATURES])
            base[first:row, STATE_FEATURES] = lagged_state(recording.state)
            controls[first:row] = recording.controls
            session = frame_masks(recording.controls, recording.state, recording.look_deadzone)
            masks[first:row] = np.stack([getattr(session, name) for name in MASK_NAMES], axis=1)
            real[first:row] = True
            starts.append(np.array(target_frames(len(recording))) + (first - WINDOW + 1))
            self._spans.append((first, row))
        self.sessions = np.repeat(np.arange(len(starts)), [len(session) for session in starts])
        """Which recording a window comes from: (windows,)."""
        self.times = np.concatenate([one.timestamps[list(target_frames(len(one)))] for one in recordings])
        """Seconds at which each window's target was recorded: (windows,)."""
        self.fps = recordings[0].fps
        """Frames a second, of all recordings about the same."""
        self._device = device
        self._history_dropout = history_dropout
        self._augmentation = augmentation
        self._starts = torch.from_numpy(np.concatenate(starts)).to(device)
        self._firsts = torch.from_numpy(np.array(self._spans)[self.sessions, 0]).to(device)
        self._base = torch.from_numpy(base).to(device)
        self._controls = torch.from_numpy(controls).to(device)
        self._masks = torch.from_numpy(masks).to(device)
        self._base_windows = sliding(self._base, WINDOW)
        self._real = torch.from_numpy(real).to(device)
        self._real_windows = sliding(self._real, WINDOW)
        self._control_windows = sliding(self._controls, SOURCES).flatten(1)

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def nbytes(self) -> int:
        """Bytes of everything that stays in memory."""
        arrays = (self._starts, self._firsts, self._base, self._controls, self._masks, self._real)
        return sum(array.nbytes for array in arrays) + self.sessions.nbytes + self.times.nbytes

    def batch(self, indices: Tensor, rng: np.random.Generator | None, ctx: Context | None = None) -> Batch:
        """The windows `indices: (batch,) int64`; `rng` draws what augmentation does and which past frames are hidden.

        Without `rng` nothing is augmented or hidden. Gives features (batch, 30, 671), zeros where padded, mask
        (batch, 30) bool, target (batch, 28) and, for the target frame, the bools gameplay, screen_open,
        hotbar_changed, look_active and idle, each (batch,).
        """
        share = ctx.share if ctx else None
        index = send(indices, self._device)
        start = self._starts.index_select(0, index)
        features = self._base.new_empty(len(indices), WINDOW, ROW)[..., :FEATURE_SIZE]
        if rng is None or self._augmentation is None or not self._augmentation.on:
            last = start + (WINDOW - 1)
            torch.index_select(self._base_windows, 0, start, out=features[..., :BASE])
            features[..., BASE:] = self._history(self._control_windows.index_select(0, start - HISTORY), rng, share)
            mask = self._real_windows.index_select(0, start)
        else:
            draws = draw(self._augmentation, len(indices), self._device, rng, share)
            shown = shown_rows(start, self._firsts.index_select(0, index), draws, self._augmentation.crop)
            last, mask = shown.last, shown.mask
            write_frames(features, self._base, shown, draws.noise)
            past = self._controls.index_select(0, shown.past.flatten()).view(len(indices), -1)
            features[..., BASE:] = self._history(past, rng, share)
            features.mul_(mask[..., None])
        masks = self._masks.index_select(0, last).unbind(1)
        return {
            "features": features,
            "mask": mask,
            "target": self._controls.index_select(0, last),
            **dict(zip(MASK_NAMES, masks, strict=True)),
        }

    def _history(self, past: Tensor, rng: np.random.Generator | None, share: Share | None) -> Tensor:
        """History rows of windows: (batch, 30, 140), views of `past: (batch, 34 · 28)` with hidden frames zero."""
        if rng is not None and self._history_dropout:
            drawn = random_rows(rng, (len(past), SOURCES, 1), share)
            kept = drawn >= self._history_dropout
            past.view(-1, SOURCES, CONTROL_SIZE).mul_(send(torch.from_numpy(kept), self._device))
        return past.as_strided((len(past), WINDOW, HISTORY * CONTROL_SIZE), (past.shape[1], CONTROL_SIZE, 1))

    def feature_statistics(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation over all frames, each (671,), for coordinates and velocities only.

        Flags, visibilities, state and history are scaled already: their mean is 0 and their deviation 1, like the
        deviation of whatever does not move.
        """
        middle, deviation = moments(self._base[:, : STATE_FEATURES.start], self._spans)
        mean, std = torch.zeros(FEATURE_SIZE, device=self._device), torch.ones(FEATURE_SIZE, device=self._device)
        for moving in (slice(0, COORDINATES), VELOCITY_FEATURES):
            mean[moving], std[moving] = middle[moving].float(), deviation[moving].float()
        std[std < LEAST_DEVIATION] = 1.0
        return mean, std

    def whitening(self) -> Tensor:
        """What decorrelates the coordinates of all frames: (225, 225), (covariance + floor²)^-½, known as ZCA."""
        rows = torch.cat([self._base[first:end, :COORDINATES] for first, end in self._spans]).double()
        values, vectors = torch.linalg.eigh(torch.cov(rows.T, correction=0))
        scaled = vectors / (values.clamp(min=0) + WHITEN_FLOOR**2).sqrt()
        whitening: Tensor = (scaled @ vectors.T).float()
        return whitening

    def labels(self) -> tuple[Tensor, dict[str, Tensor]]:
        """Targets (windows, 28) and masks (windows,) of every window, for statistics such as class weights."""
        last = self._starts + (WINDOW - 1)
        masks = self._masks.index_select(0, last).unbind(1)
        return self._controls.index_select(0, last), dict(zip(MASK_NAMES, masks, strict=True))


def _padding(length: int) -> int:
    """Zero rows before a session: five of history, and what a short session lacks to a window."""
    return HISTORY + max(0, WINDOW - length)
