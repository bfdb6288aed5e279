"""The queue in the list of runs: those that wait for their device are moved and taken out here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from textual.binding import Binding

from cockpit.core.runs.chosen import ChosenRuns
from cockpit.core.runs.summary import RunSummary
from cockpit.core.text import run_word
from cockpit.screens.changing_keys import ChangingKeysScreen
from cockpit.screens.working import in_thread, tell_from_thread
from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory
from engines.host import queue
from engines.runs import launch

KEYS = (
    Binding(
        "K,shift+up", "move_queued('up')", "earlier", show=False, id="queue.earlier",
        tooltip="Move the waiting run one up in the queue",
    ),
    Binding(
        "J,shift+down", "move_queued('down')", "later", show=False, id="queue.later",
        tooltip="Move the waiting run one down in the queue",
    ),
    Binding(
        "shift+home", "move_queued('first')", "first", show=False, id="queue.first",
        tooltip="Move the waiting run to the front of the queue",
    ),
    Binding(
        "shift+end", "move_queued('last')", "last", show=False, id="queue.last",
        tooltip="Move the waiting run to the end of the queue",
    ),
    Binding(
        "x", "cancel_queued", "cancel", show=False, id="queue.cancel",
        tooltip="Take the marked runs, or this one, out of the queue; resume puts a run back",
    ),
)  # fmt: skip
HINTS = ("queue.earlier", "queue.later", "queue.cancel")


class Queueing:
    """What these keys do to the chosen runs. The supervisors say what became of a move, half a second later."""

    def __init__(self, screen: ChangingKeysScreen, chosen: ChosenRuns) -> None:
        self._screen, self._chosen = screen, chosen

    def check_move(self, *, earlier: bool) -> bool | None:
        """Absent where nothing waits."""
        if not self._chosen.any_waits:
            return False
        return self._chosen.can_come(earlier=earlier) or None

    def check_cancel(self) -> bool | None:
        return bool(self._chosen.waiting) or (None if self._chosen.any_waits else False)

    def hint(self) -> str:
        """Keys for the waiting run under the cursor, as a person has them."""
        return "  ".join(self._screen.hints(HINTS))

    def move(self, where: queue.Where) -> None:
        if (row := self._chosen.one) is not None:
            in_thread(self._screen, partial(queue.move, row.path, where))

    def cancel(self) -> None:
        in_thread(self._screen, partial(self._cancel, self._chosen.waiting))

    def _cancel(self, waiting: Sequence[RunSummary]) -> None:
        """Runs in a worker's thread."""
        for row in waiting:
            launch.send_stop(RunDirectory(row.path), cmd.Stop(attempt=row.attempt))
        words = f"{run_word(waiting[0].id)} left" if len(waiting) == 1 else f"{len(waiting)} runs left"
        again = "resume puts it back at the end" if len(waiting) == 1 else "resume puts one back at the end"
        tell_from_thread(self._screen, f"{words} the queue; {again}.")
