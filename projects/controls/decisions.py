"""What an exported policy decides on every frame of a recording, and where that is not what the player did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projects.controls.layout import BINARY, CONTROL_SIZE, CURSOR, HOTBAR, LOOK
from projects.controls.masks import Bools, Floats, frame_masks
from projects.controls.policy import ControlPolicy
from projects.controls.recordings import Recording


@dataclass(frozen=True)
class Decisions:
    """One row a frame, n frames.

    ready: (n,) whether the policy was asked. binary: (n, 15) probabilities of the on-off controls. look, cursor:
    (n, 2) and hotbar: (n, 9) as the model gave them. sent: (n, 28) what the game would have been sent.
    """

    ready: Bools
    binary: Floats
    look: Floats
    hotbar: Floats
    cursor: Floats
    sent: Floats


def decide(policy: ControlPolicy, recording: Recording, *, forced: bool, tick: Callable[[], None]) -> Decisions:
    """Run `policy` over a recording; `tick` is called after each frame.

    `forced`: its history is what the player did (as in training), else its own past decisions (as in the game).
    """
    n = len(recording)
    ready = np.zeros(n, np.bool_)
    binary, look, hotbar, cursor, sent = (
        np.zeros((n, size), np.float32) for size in (len(BINARY), len(LOOK), len(HOTBAR), len(CURSOR), CONTROL_SIZE)
    )
    policy.reset()
    for k in range(n):
        decision = policy.step(recording.frames[k], recording.state[k], float(recording.timestamps[k]))
        if forced:
            policy.observe(recording.controls[k])
        ready[k], sent[k] = decision.ready, decision.controls
        binary[k] = np.concatenate([decision.raw.action, decision.raw.inv])
        look[k], hotbar[k], cursor[k] = decision.raw.look, decision.raw.hotbar, decision.raw.cursor
        tick()
    return Decisions(ready, binary, look, hotbar, cursor, sent)


def judged(recording: Recording) -> Bools:
    """(n, 15): where an on-off control means something: actions in the game, clicks while a screen is open."""
    return frame_masks(recording.controls, recording.state).binary


def differences(recording: Recording, decisions: Decisions, thresholds: NDArray[np.float64]) -> Bools:
    """(n, 16): where player and model disagree on the 15 on-off controls and on the slot chosen on a frame.

    An on-off control is judged as in the evaluation, by `probability >= threshold: (15,)`, so what is counted here are
    its misses and false alarms. Frames on which the policy was not asked are not counted.
    """
    pressed = recording.controls[:, BINARY] > 0.5
    binary = (pressed != (decisions.binary >= thresholds)) & judged(recording)
    slot = slots(recording.controls) != slots(decisions.sent)
    return np.concatenate([binary, slot[:, None]], axis=1) & decisions.ready[:, None]


def slots(controls: Floats) -> NDArray[np.int64]:
    """(n,): the hotbar slot chosen on each frame, 1 to 9, 0 where none is."""
    chosen = controls[:, HOTBAR] > 0.5
    return np.where(chosen.any(axis=1), chosen.argmax(axis=1) + 1, 0)
