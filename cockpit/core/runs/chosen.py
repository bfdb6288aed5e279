"""What a key means in a list of runs: those marked, else the one under the cursor; and what can be done with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from cockpit.core.hosts.links import only_there
from cockpit.core.run.control import Target
from cockpit.core.runs.summary import RunSummary
from cockpit.core.states import is_live
from cockpit.core.text import plain
from engines.contract.rundir import RunDirectory


class ChosenRuns:
    """Of `rows`, all runs in their order; `cursor` gives the one under the cursor, if the list shows any."""

    def __init__(self, cursor: Callable[[], RunSummary | None]) -> None:
        self._cursor = cursor
        self.rows: Sequence[RunSummary] = ()
        self.marked: set[Path] = set()
        """Paths of the marked runs, shown or not."""

    @property
    def one(self) -> RunSummary | None:
        """The run under the cursor."""
        return self._cursor()

    @property
    def meant(self) -> list[RunSummary]:
        """The marked runs, shown or not, else the one under the cursor."""
        marked = [row for row in self.rows if row.path in self.marked] if self.marked else []
        return marked or ([self.one] if self.one else [])

    @property
    def target(self) -> Target | None:
        """The run under the cursor, to be steered."""
        if (row := self.one) is None:
            return None
        return Target(RunDirectory(row.path), row.id, row.attempt, row.state, row.only_stops, row.no_resume)

    # -- several at once -------------------------------------------------------------------------------------------

    @property
    def compared(self) -> list[RunSummary]:
        """The marked trainings, those that cannot be read among them: tasks have nothing to compare."""
        return [row for row in self.meant if not row.is_task] if self.marked else []

    def why_not_compare(self) -> str:
        """A sentence; empty when the marked runs can be compared."""
        if (there := len(self.compared)) < 2:
            return f"Mark two or more trainings to compare them: {there or 'none'} so far."
        return ""

    def why_not_delete(self) -> str:
        """A sentence; empty when there is a run to delete among those meant."""
        meant = self.meant
        here = [row for row in meant if not row.host]
        if meant and not here:
            return only_there(meant[0].path, "delete")
        if here and all(is_live(row.state) for row in here):
            return f"{plain(here[0].id)} is live: stop it before deleting it."
        return "" if meant else "No run to delete."

    # -- the queue -------------------------------------------------------------------------------------------------

    @property
    def any_waits(self) -> bool:
        """Whether any run at all waits for its device."""
        return any(row.state == "queued" for row in self.rows)

    @property
    def waiting(self) -> list[RunSummary]:
        """The runs in a queue among those meant."""
        return [row for row in self.meant if row.state == "queued"]

    def can_come(self, *, earlier: bool) -> bool:
        """Whether the run under the cursor waits and is not the first, or the last, to have its device."""
        if self.one is None or self.one.queued is None or self.one.host:
            return False
        device, number = self.one.queued
        if earlier:
            return number > 1
        here = (row.queued for row in self.rows if row.queued and not row.host)
        return number < max(place for of, place in here if of == device)
