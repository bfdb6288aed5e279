"""Keeping the list of runs: labels and notes, and deleting what nobody needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from textual.screen import Screen

from cockpit.core.runs import baseline, labels, removal
from cockpit.core.runs.chosen import ChosenRuns
from cockpit.core.runs.removal import Removal
from cockpit.core.runs.summary import RunSummary
from cockpit.core.states import is_live
from cockpit.core.text import run_word
from cockpit.screens.delete import DeleteScreen
from cockpit.screens.label import LabelScreen
from cockpit.screens.working import in_thread, refuse, tell_from_thread
from engines.basics.amounts import size
from engines.basics.errors import UserError
from engines.contract.rundir import RunDirectory


class Keeping:
    """What can be done to the chosen runs beside steering them; after it `look_again`, in a thread, finds the news."""

    def __init__(
        self, screen: Screen[None], chosen: ChosenRuns, folder: Path, look_again: Callable[[], object]
    ) -> None:
        """`folder` is the runs folder, which keeps the baselines."""
        self._screen, self._chosen, self._folder, self._look_again = screen, chosen, folder, look_again

    def describe(self) -> None:
        """Ask for a label and notes."""
        if (row := self._chosen.one) is None:
            return

        def save(words: tuple[str, str, str] | None) -> None:
            if words is not None and words != (row.label, row.notes, " ".join(row.tags)):
                in_thread(self._screen, partial(self._describe, row, *words))

        self._screen.app.push_screen(LabelScreen(row), save)

    def _describe(self, row: RunSummary, label: str, notes: str, tags: str) -> None:
        """Runs in a worker's thread."""
        labels.describe(RunDirectory(row.path), label=label, notes=notes, tags=[tags])
        self._look_again()

    # -- the baseline ----------------------------------------------------------------------------------------------

    def pin(self) -> None:
        """Make the run the baseline of its project; when it is that already, its project has none."""
        if (row := self._chosen.one) is not None:
            in_thread(self._screen, partial(self._pin, row))

    def _pin(self, row: RunSummary) -> None:
        """Runs in a worker's thread."""
        if baseline.is_pinned(self._folder, row.project, row.path):
            baseline.unpin(self._folder, row.project)
            words = f"{row.project} has no baseline now."
        else:
            baseline.pin(self._folder, RunDirectory(row.path))
            words = (
                f"{row.label or run_word(row.id)} is the baseline of {row.project}: Compare shows differences to it."
            )
        self._look_again()
        tell_from_thread(self._screen, words)

    # -- deleting --------------------------------------------------------------------------------------------------

    def delete(self) -> None:
        """Weigh what is meant, then ask; live ones among it stay."""
        meant = [row for row in self._chosen.meant if not row.host]
        if there := len(self._chosen.meant) - len(meant):
            self._screen.notify(f"{there} of the marked runs {'is' if there == 1 else 'are'} on another machine.")
        dead = [row.path for row in meant if not is_live(row.state)]
        if alive := len(meant) - len(dead):
            self._screen.notify(f"{alive} of the marked runs {'is' if alive == 1 else 'are'} live and was not deleted.")

        def weigh() -> None:
            self._screen.call_later(self._ask, [removal.look(path) for path in dead])

        in_thread(self._screen, weigh)

    def _ask(self, removals: list[Removal]) -> None:
        if not self._screen.is_active:
            return  # the person went elsewhere meanwhile
        paths = {one.path for one in removals}
        rows = self._chosen.rows
        ids = {row.id for row in rows if row.path in paths}
        forks = [row.id for row in rows if row.parent in ids and row.path not in paths]

        def answered(yes: bool | None) -> None:
            if yes:
                in_thread(self._screen, partial(self._delete, removals))

        self._screen.app.push_screen(DeleteScreen(removals, forks), answered)

    def _delete(self, removals: list[Removal]) -> None:
        """Runs in a worker's thread. What cannot be deleted keeps no other from it."""
        deleted, freed = 0, 0
        for one in removals:
            try:
                removal.remove(one.path)
            except UserError as error:
                self._screen.call_later(refuse, self._screen, str(error))
            else:
                deleted, freed = deleted + 1, freed + one.size
        self._look_again()
        if deleted:
            words = f"{deleted} runs are" if deleted > 1 else f"{removals[0].path.name} is"
            tell_from_thread(self._screen, f"{words} deleted, {size(freed)} freed.")
