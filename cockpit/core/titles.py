"""What the title of a terminal's window or tab says, for a glance from elsewhere; it must not change often."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cockpit.core.runs.summary import RunSummary
from cockpit.core.text import run_word

if TYPE_CHECKING:  # it brings numpy, for which the first screen need not wait
    from cockpit.core.run.model import RunModel


def of_runs(rows: Iterable[RunSummary]) -> str:
    """`cockpit · 2 running`."""
    running = sum(row.state == "running" for row in rows)
    return f"cockpit · {running} running" if running else "cockpit"


def of_run(model: RunModel) -> str:
    """`amber 41/150 · cockpit` while it runs, else its state in place of the epochs."""
    if model.info is None or model.reading:
        return "cockpit"
    history, progress = model.history, model.history.progress
    done, total = history.done, history.planned
    if model.is_task and progress is not None:
        done, total = int(progress.done), int(progress.total)
    told = f"{done}/{total}" if model.status.state == "running" and total else model.status.state
    return f"{run_word(model.info.id)} {told} · cockpit"
