"""Learning rate as a pure function of the position in the run: linear warm-up, then cosine to the least rate."""

from __future__ import annotations

import math


def learning_rate(
    position: float, *, step_size: float, total: float, warmup: float, peak: float, least: float
) -> float:
    """Rate of the step that starts at `position`. Positions and lengths are in epochs; a step is `step_size` of one.

    The first step's rate is above zero, the last warm-up step's is `peak`; past `total` the rate stays `least`.
    """
    reached = position + step_size
    if reached < warmup:
        return peak * reached / warmup
    done = min(1.0, max(0.0, position - warmup) / max(total - warmup, step_size))
    return least + (peak - least) * 0.5 * (1.0 + math.cos(math.pi * done))
