"""Random sessions for the tests: every head has support, nothing is learnable."""

from __future__ import annotations

import numpy as np

from projects.controls.layout import (
    ACTION,
    CONTROL_SIZE,
    CURSOR,
    DEFAULT_STATE,
    FRAME_SIZE,
    HOTBAR,
    INV,
    LOOK,
    SCREEN_OPEN,
)
from projects.controls.recordings import Recording


def random_session(name: str, frames: int, seed: int, session_type: str = "walk") -> Recording:
    rng = np.random.default_rng(seed)
    controls = np.zeros((frames, CONTROL_SIZE), np.float32)
    controls[:, ACTION] = rng.random((frames, len(ACTION))) < 0.1
    controls[:, LOOK] = rng.uniform(-1, 1, (frames, 2)) * (rng.random((frames, 1)) < 0.5)
    controls[:, CURSOR] = rng.random((frames, 2))
    controls[:, INV] = rng.random((frames, len(INV))) < 0.2
    changed = np.flatnonzero(rng.random(frames) < 0.2)
    controls[changed, rng.choice(HOTBAR, len(changed))] = 1
    state = np.tile(DEFAULT_STATE, (frames, 1)) + rng.normal(size=(frames, len(DEFAULT_STATE))).astype(np.float32)
    state[:, SCREEN_OPEN] = rng.choice([0, 0, 0.33, 1], frames)
    return Recording(
        name=name,
        frames=rng.normal(size=(frames, FRAME_SIZE)).astype(np.float32),
        controls=controls,
        state=state.astype(np.float32),
        timestamps=np.arange(frames) / 20,
        fps=20.0,
        session_type=session_type,
    )
