"""Names of the labels and of what telemetry holds. Part of the exported script."""

from __future__ import annotations

RISK = ("none", "low", "med", "high")
REASON = ("human", "obstacle", "tight_space", "unknown")
ACTION = ("continue", "slow", "stop", "reverse", "turn_left", "turn_right")
LABELS: dict[str, tuple[str, ...]] = {"risk": RISK, "reason": REASON, "action": ACTION}
"""Classes by task, the id of each its place."""
HIGH = RISK.index("high")
ABSENT = -1
"""The id of a label that nobody gave: out of sum and count."""
TELEMETRY = ("ax", "ay", "az", "gx", "gy", "gz", "v", "w")
"""Acceleration (m/s²) and turning rate (rad/s) of three axes, speed (m/s), turning rate of the heading (rad/s)."""


class ModelError(ValueError):
    """A model that cannot be made or opened, in one sentence for the user."""
