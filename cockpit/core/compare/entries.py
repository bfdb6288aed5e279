"""Any number of runs, followed together: how each stands, and its settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cockpit.core.compare.settings import Settings, read_settings
from cockpit.core.hosts.links import host_of, on_host
from cockpit.core.runs.fleet import Fleet
from cockpit.core.runs.summary import RunSummary
from cockpit.core.text import plain, run_word
from engines.basics.errors import DataError
from engines.contract.events import CommandAnswer
from engines.contract.rundir import RunDirectory

PIECE = 50
"""Runs that one poll reads for the first time."""


@dataclass(frozen=True)
class Entry:
    """One run. `settings` is None where they cannot be read; `problem` then says why."""

    run: RunDirectory
    name: str
    """Its label, else its word; in a comparison no two have the same."""
    summary: RunSummary | None = None
    """None until it is read."""
    settings: Settings | None = None
    problem: str = ""
    gone: bool = False

    @property
    def word(self) -> str:
        """Its word: `amber`; of another machine `gpu1:amber`."""
        return _word(self.run)


class Entries:
    """Runs that are read in pieces, then looked at again and again."""

    def __init__(self, runs: Sequence[RunDirectory], fleet: Fleet) -> None:
        self._fleet = fleet
        self._looked: list[Entry] = [Entry(run, _word(run)) for run in runs]
        self._configs: list[tuple[int, tuple[CommandAnswer, ...]] | None] = [None] * len(runs)
        """Of each run the time of its config and the edits, as they were when that was read."""
        self._read = 0
        self.all: tuple[Entry, ...] = tuple(self._looked)
        """The runs in the order given, no two of one name. Replaced, never changed."""

    @property
    def loading(self) -> bool:
        """Whether some run is not read yet."""
        return self._read < len(self._looked) or any(
            entry.summary is not None and entry.summary.state == "reading" for entry in self._looked
        )

    def poll(self) -> bool:
        """Read the next piece, or look at all that are read; whether anything changed. Never raises for their files."""
        start, stop = (self._read, self._read + PIECE) if self._read < len(self._looked) else (0, len(self._looked))
        stop = min(stop, len(self._looked))
        self._read = max(self._read, stop)
        before = self._looked[start:stop]
        there = [entry.run.path.is_dir() for entry in before]
        told = iter(self._fleet.look_at(entry.run.path for entry, here in zip(before, there, strict=True) if here))
        for place, here in zip(range(start, stop), there, strict=True):
            self._looked[place] = self._look(place, next(told) if here else None)
        if all(new is old for new, old in zip(self._looked[start:stop], before, strict=True)):
            return False
        names = told_apart(self._looked)
        self.all = tuple(
            entry if entry.name == name else replace(entry, name=name)
            for entry, name in zip(self._looked, names, strict=True)
        )
        return True

    def _look(self, place: int, summary: RunSummary | None) -> Entry:
        """What is known of one run; the same object where nothing changed."""
        known = self._looked[place]
        if summary is None or summary.state == "broken":
            gone, problem = summary is None, "it was deleted" if summary is None else summary.detail
            kept = known.summary if summary is None else summary
            if (known.gone, known.problem, known.summary) == (gone, problem, kept):
                return known
            return replace(known, summary=kept, gone=gone, problem=problem)
        read = _modified(known.run), summary.edits
        if summary == known.summary and read == self._configs[place] and not known.gone:
            return known
        settings, problem = known.settings, known.problem
        if read != self._configs[place]:
            self._configs[place] = read
            try:
                settings, problem = read_settings(known.run, summary.edits), ""
            except DataError as error:
                settings, problem = None, str(error)
        return replace(known, summary=summary, settings=settings, problem=problem, gone=False)


def _modified(run: RunDirectory) -> int:
    try:
        return run.config.stat().st_mtime_ns
    except OSError:
        return 0


def _word(run: RunDirectory) -> str:
    return on_host(host_of(run.path), run_word(run.path.name))


def told_apart(entries: Sequence[Entry]) -> list[str]:
    """Their labels, else their words: of the same name with words too, which come first; if that is not enough, ids."""
    names = [(plain(entry.summary.label) if entry.summary is not None else "") or entry.word for entry in entries]
    longer: tuple[Callable[[Entry, str], str], ...] = (
        lambda entry, name: f"{entry.word} · {name}",
        lambda entry, name: on_host(host_of(entry.run.path), plain(entry.run.path.name)),
    )
    for make in longer:
        often = Counter(names)
        names = [make(entry, name) if often[name] > 1 else name for entry, name in zip(entries, names, strict=True)]
    return names
