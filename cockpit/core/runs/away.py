"""What happened while nobody looked: the runs as they were last seen, kept per runs folder, against the runs now."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from cockpit.core.format import count
from cockpit.core.runs.fleet import Fleet
from cockpit.core.runs.summary import RunSummary
from cockpit.core.states import is_live
from cockpit.core.text import plain, run_word
from engines.basics.amounts import money
from engines.basics.files import make_directory, replace_bytes
from engines.basics.reading import read_json
from engines.runs import spending

LEAST_SECONDS = 300.0
"""Shorter absences are not worth a line, unless something went wrong."""
MOST_RUNS = 6
_GRAVE = ("failed", "lost", "broken", "out-of-budget")


class SeenRun(msgspec.Struct, frozen=True, array_like=True):
    """One run as it was last seen."""

    state: str
    attempt: int
    done: float
    score: float | None


class Seen(msgspec.Struct, frozen=True):
    """All runs of a folder as they were at `time`."""

    folder: str
    time: float
    runs: dict[str, SeenRun]


@dataclass(frozen=True)
class Away:
    """How long nobody looked, and what happened: a few words each."""

    seconds: float
    happened: tuple[str, ...]


def seen_path(folder: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Where it is kept for a runs folder: below `$XDG_STATE_HOME/cockpit`, by default `~/.local/state/cockpit`."""
    home = environment.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return Path(home) / "cockpit" / f"seen-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}.json"


def read(path: Path) -> Seen | None:
    """What was last seen; None at a first visit, and where it cannot be read: nothing depends on it."""
    try:
        return read_json(path, Seen)
    except (OSError, msgspec.DecodeError):
        return None


def write(path: Path, folder: Path, rows: Iterable[RunSummary], now: float) -> None:
    """Keep `rows` as seen. Raises OSError where nothing can be written."""
    runs = {row.id: SeenRun(row.state, row.attempt, row.done, row.score) for row in rows}
    make_directory(path.parent)
    replace_bytes(path, msgspec.json.encode(Seen(str(folder), now, runs)))


def while_away(seen: Seen | None, rows: Sequence[RunSummary], now: float) -> Away | None:
    """What happened since: what went wrong first, then what made progress, then the money.

    After a short absence only what went wrong; None when nothing happened.
    """
    if seen is None:
        return None
    short = now - seen.time < LEAST_SECONDS
    told = [(row, words) for row in rows if (words := _happened(row, seen)) and not (short and not _is_bad(row, seen))]
    told.sort(key=lambda one: (one[0].state not in _GRAVE, not is_live(one[0].state), -one[0].created))
    names = Counter(run_word(row.id) for row, _ in told)
    happened = [
        f"{row.on_host(run_word(row.id) if names[run_word(row.id)] == 1 else plain(row.id))}: {words}"
        for row, words in told[:MOST_RUNS]
    ]
    if len(told) > MOST_RUNS:
        happened.append(f"{len(told) - MOST_RUNS} more")
    spent = sum(spending.usd_since(row.spans, seen.time, now) for row in rows)
    if spent >= 0.005 and not short:
        happened.append(f"spent {money(spent)}")
    return Away(now - seen.time, tuple(happened)) if happened else None


def _is_bad(row: RunSummary, seen: Seen) -> bool:
    """Whether it went wrong since."""
    before = seen.runs.get(row.id)
    return row.state in _GRAVE and (before is None or (before.state, before.attempt) != (row.state, row.attempt))


def _happened(row: RunSummary, seen: Seen) -> str:
    """`11 epochs, new best 0.736, failed at step 18,204`; empty when nothing did."""
    before = seen.runs.get(row.id, SeenRun("", 0, 0.0, None))
    parts = []
    done = row.done - before.done
    if done > 0 and not row.is_task:
        parts.append(f"{count(done)} epoch{'s' if done != 1 else ''}")
    if row.score is not None and row.score != before.score and done > 0:
        parts.append(f"new best {row.score:.3f}")
    if (row.state, row.attempt) != (before.state, before.attempt):
        parts += _change(row, new=not before.state)
    return ", ".join(parts)


def _change(row: RunSummary, *, new: bool) -> list[str]:
    """The change of state in words, where it is one worth telling."""
    if row.state == "stale":
        return []
    if is_live(row.state):
        return ["is new" if new else row.state] if new or row.state == "paused" else []
    where = f" at step {count(row.last_step)}" if row.state == "failed" and row.last_step else ""
    return [f"{row.state}{where}"]


class Lookout:
    """Knows how the runs were when the cockpit was last left, and keeps how they are now."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._folder, self._clock = folder, clock
        self._path = seen_path(folder)
        self._before, self._opened = read(self._path), clock()

    def away(self, rows: Sequence[RunSummary]) -> Away | None:
        """What happened before the cockpit was opened; shown once."""
        before, self._before = self._before, None
        return while_away(before, rows, self._opened)

    def keep(self, fleet: Fleet) -> None:
        """Look once more at every run, and keep that as seen; where it cannot be written it is not.

        For a thread of its own or the very end: it may wait for a disk.
        """
        fleet.refresh()
        with contextlib.suppress(OSError):
            write(self._path, self._folder, fleet.summaries(), self._clock())
