"""When each run was last looked at, kept between sessions in one small file. Nothing depends on it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from engines.basics.files import make_directory, replace_bytes
from engines.basics.reading import read_json

MOST_RUNS = 2000
"""Runs that are remembered, those looked at last."""
SEEN_SECONDS = 10.0
"""How often it is kept that a run is looked at: a cockpit that is killed has no moment to do it."""


def last_seen_path(environment: Mapping[str, str] = os.environ) -> Path:
    """`$XDG_STATE_HOME/cockpit/seen.json`, by default below `~/.local/state`."""
    home = environment.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return Path(home) / "cockpit" / "seen.json"


class LastSeen:
    """Moments by run, in Unix seconds. It reads and writes a disk: for a thread of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def seen(self, run_id: str) -> float | None:
        """When the run was last looked at; None if it never was, or where that cannot be read."""
        return self._read().get(run_id)

    def see(self, run_id: str, now: float) -> None:
        """The run is looked at now. Another cockpit may have written meanwhile. Raises OSError."""
        moments = self._read() | {run_id: now}
        kept = dict(sorted(moments.items(), key=lambda item: item[1])[-MOST_RUNS:])
        make_directory(self._path.parent)
        replace_bytes(self._path, msgspec.json.encode(kept))

    def _read(self) -> dict[str, float]:
        try:
            return read_json(self._path, dict[str, float])
        except (OSError, msgspec.DecodeError):
            return {}


class Attention:
    """A person looks at one run: knows when one did before, and keeps that one does now. For one thread."""

    def __init__(self, run_id: str, clock: Callable[[], float], path: Path | None = None) -> None:
        self._run_id, self._clock = run_id, clock
        self._last = LastSeen(path or last_seen_path())
        self._before: float | None = None
        self._kept: float | None = None

    def pay(self) -> float | None:
        """Keep the moment every `SEEN_SECONDS`; gives when the run was looked at before the first call, if ever."""
        now = self._clock()
        if self._kept is None:
            self._before = self._last.seen(self._run_id)
        if self._kept is None or now - self._kept >= SEEN_SECONDS:
            self._kept = now
            with contextlib.suppress(OSError):  # where nothing can be written, nothing is reported next time
                self._last.see(self._run_id, now)
        return self._before
