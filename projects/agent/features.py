"""features.json: what happened in each frame of a video, as the extractor writes it; read with every value checked.

Its quirks: no movement is slice 0 with a zero step, and an absent health bar is null or (0, 0). A `movement_slice` of
null says that the movement is not known; frames may be missing between others, never out of order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from engines.basics.errors import DataError
from engines.basics.files import replace_bytes
from projects.agent.layout import ABILITIES, MOST_FRAMES, MOST_GOLD, NONE, SLICES, UNKNOWN

Floats = NDArray[np.float64]
KEYS = ("ability_q", "ability_w", "ability_e", "ability_r", "summoner_d", "summoner_f", "item_used", "recall_b")
"""The keys of `ABILITIES`, in their order."""
FPS = 20


_Whole = Annotated[int, Meta(ge=-(2**62), le=2**62)]


class _Frame(msgspec.Struct):
    frame_idx: _Whole
    movement_dx: float | None
    movement_dy: float | None
    movement_slice: _Whole | None
    ability_q: bool
    ability_w: bool
    ability_e: bool
    ability_r: bool
    summoner_d: bool
    summoner_f: bool
    item_used: bool
    recall_b: bool
    gold_gained: Annotated[float, Meta(ge=-MOST_GOLD, le=MOST_GOLD)]
    health_bar_x: float | None
    health_bar_y: float | None
    timestamp_ms: float | None = None
    movement_confidence: float | None = None


class _Video(msgspec.Struct):
    video_id: str
    num_frames: int
    frames: list[_Frame]
    source_resolution: str = ""
    source_fps: float = FPS
    output_fps: float = FPS
    output_resolution: str = ""
    team_side: str = ""


@dataclass(frozen=True)
class Features:
    """What happened in n frames.

    number: (n,) int64, rising. movement: (n,) int8, `UNKNOWN` where it is not known. abilities: (n, 8) bool. gold: (n,)
    gained in the frame. bar: (n, 2) the health bar in pixels, NaN where there is none.
    """

    name: str
    number: NDArray[np.int64]
    movement: NDArray[np.int8]
    abilities: NDArray[np.bool_]
    gold: Floats
    bar: Floats


def read_features(path: Path) -> Features:
    """Raises `DataError` with one sentence for anything that is not as described."""
    video = _decoded(path)
    frames = video.frames
    if video.num_frames != len(frames):
        raise DataError(
            f"{path}: num_frames is {video.num_frames} but frames has {len(frames)}; the file was cut or edited, "
            "extract it again."
        )
    if not frames:
        raise DataError(f"{path}: frames is empty, expected at least one.")
    number = np.array([frame.frame_idx for frame in frames], np.int64)
    _check_numbers(path, number)
    bar = np.array([(frame.health_bar_x, frame.health_bar_y) for frame in frames], np.float64)  # None becomes NaN
    bar[np.isnan(bar).any(axis=1) | (bar == 0).all(axis=1)] = np.nan
    return Features(
        name=video.video_id,
        number=number,
        movement=_movements(path, frames),
        abilities=np.array([[getattr(frame, key) for key in KEYS] for frame in frames], bool),
        gold=np.array([frame.gold_gained for frame in frames], np.float64),
        bar=bar,
    )


def write_features(path: Path, features: Features, step: Floats, *, side: str) -> None:
    """Write features.json, the same bytes for the same values. Raises OSError.

    step: (n, 2) what each movement was found from, in pixels or units: zero where it is none, and nowhere else.
    """
    still = features.movement == NONE
    slices = np.where(still, 0, features.movement)
    step = np.where(still[:, None], 0.0, step)
    assert not ((slices == 0) & ~still & (step == 0).all(axis=1)).any(), "slice 0 without a step reads as no movement"
    frames = [
        _Frame(
            frame_idx=number, movement_dx=dx, movement_dy=dy, movement_slice=None if movement == UNKNOWN else movement,
            gold_gained=gold, health_bar_x=_or_none(x), health_bar_y=_or_none(y), timestamp_ms=number * 1000 / FPS,
            movement_confidence=float(movement != UNKNOWN), **dict(zip(KEYS, pressed, strict=True)),
        )
        for number, (dx, dy), movement, pressed, gold, (x, y) in zip(
            features.number.tolist(), step.round(4).tolist(), slices.tolist(), features.abilities.tolist(),
            features.gold.tolist(), features.bar.round(2).tolist(), strict=True,
        )
    ]  # fmt: skip
    video = _Video(features.name, len(frames), frames, output_resolution="256x256", team_side=side)
    replace_bytes(path, msgspec.json.encode(video) + b"\n")


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


def _decoded(path: Path) -> _Video:
    try:
        content = path.read_bytes()
        return msgspec.json.decode(content, type=_Video)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; expected the features of a video.") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); expected features.json.") from None
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: {_said(str(error))}; expected features as the extractor writes them.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if bad := re.search(rb'"(\w+)"\s*:\s*(-?(?:NaN|Infinity))\b', content):
            frame = len(re.findall(rb'"frame_idx"', content[: bad.start()]))
            where = f"frame {frame} of frames" if frame else "the header"
            raise DataError(
                f"{path}: {bad[1].decode()} is {bad[2].decode()} in {where}; expected a number, or null where a bar "
                "or a movement is not known."
            ) from None
        raise DataError(f"{path}: is no JSON ({error}); the file was cut or damaged, extract it again.") from None


def _said(error: str) -> str:
    """msgspec's sentence with the place first: `frames[3]: Object missing required field `gold_gained``."""
    what, _, where = error.partition(" - at `$")
    return f"{where.strip('.`')}: {what}" if where.strip(".`") else what


def _check_numbers(path: Path, number: NDArray[np.int64]) -> None:
    if number[0] < 0:
        raise DataError(f"{path}: frame_idx is {number[0]}, expected 0 or more.")
    back = np.flatnonzero(np.diff(number) <= 0)
    if len(back):
        place = int(back[0])
        raise DataError(
            f"{path}: frame_idx is {number[place + 1]} after {number[place]} (frames[{place + 1}]); expected rising "
            "numbers, each once."
        )
    if number[-1] - number[0] >= MOST_FRAMES:
        raise DataError(
            f"{path}: frame_idx goes from {number[0]} to {number[-1]}, expected at most {MOST_FRAMES:,} frames a video."
        )


def _movements(path: Path, frames: list[_Frame]) -> NDArray[np.int8]:
    """The movement of each frame: (n,)."""
    slices = np.array([UNKNOWN if one.movement_slice is None else one.movement_slice for one in frames], np.int64)
    known = np.array([one.movement_slice is not None for one in frames])
    wrong = known & ((slices < 0) | (slices >= SLICES))
    if wrong.any():
        place = int(wrong.argmax())
        raise DataError(
            f"{path}: movement_slice is {slices[place]} in frame {frames[place].frame_idx}, expected 0 to "
            f"{SLICES - 1}, or null where it is not known."
        )
    still = np.array([not one.movement_dx and not one.movement_dy for one in frames])
    return np.where(known & (slices == 0) & still, NONE, slices).astype(np.int8)


assert len(KEYS) == len(ABILITIES)
