"""A glyph beside every state's word, so that no state is shown by colour alone."""

from __future__ import annotations

from typing import Literal, get_args

from engines.contract.alerts import STALL
from engines.contract.events import Alert
from engines.runs.state import LIVE, State

Shown = State | Literal["broken", "reading"]
"""What a list of runs shows: a run's state, or that its directory cannot be read, or is still being read."""

GLYPHS: dict[Shown, str] = {
    "queued": "○",
    "starting": "◌",
    "running": "●",
    "paused": "‖",
    "stopping": "◐",
    "finished": "✓",
    "early-stopped": "✓",
    "stopped": "■",
    "out-of-budget": "$",
    "failed": "✖",
    "lost": "?",
    "stale": "~",
    "broken": "!",
    "reading": "…",
}
RESUMABLE: frozenset[Shown] = frozenset({"stopped", "out-of-budget", "failed", "lost", "finished", "early-stopped"})
"""States a training can go on from; the dialog asks more to do for one that has ended by itself."""

WIDTH = max(len(state) for state in get_args(State)) + 2


def label(state: Shown, alert: Alert | None = None) -> str:
    """`● running`; with what is wrong with it `● running !`, and `● stalled !` of one that hangs."""
    if alert is None:
        return f"{GLYPHS[state]} {state}"
    return f"{GLYPHS[state]} {'stalled' if alert.code == STALL else state} !"


def is_live(state: Shown) -> bool:
    return state in LIVE
