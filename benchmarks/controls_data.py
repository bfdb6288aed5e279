"""Random recordings for benchmarks: the right shapes and modes, no meaning."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from projects.controls.layout import CONTROL_SIZE, DEFAULT_STATE, FRAME_SIZE, SCREEN_OPEN
from projects.controls.recordings import Recording

HISTORY_DROPOUT = 0.3


def random_recordings(sessions: int, frames: int, seed: int) -> list[Recording]:
    """`sessions` recordings of `frames` frames each; a tenth of the frames has a screen open."""
    random = np.random.default_rng(seed)
    recordings = []
    for number in range(sessions):
        state = np.tile(DEFAULT_STATE, (frames, 1)).astype(np.float32)
        state[random.random(frames) < 0.1, SCREEN_OPEN] = 0.33
        recordings.append(
            Recording(
                name=f"random_{number}",
                frames=random.standard_normal((frames, FRAME_SIZE), np.float32),
                controls=(random.random((frames, CONTROL_SIZE)) < 0.1).astype(np.float32),
                state=state,
                timestamps=np.arange(frames) / 20,
                fps=20.0,
                session_type="random",
            )
        )
    return recordings


def raw_bytes(recordings: Iterable[Recording]) -> int:
    """Of the recordings' own arrays."""
    return sum(r.frames.nbytes + r.controls.nbytes + r.state.nbytes + r.timestamps.nbytes for r in recordings)
