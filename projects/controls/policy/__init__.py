"""The trained policy in a game: the exported files alone turn frames into commands, without any training code."""

from projects.controls.policy.network import Outputs
from projects.controls.policy.policy import ControlPolicy, Decision

__all__ = ["ControlPolicy", "Decision", "Outputs"]
