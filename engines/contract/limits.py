"""What settings that a person edits may be: the same wherever they come from, a config, a resume or a live order.

Each function gives a sentence's worth of why not, empty where the value can be taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

LARGEST_WEIGHT = 3e38
"""Beyond it a weight is infinite to the step, which computes in float32."""
SMALLEST_SCALE, LARGEST_SCALE = 1e-6, 1e3
"""Of a learning-rate schedule. What lies beyond is a slip of the hand: it stops the training, or ruins it in a step."""
MOST_EPOCHS = 1_000_000_000


def weights_fault(weights: Mapping[str, float]) -> str:
    """Of all the loss weights of a run."""
    for head, weight in weights.items():
        if not 0 <= weight <= LARGEST_WEIGHT:
            return f"the weight of {head} must be a finite number of 0 or more, got {weight}"
    return "" if any(weights.values()) else "with every weight at 0, nothing would be trained"


def scale_fault(scale: float) -> str:
    """Of a factor of the learning-rate schedule."""
    if not math.isfinite(scale) or not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        return f"the scale must be a number from {SMALLEST_SCALE:g} to {LARGEST_SCALE:g}, got {scale:g}"
    return ""


def epochs_fault(epochs: int, *, done: int, inside: bool) -> str:
    """Fault of a number of epochs, for a run with `done` epochs that is `inside` the next one or not."""
    soonest = max(1, done + inside)
    if epochs < soonest:
        return f"the run cannot end before epoch {soonest} is done, got {epochs}"
    return "" if epochs <= MOST_EPOCHS else f"the epochs must be {MOST_EPOCHS:,} or fewer, got {epochs}"


def patience_fault(patience: int) -> str:
    if patience < 1:
        return f"the patience must be 1 or more, got {patience}"
    return "" if patience <= MOST_EPOCHS else f"the patience must be {MOST_EPOCHS:,} or less, got {patience}"
