"""Self-fed history: the model run on its own past outputs, as in the game, instead of the player's recorded ones.

A model that has learned to repeat the last controls looks good while the recording keeps telling it what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from projects.controls.features import SOURCES, lagged_state, target_frames, velocity
from projects.controls.layout import (
    ACTION,
    CONTROL_SIZE,
    CURSOR,
    CURSOR_AT_REST,
    HEADS,
    HISTORY,
    HISTORY_FEATURES,
    HOTBAR,
    HOTBAR_SLOT,
    INV,
    LOOK,
    OPEN_INVENTORY,
    SCREEN_OPEN,
    WINDOW,
)
from projects.controls.masks import Bools, Floats
from projects.controls.metrics import Prediction, Thresholds
from projects.controls.predictions import probabilities
from projects.controls.recordings import Recording

CPU = torch.device("cpu")
MOST_FRAMES = 1200
"""Frames a session that are predicted one after another: a minute at 20 a second."""
MOST_SESSIONS = 16
"""Sessions that run beside each other; with the frames it bounds time and memory, whatever the data."""


def first_windows(sessions: NDArray[np.int64]) -> Bools:
    """Which windows `self_fed` predicts, of windows from `sessions: (windows,)` numbered in order: (windows,)."""
    starts = np.searchsorted(sessions, sessions)
    return (np.arange(len(sessions)) - starts < MOST_FRAMES) & (sessions < MOST_SESSIONS)


Answer = Callable[[Tensor, Tensor], Prediction]
"""Of windows, features (n, 30, 671) and mask (n, 30), what their newest rows are predicted to be."""


def answers(model: nn.Module) -> Answer:
    """Those of a model in eval mode."""

    def answer(features: Tensor, mask: Tensor) -> Prediction:
        outputs = probabilities(model(features, mask))
        return Prediction(*(outputs[head].cpu().numpy() for head in HEADS))

    return answer


@torch.inference_mode()
def self_fed(
    answer: Answer, recordings: Sequence[Recording], thresholds: Thresholds, device: torch.device = CPU
) -> Prediction:
    """Predictions for the `first_windows` of `recordings`, whose history is made of the predictions before.

    What lies before a session's first window is as recorded; pose and game state are as recorded throughout. All
    sessions step as one batch on `device`. A prediction becomes history as `as_recorded` puts it.
    """
    recordings = recordings[:MOST_SESSIONS]
    counts = [min(MOST_FRAMES, len(target_frames(len(recording)))) for recording in recordings]
    tape = _Tape(recordings, max(counts), device)
    said = []
    for step in range(max(counts)):
        said.append(answer(*tape.window(step)))
        tape.write(step, said[-1], thresholds)
    whole = [np.stack([getattr(one, head) for one in said], axis=1) for head in HEADS]
    return Prediction(*(np.concatenate([rows[s, :n] for s, n in enumerate(counts)]) for rows in whole))


class _Tape:
    """The sessions beside each other, with the controls that the model has chosen so far.

    Row r of a session is its frame r, after what a short one lacks to a window. Past controls have five rows more in
    front, so that the history of row r is in their rows r to r + 4.
    """

    def __init__(self, recordings: Sequence[Recording], steps: int, device: torch.device) -> None:
        rows = steps + WINDOW - 1
        inputs = np.zeros((len(recordings), rows, HISTORY_FEATURES.start), np.float32)
        past = np.zeros((len(recordings), HISTORY + rows, CONTROL_SIZE), np.float32)
        real = np.ones((len(recordings), rows), np.bool_)
        self._screen = np.zeros((len(recordings), rows), np.bool_)
        self._slot = np.zeros(len(recordings), np.int64)
        for s, recording in enumerate(recordings):
            lead = max(0, WINDOW - len(recording))
            kept = min(len(recording), rows - lead)
            known = WINDOW - 1 - lead  # frames before the first that is predicted
            parts = (recording.frames, velocity(recording.frames), lagged_state(recording.state))
            inputs[s, lead : lead + kept] = np.concatenate(parts, axis=1)[:kept]
            past[s, HISTORY + lead : HISTORY + lead + known] = recording.controls[:known]
            real[s, :lead] = False
            self._screen[s, lead : lead + kept] = recording.state[:kept, SCREEN_OPEN] > 0
            self._slot[s] = np.rint(recording.state[max(known - 1, 0), HOTBAR_SLOT] * (len(HOTBAR) - 1))
        self._inputs, self._past, self._real = (torch.from_numpy(array).to(device) for array in (inputs, past, real))

    def window(self, step: int) -> tuple[Tensor, Tensor]:
        """features (sessions, 30, 671) and mask (sessions, 30) of the windows that predict row `step` + 29."""
        past = self._past[:, step:]  # 34 rows from here on, seen as 30 rows of five
        shape, strides = (len(past), WINDOW, HISTORY * CONTROL_SIZE), (past.stride(0), CONTROL_SIZE, 1)
        rows = slice(step, step + WINDOW)
        return torch.cat([self._inputs[:, rows], past.as_strided(shape, strides)], dim=2), self._real[:, rows]

    def write(self, step: int, said: Prediction, thresholds: Thresholds) -> None:
        """Make what was predicted for row `step` + 29 the history of the rows after it."""
        controls, self._slot = as_recorded(said, thresholds, self._screen[:, step + WINDOW - 1], self._slot)
        self._past[:, step + SOURCES] = torch.from_numpy(controls).to(self._past.device)


def as_recorded(
    said: Prediction, thresholds: Thresholds, screen: Bools, slot: NDArray[np.int64]
) -> tuple[Floats, NDArray[np.int64]]:
    """Predictions in the form of recorded controls (n, 28), and the slots (n,) in the hand after them.

    Buttons are on or off by their threshold. What the open or closed screen (`screen: (n,)`) does not allow is at rest.
    A slot is chosen where the confidence suffices and another one (`slot: (n,)`) is in the hand.
    """
    game = ~screen[:, None]
    rows = np.zeros((len(screen), CONTROL_SIZE), np.float32)
    allowed = np.repeat(game, len(ACTION), axis=1)
    allowed[:, OPEN_INVENTORY] = True  # it also closes the screen
    rows[:, ACTION] = (said.action >= thresholds.action) & allowed
    rows[:, INV] = (said.inv >= thresholds.inv) & ~game
    rows[:, LOOK] = said.look * game
    rows[:, CURSOR] = np.where(game, CURSOR_AT_REST, said.cursor)
    best = said.hotbar.argmax(1)
    chosen = game[:, 0] & (said.hotbar.max(1) >= thresholds.hotbar) & (best != slot)
    rows[chosen, HOTBAR[0] + best[chosen]] = 1
    return rows, np.where(chosen, best, slot)
