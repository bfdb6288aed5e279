"""What is wrong with the newest steps of a training: a gradient that explodes, a device that waits for data."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engines.contract.alerts import DATA_WAIT, GRADIENT, Finding

Floats = npt.NDArray[np.float64]

RECENT_STEPS, USUAL_STEPS, LEAST_USUAL = 20, 1000, 200
EXPLODED, CALMED = 10.0, 3.0
"""Times the usual norm: at or above the first it alerts, below the second it is over."""
WAIT_SECONDS, WAIT_STEPS = 60.0, 20
STARVED, FED = 0.5, 0.4
PAUSE = 10.0
"""A step that took so many times the usual was none: an evaluation, a save or a pause lay between."""


def usual_norm(norms: Floats) -> float | None:
    """Median of up to a thousand norms `(n,)` before the newest twenty; None while there are fewer than two hundred."""
    before = norms[:-RECENT_STEPS][-USUAL_STEPS:]
    before = before[np.isfinite(before)]
    return float(np.median(before)) if len(before) >= LEAST_USUAL else None


def exploding(norms: Floats, usual: float | None, *, told: bool = False) -> Finding | None:
    """The median norm of the newest twenty steps, of `norms: (n,)`, is ten times `usual`; once `told`, until three.

    A median, since single spikes are what clipping is for. Norms that are not finite are reported by the loop.
    """
    recent = norms[-RECENT_STEPS:]
    recent = recent[np.isfinite(recent)]
    if usual is None or usual <= 0 or len(recent) < RECENT_STEPS // 2:
        return None
    now = float(np.median(recent))
    if now < usual * (CALMED if told else EXPLODED):
        return None
    times = f"{now / usual:,.0f} times the usual {usual:.3g}"
    return Finding(GRADIENT, f"the gradient norm is {now:.3g}, {times}", "error")


def starving(times: Floats, waits: Floats, *, told: bool = False) -> Finding | None:
    """Half of the time of the steps goes into waiting for their batches; once `told`, until two fifths.

    `times` are Unix seconds at the steps' ends and `waits` seconds, both `(n,)`, of the last minutes. A step lasts
    from the end of the one before; nothing is said of less than a minute of steps.
    """
    lasted, waited = np.diff(times), waits[1:]
    sound = np.isfinite(lasted) & np.isfinite(waited)
    lasted, waited = lasted[sound], waited[sound]
    if len(lasted) < WAIT_STEPS:
        return None
    steps = lasted <= PAUSE * np.median(lasted)
    total = float(lasted[steps].sum())
    share = float(waited[steps].sum()) / total if total else 0.0
    if total < WAIT_SECONDS or share < (FED if told else STARVED):
        return None
    return Finding(
        DATA_WAIT, f"{min(share, 1):.0%} of the time of the last {len(lasted):,} steps was spent waiting for data"
    )
