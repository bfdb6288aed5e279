"""Frames as files or bytes of image formats."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from engines.basics.errors import DataError
from projects.sim.drives import Bytes

MOST_BYTES = 4 << 30
"""Of the frames of one drive, which is held in memory."""


def picture(content: bytes, where: str) -> Bytes:
    """The image in `content`: (height, width, 3). Raises `DataError`."""
    from PIL import Image  # of an extra

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            return np.asarray(Image.open(io.BytesIO(content), formats=("JPEG", "PNG")).convert("RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise DataError(f"{where}: cannot be read as a JPEG or PNG ({error}); remove its row from the log.") from None


def pictures(names: Sequence[str], read: Callable[[str], bytes], where: Path, tick: Callable[[], None]) -> Bytes:
    """All frames of a drive: (N, H, W, 3). Raises `DataError` where one is missing, broken or of another size."""
    frames: Bytes | None = None
    for place, name in enumerate(names):
        try:
            frame = picture(read(name), f"{where}: {name}")
        except (OSError, KeyError) as error:
            said = getattr(error, "strerror", None) or "it is not there"
            raise DataError(f"{where}: frame {name} cannot be read ({said}); copy the log with its images.") from None
        if frames is None:
            if (size := frame.nbytes * len(names)) > MOST_BYTES:
                raise DataError(f"{where}: {len(names)} frames take {size >> 20:,} MiB; cut the log into shorter ones.")
            frames = np.empty((len(names), *frame.shape), np.uint8)
        if frame.shape != frames.shape[1:]:
            raise DataError(
                f"{where}: frame {name} is {frame.shape[1]} × {frame.shape[0]}, the first {frames.shape[2]} × "
                f"{frames.shape[1]}; expected one size."
            )
        frames[place] = frame
        tick()
    if frames is None:
        raise DataError(f"{where}: names no frame, expected at least two.")
    return frames
