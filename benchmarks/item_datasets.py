"""What the batches are compared with: datasets that put together one window at a time."""

from __future__ import annotations

import torch
from torch.utils.data import Dataset

from benchmarks.controls_data import HISTORY_DROPOUT
from projects.controls.config import Augmentation
from projects.controls.features import SOURCES, frame_features, lagged_state
from projects.controls.layout import CONTROL_SIZE, COORDINATES, HISTORY, HISTORY_FEATURES, WINDOW
from projects.controls.masks import frame_masks
from projects.controls.recordings import Recording

Item = tuple[torch.Tensor, torch.Tensor, torch.Tensor, dict[str, bool]]
FLAGS = ("gameplay", "screen_open", "hotbar_changed", "look_active")
FURTHEST = 44
"""Frames before the newest that a window may show, cropped by 3 and at 1.2 times its speed."""


class ItemDataset(Dataset[Item]):
    """One window an item, its features put together from the recording's arrays: the usual way."""

    def __init__(self, recordings: list[Recording]) -> None:
        self._frames = [torch.from_numpy(recording.frames) for recording in recordings]
        self._state = [torch.from_numpy(lagged_state(recording.state)) for recording in recordings]
        self._controls = [torch.from_numpy(recording.controls) for recording in recordings]
        self._masks = [frame_masks(recording.controls, recording.state) for recording in recordings]
        # every window that has all it shows, so that nothing needs to be padded
        self._index = [
            (session, last) for session, recording in enumerate(recordings) for last in range(FURTHEST, len(recording))
        ]

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, item: int) -> Item:
        session, last = self._index[item]
        features = self._features(session, last)
        history = features[:, HISTORY_FEATURES].view(WINDOW, HISTORY, CONTROL_SIZE)
        history *= _kept().unfold(0, HISTORY, 1).transpose(1, 2)
        return features, torch.ones(WINDOW, dtype=torch.bool), self._controls[session][last], self._flags(session, last)

    def _features(self, session: int, last: int) -> torch.Tensor:
        first, end = last - WINDOW + 1, last + 1
        frames = self._frames[session][first - 1 : end]
        velocity = frames[1:, :COORDINATES] - frames[:-1, :COORDINATES]
        past = self._controls[session][first - HISTORY : last].unfold(0, HISTORY, 1).transpose(1, 2).flatten(1)
        return torch.cat([frames[1:], velocity, self._state[session][first:end], past], dim=1)

    def _flags(self, session: int, last: int) -> dict[str, bool]:
        return {name: bool(getattr(self._masks[session], name)[last]) for name in FLAGS}


class RowDataset(ItemDataset):
    """The same items cut from rows of 671 features made beforehand: faster, for twice the memory of the recordings."""

    def __init__(self, recordings: list[Recording]) -> None:
        super().__init__(recordings)
        self._rows = [torch.from_numpy(frame_features(recording)) for recording in recordings]

    def _features(self, session: int, last: int) -> torch.Tensor:
        return self._rows[session][last - WINDOW + 1 : last + 1].clone()


class AugmentedDataset(ItemDataset):
    """One window an item, cropped, warped and blurred like ours."""

    def __init__(self, recordings: list[Recording], augmentation: Augmentation) -> None:
        super().__init__(recordings)
        self._augmentation = augmentation
        self._most = int(augmentation.crop * WINDOW)
        self._rows = torch.arange(SOURCES, -1, -1)

    def __getitem__(self, item: int) -> Item:
        session, last = self._index[item]
        old, new = torch.randint(self._most + 1, (2,)).tolist()
        factor = 1 + self._augmentation.warp * (2 * torch.rand(()) - 1)
        target, begin = last - new, last - WINDOW + 1 + old
        age = self._rows * factor
        nearest = target - age.round().long()
        shown, pose = nearest[HISTORY:], age[HISTORY - 1 :]
        frames = self._frames[session]
        older, newer = (frames[target - side.long(), :COORDINATES] for side in (pose.ceil(), pose.floor()))
        coordinates = older + (pose.ceil() - pose)[:, None] * (newer - older)
        coordinates += self._augmentation.noise * torch.randn_like(coordinates)
        past = (self._controls[session][nearest[:SOURCES]] * _kept()).unfold(0, HISTORY, 1).transpose(1, 2).flatten(1)
        others, state = frames[shown, COORDINATES:], self._state[session][shown]
        features = torch.cat([coordinates[1:], others, coordinates.diff(dim=0), state, past], dim=1)
        mask = age[HISTORY:] <= target - begin
        features *= mask[:, None]
        return features, mask, self._controls[session][target], self._flags(session, target)


def _kept() -> torch.Tensor:
    """Which past frames a window shows: (34, 1), the others are hidden."""
    return (torch.rand(SOURCES, 1) >= HISTORY_DROPOUT).float()
