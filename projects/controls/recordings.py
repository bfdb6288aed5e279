"""Reading and writing recordings: one `.npz` file a session, checked so that nothing bad reaches training."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engines.basics import npz
from engines.basics.errors import DataError
from engines.basics.files import make_directory, replace_with
from projects.controls.layout import CONTROL_SIZE, CURSOR, FRAME_SIZE, LOOK, LOOK_DEADZONE, STATE_SIZE

if TYPE_CHECKING:
    from engines.contract.settings import RunConfig

VERSION = 2
RATE_TOLERANCE = 0.05
"""Rates that differ by no more than this share are one: a camera's 29.97 is 30."""
UNKNOWN_SESSION = "unknown"
_WIDTHS = {"frames": FRAME_SIZE, "controls": CONTROL_SIZE, "game_state": STATE_SIZE}
VERSION_1_WIDTHS = {"controls": (10,), "game_state": (16, 24)}

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Recording:
    """One session, a row a frame.

    frames: (N, 260) float32, pose. controls: (N, 28) float32, what the player did on that frame.
    state: (N, 46) float32, what the game said. timestamps: (N,) float64, seconds. fps: frames a second.
    session_type: what was played, such as `combat`. synthesised_pose: the pose was made from the controls.
    look_deadzone: magnitude up to which its look is read as none.
    """

    name: str
    frames: Array
    controls: Array
    state: Array
    timestamps: NDArray[np.float64]
    fps: float
    session_type: str
    synthesised_pose: bool = False
    look_deadzone: float = LOOK_DEADZONE

    def __len__(self) -> int:
        return len(self.frames)


def files(settings: RunConfig) -> list[Path]:
    """The recordings that a config's data is read from."""
    return _files(Path(settings.data.path).expanduser())


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.npz"))


