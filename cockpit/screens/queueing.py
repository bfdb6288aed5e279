"""The queue in the list of runs: those that wait for their device are moved and taken out here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from textual.binding import Binding

from cockpit.core.runs.summary import RunSummary
from cockpit.core.text import plain, run_word
from cockpit.screens.keeping import KeepingScreen
from engines.contract import commands as cmd
from engines.contract import launch, queue
from engines.contract.rundir import RunDirectory

HINTS = ("queue.earlier", "queue.later", "queue.cancel")


class QueueingScreen(KeepingScreen):
    """A list of runs with keys for those that wait. The supervisors say what became of a move, half a second later."""

    QUEUEING = [
        Binding(
            "K,shift+up", "move_queued('up')", "earlier", show=False, id="queue.earlier",
            tooltip="Let the waiting run come one place earlier",
        ),
        Binding(
            "J,shift+down", "move_queued('down')", "later", show=False, id="queue.later",
            tooltip="Let the waiting run come one place later",
        ),
        Binding(
            "shift+home", "move_queued('first')", "first", show=False, id="queue.first",
            tooltip="Let the waiting run come next",
        ),
        Binding(
            "shift+end", "move_queued('last')", "last", show=False, id="queue.last",
            tooltip="Let the waiting run come after all others",
        ),
        Binding(
            "x", "cancel_queued", "cancel", show=False, id="queue.cancel",
            tooltip="Take the marked waiting runs, else this one, out of the queue; resume puts one in again",
        ),
    ]  # fmt: skip

    def waiting(self) -> list[RunSummary]:
        """The runs in a queue among those that are meant."""
        return [row for row in self.meant() if row.state == "queued"]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Absent where nothing waits."""
        if action not in ("move_queued", "cancel_queued"):
            return super().check_action(action, parameters)
        if not any(row.state == "queued" for row in self.rows()):
            return False
        if action == "cancel_queued":
            return bool(self.waiting()) or None
        return self._can_move(earlier=parameters[:1] in (("up",), ("first",))) or None

    def _can_move(self, *, earlier: bool) -> bool:
        row = self.under_cursor()
        if row is None or row.queued is None:
            return False
        device, number = row.queued
        behind = (other.queued for other in self.rows() if other.queued and other.queued[0] == device)
        return number > 1 if earlier else number < max(place for _, place in behind)

    def queue_hint(self) -> str:
        """Keys for the waiting run under the cursor, as a person has them."""
        return "  ".join(self.hints(HINTS))

    def action_move_queued(self, where: queue.Where) -> None:
        if (row := self.under_cursor()) is not None:
            self._work(partial(queue.move, row.path, where))

    def action_cancel_queued(self) -> None:
        waiting = self.waiting()
        self._work(partial(self._cancel, waiting))

    def _cancel(self, waiting: Sequence[RunSummary]) -> None:
        """Runs in a worker's thread."""
        for row in waiting:
            launch.send_stop(RunDirectory(row.path), cmd.Stop(attempt=row.attempt))
        one = plain(run_word(waiting[0].id))
        words = f"{one} leaves" if len(waiting) == 1 else f"{len(waiting)} runs leave"
        again = "resume puts it in again, at its end" if len(waiting) == 1 else "resume puts one in again, at its end"
        self.app.call_from_thread(self.notify, f"{words} the queue; {again}.", markup=False)
