"""Keeping the list of runs: labels and notes, and deleting what nobody needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from textual import on
from textual.message import Message

from cockpit.core.runs import labels, removal
from cockpit.core.runs.removal import Removal
from cockpit.core.runs.summary import RunSummary
from cockpit.core.states import is_live
from cockpit.core.text import plain
from cockpit.screens.delete import DeleteScreen
from cockpit.screens.label import LabelScreen
from cockpit.screens.steering import SteeringScreen
from engines.contract.amounts import size
from engines.contract.errors import UserError
from engines.contract.rundir import RunDirectory


class KeepingScreen(SteeringScreen):
    """A screen with a list of runs of which some are marked. A subclass holds the list."""

    @dataclass
    class Weighed(Message):
        """What deleting some runs would take away is known."""

        removals: list[Removal]

    def rows(self) -> Sequence[RunSummary]:
        """All runs, in order."""
        raise NotImplementedError

    def marked(self) -> set[Path]:
        """Of the marked runs, shown or not."""
        raise NotImplementedError

    def under_cursor(self) -> RunSummary | None:
        raise NotImplementedError

    def look_again(self) -> None:
        """Find out what has changed in the folder; called in a worker's thread."""
        raise NotImplementedError

    def meant(self) -> list[RunSummary]:
        """The marked runs, shown or not, else the one under the cursor."""
        marked = [row for row in self.rows() if row.path in self.marked()] if self.marked() else []
        cursor = self.under_cursor()
        return marked or ([cursor] if cursor else [])

    def why_not_delete(self) -> str:
        """A sentence; empty when there is a run to delete among those meant."""
        meant = self.meant()
        if meant and all(is_live(row.state) for row in meant):
            return f"{plain(meant[0].id)} is alive: stop it before deleting it."
        return "" if meant else "There is no run to delete."

    def action_describe(self) -> None:
        if (row := self.under_cursor()) is None:
            return

        def save(words: tuple[str, str] | None) -> None:
            if words is not None and words != (row.label, row.notes):
                self._work(partial(self._describe, row, *words))

        self.app.push_screen(LabelScreen(row), save)

    def _describe(self, row: RunSummary, label: str, notes: str) -> None:
        """Runs in a worker's thread."""
        labels.describe(RunDirectory(row.path), label=label, notes=notes)
        self.look_again()

    # -- deleting --------------------------------------------------------------------------------------------------

    def action_delete(self) -> None:
        """Weigh what is meant, then ask; live ones among it stay."""
        meant = self.meant()
        dead = [row.path for row in meant if not is_live(row.state)]
        if alive := len(meant) - len(dead):
            self.notify(f"{alive} of the marked runs {'is' if alive == 1 else 'are'} alive and not deleted.")
        self._work(lambda: self.post_message(self.Weighed([removal.look(path) for path in dead])))

    @on(Weighed)
    def _ask(self, message: Weighed) -> None:
        if not self.is_active:
            return  # the person went elsewhere meanwhile
        paths = {one.path for one in message.removals}
        ids = {row.id for row in self.rows() if row.path in paths}
        forks = [row.id for row in self.rows() if row.parent in ids and row.path not in paths]

        def answered(yes: bool | None) -> None:
            if yes:
                self._work(partial(self._delete, message.removals))

        self.app.push_screen(DeleteScreen(message.removals, forks), answered)

    def _delete(self, removals: list[Removal]) -> None:
        """Runs in a worker's thread. What cannot be deleted keeps no other from it."""
        deleted, freed = 0, 0
        for one in removals:
            try:
                removal.remove(one.path)
            except UserError as error:
                self.post_message(self.Refused(str(error)))
            else:
                deleted, freed = deleted + 1, freed + one.size
        self.look_again()
        if deleted:
            words = f"{deleted} runs are" if deleted > 1 else f"{plain(removals[0].path.name)} is"
            self.app.call_from_thread(self.notify, f"{words} deleted, {size(freed)} freed.", markup=False)
