"""From gestures to controls, and the best prediction of these controls that anything could make.

Why `expected` is a ceiling: each lead is drawn on its own, from a distribution known here, when its gesture begins.
Whoever knows all gestures up to this frame exactly, all controls up to the last one and these distributions knows
everything about this frame's controls that the past holds: pose, game state (lagged by a frame where it gives the
control away) and control history are all made from those gestures and controls, plus noise that has nothing to do with
the leads. So the conditional expectation computed here is the Bayes prediction given *more* than a model sees: but for
luck on a finite sample, no model has a smaller squared error, and none a better F1 than the best threshold on these
probabilities gives. (A model that is fed this frame's `sprinting`, `sneaking`, `is_using_item` or `hotbar_slot` could.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from projects.controls.demo.leads import HOLD, PULSES, STEER
from projects.controls.demo.names import INVENTORY
from projects.controls.demo.script import MIDDLE, Hold, Script
from projects.controls.layout import CONTROL_SIZE, CURSOR, LOOK

Floats = NDArray[np.float64]


class Performance(NamedTuple):
    """controls: (frames, 28), what happened. expected: (frames, 28), its mean given everything up to that frame.

    screen_open: (frames,) bool, whether the inventory is open when the frame begins.
    """

    controls: Floats
    expected: Floats
    screen_open: NDArray[np.bool_]


def perform(script: Script, rng: np.random.Generator) -> Performance:
    """Draw every lead of `script` and let the controls happen."""
    controls, expected = (np.zeros((script.frames, CONTROL_SIZE)) for _ in range(2))
    for changes in script.holds.values():
        _hold(changes, controls, expected, rng)
    for pulse in script.pulses:
        lead = PULSES[pulse.control]
        fires = lead.draw(rng)
        for lag, hazard in lead.hazards():
            frame = pulse.at + lag
            if frame >= script.frames or (fires is not None and lag > fires):
                break
            controls[frame, pulse.control] += lag == fires
            expected[frame, pulse.control] += hazard
    presses = np.cumsum(controls[:, INVENTORY])
    screen_open = np.concatenate([[0.0], presses[:-1]]) % 2 == 1
    _steer(script, screen_open, controls, expected, rng)
    return Performance(controls, expected, screen_open)


def _hold(changes: list[Hold], controls: Floats, expected: Floats, rng: np.random.Generator) -> None:
    """Let one channel follow its postures: until a posture takes effect, the one before stays in force."""
    before: tuple[int, ...] = ()
    for change in changes:
        lag = HOLD.lag(rng)
        columns = [*{*before, *change.controls}]
        for k, hazard in HOLD.hazards():
            frame = change.at + k
            if k > lag or frame >= len(controls):
                break
            for column in columns:
                was, will = column in before, column in change.controls
                expected[frame, column] = (1 - hazard) * was + hazard * will
        for matrix, start in ((controls, change.at + lag), (expected, change.at + lag + 1)):
            matrix[start:, columns] = 0.0
            matrix[start:, change.controls] = 1.0
        before = change.controls


def _steer(
    script: Script, screen_open: NDArray[np.bool_], controls: Floats, expected: Floats, rng: np.random.Generator
) -> None:
    """Look and cursor follow head and hand with a lag that is drawn again on every frame, and a trembling hand."""
    frames = np.arange(script.frames)
    lags = STEER.first + rng.choice(len(STEER.chances), script.frames, p=STEER.chances)
    seen = np.maximum(frames - lags, 0)
    # the tremble is proportional (a still mouse is exactly still) and bounded (nothing is ever clipped), so that the
    # expectation stays exact
    controls[:, LOOK] = script.turn[seen] * rng.uniform(0.9, 1.1, (script.frames, 2))
    controls[:, CURSOR] = script.point[seen] + rng.uniform(-0.01, 0.01, (script.frames, 2))
    for k, chance in enumerate(STEER.chances):
        seen = np.maximum(frames - STEER.first - k, 0)
        expected[:, LOOK] += chance * script.turn[seen]
        expected[:, CURSOR] += chance * script.point[seen]
    for cursor in (controls, expected):
        cursor[~screen_open, CURSOR[0] : CURSOR[1] + 1] = MIDDLE
