"""All runs in the runs folder and on other machines, followed together; new ones are found, and those that are gone."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cockpit.core.runs.summary import RUN_ID, RunSummary, WatchedRun

SCAN_SECONDS = 1.0
READ_AT_ONCE = 100
PIECE = 2 << 20
"""Bytes of one run's history in one look of a screen: a huge one must not hold up the others."""
GRACE_SECONDS = 5.0
"""How long a directory may be without its run.json before it counts as broken: it is written last."""


@dataclass(frozen=True)
class FleetNews:
    """Runs that are new or changed, runs that are gone, and whether more, or more of one, is still being read."""

    changed: tuple[RunSummary, ...]
    gone: tuple[Path, ...]
    loading: bool


class Fleet:
    """Every run in a folder, and in those `beside` it. May be polled from several threads, one at a time.

    With a `piece`, so many bytes, a long history is read over several polls, and its run is `reading` until then.
    """

    def __init__(self, folder: Path, piece: int | None = None, beside: Sequence[Path] = ()) -> None:
        self.folder = folder
        self._folders = (folder, *beside)
        self._piece = piece
        self._runs: dict[Path, WatchedRun] = {}
        """By their entries in the folders."""
        self._elsewhere: dict[Path, WatchedRun] = {}
        """Runs in other folders that were asked for."""
        self._unread: list[Path] = []
        self._changed: dict[Path, RunSummary] = {}
        self._gone: set[Path] = set()
        """News that no poll has given yet, as `_changed`."""
        self._scan_due = 0.0
        self._one_at_a_time = threading.Lock()

    def poll(self, most: int = READ_AT_ONCE) -> FleetNews:
        """What changed since the last poll, reading at most `most` runs for the first time, newest first.

        Never raises for what a run's files hold.
        """
        with self._one_at_a_time:
            self._look(most)
            news = FleetNews(tuple(self._changed.values()), tuple(self._gone), self._loading)
            self._changed, self._gone = {}, set()
            return news

    def refresh(self) -> None:
        """Look at every run, also those not read yet. What changed is left for the next poll to tell."""
        loading = True
        while loading:
            with self._one_at_a_time:
                self._look(READ_AT_ONCE)
                loading = self._loading

    def summaries(self) -> list[RunSummary]:
        """Every run as it was when last looked at."""
        with self._one_at_a_time:
            return [watched.summary for watched in self._runs.values() if watched.summary]

    def look_at(self, paths: Iterable[Path]) -> list[RunSummary]:
        """These runs as they are now, in their order; what is known of those in the folder is not read again.

        What changed is left for the next poll to tell.
        """
        with self._one_at_a_time:
            return [self._look_at(path) for path in paths]

    def _look_at(self, path: Path) -> RunSummary:
        here = path.parent in self._folders
        known = self._runs if here else self._elsewhere
        if (watched := known.get(path)) is None:
            watched = known[path] = WatchedRun(path, self._piece)
            self._unread = [entry for entry in self._unread if entry != path]
        if watched.poll() and here and watched.summary is not None:
            self._changed[path] = watched.summary
        assert watched.summary is not None
        return watched.summary

    @property
    def _loading(self) -> bool:
        return bool(self._unread) or any(watched.behind for watched in self._runs.values())

    def _look(self, most: int) -> None:
        looked_at = [watched for watched in self._runs.values() if watched.live]
        if time.monotonic() >= self._scan_due:
            self._scan_due = time.monotonic() + SCAN_SECONDS
            self._scan()
            looked_at = list(self._runs.values())
        fresh, self._unread = self._unread[:most], self._unread[most:]
        for entry in fresh:
            self._runs[entry] = WatchedRun(entry, self._piece)
            looked_at.append(self._runs[entry])
        for watched in looked_at:
            if watched.poll() and watched.summary is not None:
                self._changed[watched.run.path] = watched.summary
                self._gone.discard(watched.run.path)

    def scan_now(self) -> None:
        """Look at every run at the next poll, whenever the next scan is due: something was changed from here."""
        self._scan_due = 0.0

    def _scan(self) -> None:
        """Find new entries, and runs that are no more."""
        entries: set[Path] = set()
        for folder in self._folders:
            try:
                entries |= {folder / name for name in os.listdir(folder)}
            except FileNotFoundError:
                continue
            except OSError:  # a volume that does not answer now says nothing about its runs
                entries |= {path for path in self._runs if path.parent == folder}
        for entry in self._runs.keys() - entries:
            path = self._runs.pop(entry).run.path
            self._changed.pop(path, None)
            self._gone.add(path)
        new = [entry for entry in entries - self._runs.keys() if _is_run(entry)]
        self._unread = sorted(new, key=lambda entry: entry.name.split("-", 1)[-1], reverse=True)


def _is_run(path: Path) -> bool:
    """Whether an entry is a run, or was: a run's name or parts without a run.json, some time after it was made."""
    if path.name.startswith("."):
        return False  # being deleted
    # os.path.exists: Path.exists raises for a folder that may not be entered, which would hide every other run.
    return os.path.exists(path / "run.json") or (_looks_like_a_run(path) and _age(path) > GRACE_SECONDS)


def _looks_like_a_run(path: Path) -> bool:
    return RUN_ID.fullmatch(path.name) is not None or os.path.exists(path / "events.jsonl")


def _age(path: Path) -> float:
    """Seconds since `path` itself (not what it links to) was changed."""
    try:
        return time.time() - path.lstat().st_mtime
    except OSError:
        return 0.0
