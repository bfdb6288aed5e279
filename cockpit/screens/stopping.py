"""Stopping a run from a screen: the first press asks nothing; what is stronger, and what then remains, is shown."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

from textual.screen import Screen

from cockpit.core.hosts.links import require_here
from cockpit.core.run.control import Target
from cockpit.core.run.ending import send_signal
from cockpit.core.states import Shown, is_live
from cockpit.screens.confirm import StopHarder
from cockpit.screens.working import in_thread, tell_from_thread
from engines.contract.rundir import RunDirectory


class Stopping:
    """What was asked to stop from this screen, and how hard."""

    def __init__(self, screen: Screen[None]) -> None:
        self._screen = screen
        self._asked: set[tuple[Path, int]] = set()
        self._question: tuple[StopHarder, Target] | None = None

    def begins(self, target: Target) -> bool:
        """Note that `target` is to stop; False where it was asked to before, here or elsewhere."""
        asked = (target.run.path, target.attempt)
        first = asked not in self._asked and target.state != "stopping"
        if first:
            self._asked.add(asked)
        return first

    def ask_how(self, target: Target) -> None:
        """Ask before anything stronger than a stop."""
        question = StopHarder(target.id, partial(self._stop_harder, target))
        self._question = (question, target)
        self._screen.app.push_screen(question)

    def _stop_harder(self, target: Target, number: signal.Signals) -> None:
        def end() -> None:
            require_here(target.run.path, "kill")
            send_signal(target.run, number)

        in_thread(self._screen, end)

    def note(self, run: Path, state: Shown) -> None:
        """When `run` has ended, take back the question how to stop it, and say what remains of what was stopped."""
        if is_live(state) or state == "stale":
            return
        if self._question is not None and self._question[1].run.path == run:
            question, self._question = self._question[0], None
            if question.is_active:
                question.dismiss()
        if any(path == run for path, _ in self._asked):
            self._asked = {asked for asked in self._asked if asked[0] != run}
            in_thread(self._screen, partial(self._tell_what_remains, RunDirectory(run)))

    def _tell_what_remains(self, run: RunDirectory) -> None:
        from cockpit.core.runs.remains import what_remains  # not needed by the first screen

        tell_from_thread(self._screen, what_remains(run))