def read_folder(path: Path, look_deadzone: float = LOOK_DEADZONE) -> list[Recording]:
    """Every recording in a folder, sorted by name, all of one rate. Raises `DataError` for the first that is wrong."""
    if not path.is_dir():
        raise DataError(f"{path}: no such folder; expected a folder with .npz recordings (data.path).")
    if not (found := _files(path)):
        raise DataError(f"{path}: no recordings; expected at least two .npz files, one a session.")
    recordings = [replace(read_recording(file), look_deadzone=look_deadzone) for file in found]
    usual = sorted(recording.fps for recording in recordings)[(len(recordings) - 1) // 2]
    for file, recording in zip(found, recordings, strict=True):
        refuse_rate(file, recording, usual, "most recordings beside it have")
    return recordings


def refuse_rate(file: Path, recording: Recording, expected: float, whose: str) -> None:
    """Raises `DataError` where a recording has another rate than `expected`, and says how it gets that one."""
    if not same_rate(recording.fps, expected):
        raise DataError(
            f"{file}: has {recording.fps:.4g} frames a second, expected {expected:.4g}, as {whose}; "
            f"`cockpit data parse {file} OUT --set fps={expected:.4g}` makes one of that rate."
        )


def same_rate(one: float, other: float) -> bool:
    return abs(one - other) <= RATE_TOLERANCE * other


def read_recording(path: Path) -> Recording:
    """One recording, checked; look is clipped to ±1 and the cursor to [0, 1]. Raises `DataError` naming file and row.

    Missing `version` and `session_type` are filled in, and either of `timestamps` and `fps` by the other.
    """
    recording = read_timed(path, npz.load(path))
    refuse_clock(path, recording)
    return recording


def read_timed(path: Path, content: npz.Content) -> Recording:
    """The recording in the file `path`, whose declared rate may be another one than its timestamps have."""
    _check_version(path, content)
    frames, controls, state = (npz.matrix(path, content, key, width) for key, width in _WIDTHS.items())
    npz.same_rows(path, frames=frames, controls=controls, game_state=state)
    times, fps = clock(path, content, len(frames))
    controls[:, LOOK] = controls[:, LOOK].clip(-1, 1)
    controls[:, CURSOR] = controls[:, CURSOR].clip(0, 1)
    return Recording(
        name=path.stem,
        frames=frames,
        controls=controls,
        state=state,
        timestamps=times,
        fps=fps,
        session_type=npz.text(path, content, "session_type", UNKNOWN_SESSION),
        synthesised_pose=bool(npz.scalar(path, content, "pose_synthesised", 0.0)),
    )


def clock(path: Path, content: npz.Content, rows: int) -> tuple[NDArray[np.float64], float]:
    """(rows,) seconds, and the frames a second that the file declares or, where it does not, that its times have.

    Times that are all the same are none: a steady rate then. Raises `DataError` where the file says neither.
    """
    fps = npz.scalar(path, content, "fps", math.nan)
    if "fps" in content and not (np.isfinite(fps) and fps > 0):
        raise DataError(f"{path}: fps is {fps}, expected a number above 0.")
    times = _timestamps(path, content, rows)
    if times is None or not np.ptp(times):
        if math.isnan(fps):
            raise DataError(
                f"{path}: has neither timestamps nor fps, so nothing says how fast it was recorded; expected one of "
                "them, as in fps=20."
            )
        return np.arange(rows, dtype=np.float64) / fps, fps
    return times, measured_rate(times) if math.isnan(fps) else fps


def measured_rate(times: NDArray[np.float64]) -> float:
    """Frames a second between `times: (n,)` that are not all the same; steps over twice the usual one do not count."""
    steps = np.diff(times)
    steps = steps[steps > 0]
    return float(1 / steps[steps <= 2 * np.median(steps)].mean())


def refuse_clock(path: Path, recording: Recording) -> None:
    """Raises `DataError` where the timestamps have another rate than the one that the file declares."""
    if len(recording) > 1 and not same_rate(measured := measured_rate(recording.timestamps), recording.fps):
        fps = f"{recording.fps:.4g}"
        raise DataError(
            f"{path}: its timestamps have {measured:.4g} frames a second, expected {fps}, as its fps says; "
            f"`cockpit data parse {path} OUT --set fps={fps}` goes by the timestamps and makes one of that rate."
        )


def _timestamps(path: Path, content: npz.Content, rows: int) -> NDArray[np.float64] | None:
    """(rows,) finite seconds that do not go back; None where the file has none."""
    if "timestamps" not in content:
        return None
    array = content["timestamps"]
    if array.shape != (rows,) or array.dtype.kind not in "fiu":
        raise DataError(f"{path}: timestamps has shape {array.shape} of {array.dtype}, expected ({rows},) numbers.")
    times = array.astype(np.float64)
    if not np.isfinite(times).all():
        row = int((~np.isfinite(times)).argmax())
        raise DataError(f"{path}: timestamps row {row} is {times[row]}, expected finite seconds.")
    if (back := np.diff(times) < 0).any():
        row = int(back.argmax()) + 1
        raise DataError(
            f"{path}: timestamps row {row} is {times[row]:.6g}, before the {times[row - 1]:.6g} of the row above; "
            "expected seconds that rise: cut the recording in two there."
        )
    return times


def write_recording(path: Path, recording: Recording) -> None:
    """Write `recording` to `path` (uncompressed), whole or not at all."""
    content: dict[str, NDArray[np.generic]] = {
        "frames": recording.frames.astype(np.float32),
        "controls": recording.controls.astype(np.float32),
        "game_state": recording.state.astype(np.float32),
        "timestamps": recording.timestamps.astype(np.float64),
        "fps": np.array(recording.fps, np.float64),
        "version": np.array(VERSION, np.int64),
        "session_type": np.array(recording.session_type),
    }
    if recording.synthesised_pose:
        content["pose_synthesised"] = np.array(True)

    def write(file: IO[bytes]) -> None:
        np.savez(file, allow_pickle=False, **content)

    make_directory(path.parent)
    replace_with(path, write)


def _check_version(path: Path, content: npz.Content) -> None:
    for key, width in _WIDTHS.items():
        array = content.get(key)
        if array is not None and array.ndim == 2 and array.shape[1] in VERSION_1_WIDTHS.get(key, ()):
            raise DataError(
                f"{path}: this is a version-1 recording ({key} has {array.shape[1]} columns), expected version "
                f"{VERSION} with {width}; `cockpit data parse` makes one of it and says what it cannot know."
            )
    version = npz.scalar(path, content, "version", float(VERSION))
    if version != VERSION:
        raise DataError(f"{path}: this is a version-{version:g} recording, expected version {VERSION}.")
