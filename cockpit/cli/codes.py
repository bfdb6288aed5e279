"""Exit codes."""

from __future__ import annotations

DONE = 0
FAILED = 1
WRONG_USE = 2
STOPPED = 3
"""The run was stopped on request, or its budget was spent."""
INTERRUPTED = 130

OF_STATE = {"finished": DONE, "early-stopped": DONE, "stopped": STOPPED, "out-of-budget": STOPPED}


def of_state(state: str) -> int:
    """The exit code of a command that followed a run to this end."""
    return OF_STATE.get(state, FAILED)
