"""Reading and writing recordings: one `.npz` file a session, checked so that nothing bad reaches training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from engines.contract.errors import DataError
from engines.contract.files import make_directory, replace_with
from projects.controls.layout import CONTROL_SIZE, CURSOR, FRAME_SIZE, LOOK, STATE_SIZE

VERSION = 2
DEFAULT_FPS = 20.0
UNKNOWN_SESSION = "unknown"
_WIDTHS = {"frames": FRAME_SIZE, "controls": CONTROL_SIZE, "game_state": STATE_SIZE}
_VERSION_1_WIDTHS = {"controls": (10,), "game_state": (16, 24)}

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Recording:
    """One session, a row a frame.

    frames: (N, 260) float32, pose. controls: (N, 28) float32, what the player did on that frame.
    state: (N, 46) float32, what the game said. timestamps: (N,) float64, seconds. fps: frames a second.
    session_type: what was played, such as `combat`. synthesised_pose: the pose was made from the controls.
    """

    name: str
    frames: Array
    controls: Array
    state: Array
    timestamps: NDArray[np.float64]
    fps: float
    session_type: str
    synthesised_pose: bool = False

    def __len__(self) -> int:
        return len(self.frames)


def read_folder(path: Path) -> list[Recording]:
    """Every recording in a folder, sorted by name. Raises `DataError` for the first thing that is wrong."""
    if not path.is_dir():
        raise DataError(f"{path}: no such folder; expected a folder with .npz recordings (data.path).")
    files = sorted(path.glob("*.npz"))
    if not files:
        raise DataError(f"{path}: no recordings; expected at least two .npz files, one a session.")
    return [read_recording(file) for file in files]


def read_recording(path: Path) -> Recording:
    """One recording, checked; look is clipped to ±1 and the cursor to [0, 1]. Raises `DataError` naming file and row.

    Missing `timestamps`, `fps`, `version` and `session_type` are filled in.
    """
    content = _load(path)
    _check_version(path, content)
    frames, controls, state = (_matrix(path, content, key) for key in _WIDTHS)
    if not len(frames) == len(controls) == len(state):
        raise DataError(
            f"{path}: frames has {len(frames)} rows, controls {len(controls)} and game_state {len(state)}; "
            "expected the same number of rows in all three."
        )
    if not len(frames):
        raise DataError(f"{path}: the recording has no rows; expected at least one frame.")
    fps = _scalar(path, content, "fps", DEFAULT_FPS)
    if not (np.isfinite(fps) and fps > 0):
        raise DataError(f"{path}: fps is {fps}, expected a number above 0.")
    controls[:, LOOK] = controls[:, LOOK].clip(-1, 1)
    controls[:, CURSOR] = controls[:, CURSOR].clip(0, 1)
    return Recording(
        name=path.stem,
        frames=frames,
        controls=controls,
        state=state,
        timestamps=_timestamps(path, content, len(frames), fps),
        fps=fps,
        session_type=_text(path, content, "session_type", UNKNOWN_SESSION),
        synthesised_pose=bool(_scalar(path, content, "pose_synthesised", 0.0)),
    )


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


_ZIP_START = b"PK\x03\x04"


def _load(path: Path) -> Mapping[str, NDArray[np.generic]]:
    """Every array of an `.npz`; nothing in it is ever unpickled."""
    try:
        with open(path, "rb") as file:
            start = file.read(len(_ZIP_START))
        if start != _ZIP_START and _ZIP_START.startswith(start):  # numpy would take so little for a pickle
            raise DataError(f"{path}: cut short after {len(start)} bytes; expected a whole .npz recording.")
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.lib.npyio.NpzFile):
            with archive:
                return {key: archive[key] for key in archive.files}
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; expected an .npz recording.") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); expected an .npz recording.") from None
    except Exception as error:  # numpy, zipfile and zlib fail in a dozen ways on bytes that are not an .npz
        if "pickle" in str(error).lower():
            raise DataError(
                f"{path}: holds pickled data, which is never loaded; expected an .npz of plain number arrays."
            ) from None
        raise DataError(f"{path}: damaged or not an .npz file ({error}); expected a whole .npz recording.") from None
    raise DataError(f"{path}: this is a single array, expected an .npz recording with several.")


def _check_version(path: Path, content: Mapping[str, NDArray[np.generic]]) -> None:
    version = _scalar(path, content, "version", float(VERSION))
    for key, widths in _VERSION_1_WIDTHS.items():
        array = content.get(key)
        if array is not None and array.ndim == 2 and array.shape[1] in widths:
            raise DataError(
                f"{path}: this is a version-1 recording ({key} has {array.shape[1]} columns); expected version 2 "
                f"with {_WIDTHS[key]}; record the session again, version 1 lacks the missing columns."
            )
    if version != VERSION:
        raise DataError(f"{path}: this is a version-{version:g} recording, expected version {VERSION}.")


def _matrix(path: Path, content: Mapping[str, NDArray[np.generic]], key: str) -> Array:
    """`content[key]` as float32 of the width it must have, every value finite."""
    width = _WIDTHS[key]
    if key not in content:
        raise DataError(f"{path}: the array {key!r} is missing; expected {key} of shape (N, {width}).")
    array = content[key]
    if array.ndim != 2 or array.shape[1] != width:
        raise DataError(f"{path}: {key} has shape {array.shape}, expected (N, {width}).")
    if array.dtype.kind not in "fiub":
        raise DataError(f"{path}: {key} holds {array.dtype}, expected numbers (float32).")
    with np.errstate(over="ignore"):  # what overflows becomes inf, which is reported with its row below
        numbers = array.astype(np.float32)
    bad = ~np.isfinite(numbers).all(axis=1)
    if bad.any():
        row = int(bad.argmax())
        column = int((~np.isfinite(numbers[row])).argmax())
        raise DataError(
            f"{path}: {key} row {row} column {column} is {array[row, column]} ({int(bad.sum())} rows in all have such "
            "values), expected finite numbers."
        )
    return numbers


def _timestamps(path: Path, content: Mapping[str, NDArray[np.generic]], rows: int, fps: float) -> NDArray[np.float64]:
    if "timestamps" not in content:
        return np.arange(rows, dtype=np.float64) / fps
    array = content["timestamps"]
    if array.shape != (rows,) or array.dtype.kind not in "fiu":
        raise DataError(f"{path}: timestamps has shape {array.shape} of {array.dtype}, expected ({rows},) numbers.")
    times = array.astype(np.float64)
    if not np.isfinite(times).all():
        row = int((~np.isfinite(times)).argmax())
        raise DataError(f"{path}: timestamps row {row} is {times[row]}, expected finite seconds.")
    return times


def _scalar(path: Path, content: Mapping[str, NDArray[np.generic]], key: str, default: float) -> float:
    if key not in content:
        return default
    array = content[key]
    if array.size != 1 or array.dtype.kind not in "fiub":
        raise DataError(f"{path}: {key} has shape {array.shape} of {array.dtype}, expected one number.")
    return float(array.astype(np.float64).reshape(()))


def _text(path: Path, content: Mapping[str, NDArray[np.generic]], key: str, default: str) -> str:
    if key not in content:
        return default
    array = content[key]
    if array.size != 1 or array.dtype.kind not in "US":
        raise DataError(f"{path}: {key} has shape {array.shape} of {array.dtype}, expected one short text.")
    value = array.reshape(()).item()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
