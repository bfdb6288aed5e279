"""Names of labels and telemetry, and what is said of a model that cannot be opened. Part of the exported script."""

from __future__ import annotations

from pathlib import Path

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


def why(name: str, error: Exception) -> str:
    """Why transformers could not open `name`, in a few words: it takes a folder that is not there for a wrong id."""
    if name.startswith(("/", "~", ".")) and not Path(name).expanduser().exists():
        return "there is no such file or folder"
    return " ".join(f"{type(error).__name__}: {error}".split())[:160]
