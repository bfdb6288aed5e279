"""What fits in one line: the live runs and how many failed lately, without reading the runs that ended long ago."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len

from cockpit.core.format import number
from cockpit.core.runs.summary import RunSummary, look
from cockpit.core.states import GLYPHS, is_live
from cockpit.core.text import fit_left, run_word
from engines.basics.errors import UserError
from engines.basics.lock import lock_holder
from engines.contract.rundir import RunDirectory

RECENT_SECONDS = 24 * 3600.0
"""How long a failed run is news."""
SEPARATOR = " · "


@dataclass(frozen=True)
class Glance:
    """Live runs, the newest first, and the number of runs that failed or were lost within the last day."""

    live: tuple[RunSummary, ...]
    failed: int


def glance(folder: Path, now: float) -> Glance:
    """Look at every run in `folder`: at its lock, and further only where it is live or ended within the last day."""
    live, failed = [], 0
    for run in _runs(folder):
        try:
            if lock_holder(run.lock) is not None:
                summary = look(run.path)
                live += [summary] if is_live(summary.state) else []
            elif _changed(run.attempts) > now - RECENT_SECONDS:
                failed += _failed(run)
        except OSError:
            continue  # a file, or a folder that may not be entered: it says nothing, and hides no other
    return Glance(tuple(sorted(live, key=lambda row: -row.created)), failed)


def _runs(folder: Path) -> Iterator[RunDirectory]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        if not name.startswith("."):
            yield RunDirectory(folder / name)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _failed(run: RunDirectory) -> bool:
    """Whether its newest attempt, which nothing holds any more, failed or has no end."""
    try:
        attempt = run.newest_attempt()
    except UserError:
        return False  # a broken record tells nothing about a training
    return attempt is not None and (attempt.ended is None or attempt.ended.reason == "failed")


def line(seen: Glance, width: int) -> str:
    """`● amber 41/150 0.736 ! · ‖ copper 6/10 · ✖1` in at most `width` cells; runs without room are counted."""
    tail = [f"{GLYPHS['failed']}{seen.failed}"] if seen.failed else []
    parts = [_told(row) for row in seen.live]
    for shown in range(len(parts), -1, -1):
        more = [f"+{len(parts) - shown}"] if shown < len(parts) else []
        text = SEPARATOR.join([*parts[:shown], *more, *tail])
        if cell_len(text) <= width:
            return text
    return fit_left(SEPARATOR.join([f"+{len(parts)}", *tail]), width)


def _told(row: RunSummary) -> str:
    words = [GLYPHS[row.state], run_word(row.id)]
    words += [f"{row.done:,.0f}/{row.total:,.0f}"] if row.total else []
    words += [number(row.score)] if row.score is not None else []
    words += ["!"] if row.alert is not None else []
    return " ".join(words)
