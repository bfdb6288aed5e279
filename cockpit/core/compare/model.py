"""A comparison that is followed: any number of runs, what the user chose of them, and the table that comes of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from cockpit.core.compare.entries import Entries, Entry
from cockpit.core.compare.table import Choice, Compared, LineTable, make_table
from cockpit.core.runs.baseline import pinned, read_baseline
from cockpit.core.runs.fleet import Fleet
from cockpit.core.text import plain
from engines.basics.errors import DataError
from engines.contract.rundir import RunDirectory


class CompareModel:
    """Polled in a worker; `choose` may be called from another thread and counts from the next poll on."""

    def __init__(self, runs: Sequence[RunDirectory], fleet: Fleet, clock: Callable[[], float] = time.time) -> None:
        self._entries = Entries(runs, fleet)
        self._fleet, self._clock = fleet, clock
        self._choice = self._shown = Choice()
        self._baselines: dict[str, Entry] = {}
        self._problems: tuple[str, ...] = ()
        self.compared = Compared(self._entries.all)
        self.table = LineTable()

    @property
    def choice(self) -> Choice:
        return self._choice

    def choose(self, choice: Choice) -> None:
        """Show this from the next poll on."""
        self._choice = choice

    @property
    def loading(self) -> bool:
        """Whether some run is not read yet."""
        return self._entries.loading

    def poll(self) -> bool:
        """Read what is new; whether the table is another one. Never raises for what files hold."""
        choice = self._choice
        changed = self._entries.poll()
        changed |= self._read_baselines()
        if not changed and choice == self._shown and self.table.titles:
            return False
        self._shown = choice
        self.compared = Compared(self._entries.all, dict(self._baselines), self._problems, self._clock())
        before, self.table = self.table, make_table(self.compared, choice)
        return self.table != before

    def _read_baselines(self) -> bool:
        """Those of the projects that are compared, from the list of runs where it knows them."""
        entries = self._entries.all
        projects = dict.fromkeys(entry.summary.project for entry in entries if entry.summary is not None)
        problems: list[str] = []
        found: dict[str, Entry] = {}
        folder = self._fleet.folder
        known: dict[str, str] = {}
        try:
            known = pinned(folder)
        except DataError as error:
            problems.append(str(error))
        for project in projects:
            if project in known and (entry := self._look(folder, project, known[project], problems)) is not None:
                found[project] = entry
        before = self._baselines, self._problems
        self._baselines, self._problems = found, tuple(problems)
        return (self._baselines, self._problems) != before

    def _look(self, folder: Path, project: str, name: str, problems: list[str]) -> Entry | None:
        compared = (entry for entry in self._entries.all if entry.run.path == folder / name)
        baseline = read_baseline(folder, project, lambda path: self._fleet.look_at([path])[0])
        if baseline is None or baseline.run is None:
            problems.append(baseline.problem if baseline is not None else f"The baseline {plain(name)} is gone.")
            return None
        entry = next(compared, Entry(RunDirectory(folder / name), baseline.name))
        if baseline.problem:
            problems.append(baseline.problem)
        return Entry(entry.run, entry.name, baseline.run)
