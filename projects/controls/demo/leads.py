"""How long the body shows a control before it happens, and how likely it happens on each frame after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projects.controls.demo.names import ATTACK, DROP, INVENTORY, JUMP, LEFT_CLICK, RIGHT_CLICK, SWAP
from projects.controls.layout import HOTBAR


@dataclass(frozen=True)
class Lead:
    """A gesture begins, and `first + k` frames later its control fires with probability `commit * chances[k]`."""

    first: int
    chances: tuple[float, ...]
    commit: float = 1.0
    """Share of the gestures that are meant: the others fire nothing."""

    @property
    def last(self) -> int:
        return self.first + len(self.chances) - 1

    def lag(self, rng: np.random.Generator) -> int:
        """Frames from a gesture that is meant to its control."""
        return self.first + int(rng.choice(len(self.chances), p=self.chances))

    def draw(self, rng: np.random.Generator) -> int | None:
        """Frames from a gesture to its control, or None where nothing fires."""
        return self.lag(rng) if rng.random() < self.commit else None

    def hazards(self) -> tuple[tuple[int, float], ...]:
        """(lag, probability of firing at that lag given that it has not fired before), in order."""
        waiting, hazards = 1.0, []
        for k, chance in enumerate(self.chances):
            fires = self.commit * chance
            hazards.append((self.first + k, min(fires / waiting, 1.0)))
            waiting -= fires
        return tuple(hazards)


_JITTER = (0.06, 0.88, 0.06)
HOLD = Lead(3, _JITTER)
"""Postures: held controls follow them by 3 to 5 frames."""
STEER = Lead(2, (0.1, 0.8, 0.1))
"""Head and pointing hand: drawn again on every frame."""
_QUICK, _SLOW = Lead(2, _JITTER, commit=0.97), Lead(3, _JITTER, commit=0.97)
_SURE = Lead(3, _JITTER)
PULSES: dict[int, Lead] = {
    **dict.fromkeys((JUMP, ATTACK, LEFT_CLICK, RIGHT_CLICK), _QUICK),
    **dict.fromkeys((DROP, SWAP), _SLOW),
    **dict.fromkeys((INVENTORY, *HOTBAR), _SURE),  # a screen that was opened must close, and a slot must change
}
"""Gestures that announce a control of a single frame, by control."""
LONGEST = max(lead.last for lead in (HOLD, STEER, *PULSES.values()))
"""No control follows its gesture later than this many frames."""
