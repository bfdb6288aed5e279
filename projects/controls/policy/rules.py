"""From probabilities to what a game is sent: small pieces, each with the little state that it needs.

Every piece is fed once a frame and can forget everything. Times are in seconds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from projects.controls.layout import ACTION, INV, OPEN_INVENTORY
from projects.controls.masks import Bools, Floats
from projects.controls.sending import LONGEST_HOLD, PULSE_COOLDOWN, ROUNDING, levels

FULL_SCALE_DEGREES = np.array([5.0, 3.0], np.float32)
"""Yaw and pitch of a frame at look 1."""


def allowed(screen_open: bool) -> Bools:
    """(15,): the on-off controls that mean something now; open_inventory always does, since it also closes a screen."""
    mask = np.repeat([not screen_open, screen_open], [len(ACTION), len(INV)])
    mask[OPEN_INVENTORY] = True
    return mask


class Hysteresis:
    """On at or above threshold + margin, off below threshold - margin, else as it was.

    A margin of 0 gives `probability >= threshold`, as everywhere else.

    Args:
        thresholds, margins: (n,), as `levels` takes them.
    """

    def __init__(self, thresholds: NDArray[np.float64], margins: NDArray[np.float64]) -> None:
        self._rise, self._fall = levels(thresholds, margins)
        self._on = np.zeros(len(thresholds), np.bool_)

    def reset(self) -> None:
        self._on[:] = False

    def step(self, probabilities: Floats, mask: Bools) -> Bools:
        """What is on, (n,); what the mask excludes is off and starts from off."""
        self._on = ((probabilities >= self._rise) | (self._on & (probabilities >= self._fall))) & mask
        return self._on.copy()


class Keys:
    """What is sent of the on-off controls: pulses on their rising edge, held keys while they are on.

    A pulse within the cooldown of the last one is dropped, not put off: by then the moment is over. A key that was on
    for 10 s is let go of, in case the model is stuck; only when the model lets go of it itself can it be pressed again.
    """

    def __init__(self, holds: Bools) -> None:
        """`holds: (15,)`: the keys that are held; the others are pulses."""
        self._holds = holds
        self.reset()

    def reset(self) -> None:
        self._on = np.zeros(len(self._holds), np.bool_)
        self._fired = np.full(len(self._holds), -np.inf)
        self._since = np.zeros(len(self._holds))

    def step(self, on: Bools, time: float) -> Bools:
        """`on: (15,)` decisions to what is sent, (15,)."""
        edge = on & ~self._on
        self._on = on
        self._since[edge] = time
        fires = edge & ~self._holds & (time - self._fired >= PULSE_COOLDOWN - ROUNDING)
        self._fired[fires] = time
        return np.where(self._holds, on & (time - self._since < LONGEST_HOLD - ROUNDING), fires)


class Look:
    """Dead zone on the magnitude, moving average, and a limit on the change of a frame."""

    def __init__(self, deadzone: float, alpha: float, rate_limit: float) -> None:
        self._deadzone, self._alpha, self._limit = deadzone, alpha, rate_limit
        self.reset()

    def reset(self) -> None:
        self._average = np.zeros(2, np.float32)
        self._sent = np.zeros(2, np.float32)

    def step(self, look: Floats) -> Floats:
        """`look: (2,)` in [-1, 1] to the smoothed one."""
        wanted = look if np.hypot(*look) > self._deadzone else np.zeros_like(look)
        self._average = self._average + np.float32(self._alpha) * (wanted - self._average)
        change = np.clip(self._average - self._sent, -self._limit, self._limit)
        self._sent = self._sent + change.astype(np.float32)
        return self._sent.copy()


class Cursor:
    """Moving average of the cursor while a screen is open, begun at the first position."""

    def __init__(self, alpha: float) -> None:
        self._alpha = alpha
        self.reset()

    def reset(self) -> None:
        self._average: Floats | None = None

    def step(self, cursor: Floats) -> Floats:
        """`cursor: (2,)` in [0, 1] to the smoothed one."""
        before = cursor if self._average is None else self._average
        self._average = before + np.float32(self._alpha) * (cursor - before)
        return self._average.copy()


class Hotbar:
    """Chooses a slot where the model is sure enough and another one is in the hand."""

    def __init__(self, confidence: float) -> None:
        self._confidence = confidence
        self.reset()

    def reset(self) -> None:
        self._chosen: int | None = None
        self._chosen_at = -np.inf

    def step(self, probabilities: Floats, slot: int | None, time: float) -> int | None:
        """The slot to change to, 0 to 8, or None. `slot` is the one in the hand as the game says, None where unknown.

        For a moment after a choice the game may still report the old slot; the choice counts as made then, as it does
        where the game says nothing.
        """
        pending = slot is None or time - self._chosen_at < PULSE_COOLDOWN
        current = self._chosen if pending and self._chosen is not None else slot
        best = int(probabilities.argmax())
        if probabilities[best] < self._confidence or best == current:
            return None
        self._chosen, self._chosen_at = best, time
        return best
