"""The definitions that a run keeps from when it began, so that resumes and replays of older runs find the same numbers.

1: a control counts in the means over controls from one positive on; pieces of one sitting train up to their ends.
2: it counts from `LEAST_SUPPORT` positives on; a gap is left beside pieces that are held out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from projects.controls.layout import WINDOW
from projects.controls.metrics import LEAST_SUPPORT, Scoring

if TYPE_CHECKING:
    from projects.controls.config import ControlsConfig

NEWEST = 2


def scoring(cfg: ControlsConfig, edition: int) -> Scoring:
    """How the values of a run become its score."""
    return Scoring(1 if edition < 2 else LEAST_SUPPORT, cfg.score_weights.model_dump())


def gap(edition: int) -> int:
    """Frames that are left out between a piece of a sitting that trains and the next one where that is held out."""
    return 0 if edition < 2 else WINDOW
