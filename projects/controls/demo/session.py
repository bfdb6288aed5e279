"""One demo session from a seed and its number: recording and ceiling."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from projects.controls.demo.body import pose
from projects.controls.demo.game import equip, implied_state, surround
from projects.controls.demo.moods import SESSIONS, play
from projects.controls.demo.perform import perform
from projects.controls.demo.player import FPS, Player
from projects.controls.demo.script import Script, gestures
from projects.controls.recordings import Recording


class DemoSession(NamedTuple):
    """recording: what a recorder would have written. ceiling: (N, 28) float32, the best prediction of its controls."""

    recording: Recording
    ceiling: NDArray[np.float32]


def session_type(number: int) -> str:
    """Types take turns, so that each has its share whatever the number of sessions."""
    return list(SESSIONS)[number % len(SESSIONS)]


def session_name(number: int) -> str:
    return f"demo_{number:03d}_{session_type(number)}"


def make_session(seed: int, number: int, minutes: float) -> DemoSession:
    """Session `number` (0, 1, …) of the demo data of `seed`: the same whatever other sessions are made."""
    rng = np.random.default_rng([seed, number])
    script = Script(round(minutes * 60 * FPS))
    moods = list(play(Player(script, rng), session_type(number)))
    shown = gestures(script, rng)
    controls, expected, screen_open = perform(script, rng)
    state = implied_state(controls, screen_open, FPS)
    equip(state, controls)
    surround(state, moods, FPS, rng)
    recording = Recording(
        name=session_name(number),
        frames=pose(shown, FPS, rng),
        controls=controls.astype(np.float32),
        state=state.astype(np.float32),
        timestamps=np.arange(script.frames) / FPS,
        fps=float(FPS),
        session_type=session_type(number),
    )
    return DemoSession(recording, expected.astype(np.float32))
