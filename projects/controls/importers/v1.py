"""Version-1 recordings: 10 controls and 16 or 24 state values find their places in version 2 by the tables below.

The pose was filmed and stays as it is. What version 1 did not record is zero among the controls and the default in the
state; it is never guessed, and said once for each file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engines.basics import npz
from engines.basics.errors import DataError
from projects.controls.importers.meter import Meter
from projects.controls.layout import (
    CONTROL_NAMES,
    CONTROL_SIZE,
    DEFAULT_STATE,
    FRAME_SIZE,
    LOOK,
    STATE_NAMES,
)
from projects.controls.recordings import (
    UNKNOWN_SESSION,
    VERSION_1_WIDTHS,
    Recording,
    clock,
    measured_rate,
    read_timed,
    refuse_clock,
)
from projects.controls.resample import resampled

CONTROLS = (
    "move_forward", "strafe_left", "strafe_right", "sprint", "sneak", "jump", "attack", "use_item", "look_yaw",
    "look_pitch",
)  # fmt: skip
"""What the ten columns hold, under the names of version 2; it has no other names for them."""
STATE: tuple[tuple[str, float], ...] = (
    ("can_melee", 1), ("can_ranged", 1), ("can_place", 1), ("can_eat", 1),
    ("is_other", 1),  # a shield in the main hand, which version 2 does not name: the one place that is a guess
    ("is_tool", 1), ("hand_empty", 1), ("health", 1), ("hunger", 1), ("on_ground", 1), ("in_water", 1),
    ("sprinting", 1), ("sneaking", 1), ("is_blocking", 1), ("is_using_item", 1),
    ("fall_distance", 10 / 20),  # blocks over 10 became blocks over 20
    ("attack_cooldown", 1), ("target_is_entity", 1), ("target_is_block", 1),
    ("velocity_y", 1 / 3),  # blocks a tick became a third of them
    ("offhand_shield", 1), ("swimming", 1), ("item_use_progress", 1), ("on_fire", 1),
)  # fmt: skip
"""What the columns hold under the names of version 2, and the factor to its scale; some recordings end after 16."""
UNKNOWN = tuple(name for name in CONTROL_NAMES if name not in CONTROLS)


_OFFHAND_SHIELD, _OFFHAND_EMPTY = (STATE_NAMES.index(name) for name in ("offhand_shield", "offhand_empty"))


class Filmed:
    """A recording with its own pose and frame rate, which stays in one piece."""

    least_sessions = most_sessions = 1

    def __init__(self, recording: Recording) -> None:
        self.recording, self.frames = recording, len(recording)

    def sessions(self, titles: Sequence[str], rng: np.random.Generator) -> Iterator[Recording]:
        """The recording under its title; nothing of it is made up, so that `rng` has nothing to do."""
        yield replace(self.recording, name=titles[0])


def read(path: Path, wanted: float | None, meter: Meter) -> list[Filmed]:
    """The recording in version 2, at the `wanted` frames a second. Raises `DataError` naming file and row."""
    content = npz.load(path)
    meter.read(path.stat().st_size)
    controls_array = content.get("controls")
    if controls_array is not None and controls_array.ndim == 2 and controls_array.shape[1] == CONTROL_SIZE:
        if wanted is None:
            raise DataError(
                f"{path}: this is a version-2 recording already, expected version 1; use it as it is, or give a rate "
                "to bring it to, as in --set fps=20."
            )
        return [_at_rate(path, read_timed(path, content), wanted, meter)]
    frames = npz.matrix(path, content, "frames", FRAME_SIZE)
    old_controls = npz.matrix(path, content, "controls", *VERSION_1_WIDTHS["controls"])
    old_state = npz.matrix(path, content, "game_state", *VERSION_1_WIDTHS["game_state"])
    npz.same_rows(path, frames=frames, controls=old_controls, game_state=old_state)
    times, fps = clock(path, content, len(frames))
    recording = Recording(
        name=path.stem,
        frames=frames,
        controls=new_controls(old_controls),
        state=new_state(old_state),
        timestamps=times,
        fps=fps,
        session_type=npz.text(path, content, "session_type", UNKNOWN_SESSION),
    )
    left = len(STATE_NAMES) - old_state.shape[1]
    meter.say(
        f"{path}: {len(frames)} frames of version 1, which did not record {', '.join(UNKNOWN)}: these controls are "
        f"zero, and {left} of the {len(STATE_NAMES)} state values are at their defaults."
    )
    if wanted is not None:
        return [_at_rate(path, recording, wanted, meter)]
    refuse_clock(path, recording)
    return [Filmed(recording)]


def _at_rate(path: Path, recording: Recording, fps: float, meter: Meter) -> Filmed:
    """By its timestamps."""
    found = measured_rate(recording.timestamps) if len(recording) > 1 else recording.fps
    meter.say(f"{path}: {len(recording)} frames at {found:.4g} a second are brought to {fps:g}.")
    return Filmed(resampled(recording, fps) if len(recording) > 1 else replace(recording, fps=fps))


def new_controls(old: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N, 10) to (N, 28)."""
    new = np.zeros((len(old), CONTROL_SIZE), np.float32)
    new[:, [CONTROL_NAMES.index(name) for name in CONTROLS]] = old
    new[:, LOOK] = new[:, LOOK].clip(-1, 1)
    return new


def new_state(old: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N, 16) or (N, 24) to (N, 46)."""
    new = np.repeat(DEFAULT_STATE[None], len(old), axis=0)
    for column, (name, factor) in enumerate(STATE[: old.shape[1]]):
        new[:, STATE_NAMES.index(name)] = old[:, column] * factor
    new[:, _OFFHAND_EMPTY] -= new[:, _OFFHAND_SHIELD]
    return new
