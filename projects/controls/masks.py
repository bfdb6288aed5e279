"""Which frames each head is trained and judged on."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from projects.controls.layout import ACTION, HOTBAR, INV, LOOK, LOOK_DEADZONE, OPEN_INVENTORY, SCREEN_OPEN

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Masks:
    """One bool a frame, each of shape (frames,).

    gameplay: no screen is open. screen_open: some screen is. hotbar_changed: a slot was chosen on this frame.
    look_active: magnitude of (yaw, pitch) above the dead zone. idle: gameplay and none of the 12 actions is on.
    """

    gameplay: Bools
    screen_open: Bools
    hotbar_changed: Bools
    look_active: Bools
    idle: Bools

    def __len__(self) -> int:
        return len(self.gameplay)

    def __getitem__(self, frames: Bools | NDArray[np.int64] | slice) -> Masks:
        return Masks(*(getattr(self, field.name)[frames] for field in fields(self)))

    @property
    def action(self) -> Bools:
        """(frames, 12): gameplay, but every frame for open_inventory, which also closes the screen."""
        mask = np.repeat(self.gameplay[:, None], len(ACTION), axis=1)
        mask[:, OPEN_INVENTORY] = True
        return mask

    @property
    def inv(self) -> Bools:
        """(frames, 3): a screen is open."""
        return np.repeat(self.screen_open[:, None], len(INV), axis=1)

    @property
    def binary(self) -> Bools:
        """(frames, 15): where each on-off control means something, actions before inventory controls."""
        return np.concatenate([self.action, self.inv], axis=1)

    @property
    def look(self) -> Bools:
        """(frames,): gameplay and looking around."""
        return self.gameplay & self.look_active


def frame_masks(controls: Floats, state: Floats, look_deadzone: float = LOOK_DEADZONE) -> Masks:
    """The masks of frames with `controls: (frames, 28)` and `state: (frames, 46)`."""
    gameplay = state[:, SCREEN_OPEN] == 0
    yaw, pitch = (controls[:, column] for column in LOOK)
    return Masks(
        gameplay=gameplay,
        screen_open=state[:, SCREEN_OPEN] > 0,
        hotbar_changed=np.asarray((controls[:, HOTBAR] > 0.5).any(axis=1)),
        look_active=np.hypot(yaw, pitch) > look_deadzone,
        idle=gameplay & ~(controls[:, ACTION] > 0.5).any(axis=1),
    )
