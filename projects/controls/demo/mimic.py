"""Gestures that would have announced the controls of a real person of whom no pose was recorded."""

from __future__ import annotations

import numpy as np

from projects.controls.demo.leads import HOLD, PULSES, STEER
from projects.controls.demo.names import ATTACK, JUMP
from projects.controls.demo.script import Floats, Hold, Pulse, Script
from projects.controls.layout import ACTION, CONTROL_NAMES, CURSOR, INV, LOOK

_TAPPED = [control for control in PULSES if control not in (JUMP, ATTACK)]
_HELD = [control for control in (*ACTION, *INV) if control not in _TAPPED]
"""What a person keeps pressed, jump and attack included, is shown by a posture for as long."""


def mimic(controls: Floats, rng: np.random.Generator) -> Script:
    """The gestures before `controls: (frames, 28)`, with the leads of the demo player.

    What comes too early to be announced is shown from the first frame on.
    """
    script = Script(len(controls))
    for control in _HELD:
        on = np.concatenate([[False], controls[:, control] > 0.5])
        begun = 0
        for frame in np.flatnonzero(on[1:] != on[:-1]).tolist():
            begun = max(begun, frame - HOLD.lag(rng))
            script.holds[CONTROL_NAMES[control]].append(Hold(begun, (control,) if on[frame + 1] else ()))
    for control in _TAPPED:
        lead = PULSES[control]
        for frame in np.flatnonzero(controls[:, control] > 0.5).tolist():
            script.pulses.append(Pulse(max(0, frame - lead.lag(rng)), control))
    usual = STEER.first + int(np.argmax(STEER.chances))
    ahead = np.minimum(np.arange(script.frames) + usual, script.frames - 1)
    script.turn[:], script.point[:] = controls[ahead][:, LOOK], controls[ahead][:, CURSOR]
    return script
