"""The queue in the list of runs: those that wait for their device are moved and taken out here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Static

from cockpit.core.hosts import links
from cockpit.core.runs.chosen import ChosenRuns
from cockpit.core.runs.summary import RunSummary
from cockpit.core.text import run_word
from cockpit.screens.changing_keys import ChangingKeysScreen
from cockpit.screens.dialog import Dialog
from cockpit.screens.working import in_thread, tell_from_thread
from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory
from engines.host import queue

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
NAMED = 10
"""Runs that are named; of more only how many they are."""
HINTS = ("queue.earlier", "queue.later", "queue.cancel")


class LeaveQueueScreen(Dialog[bool]):
    """Asks before runs lose their place in the queue."""

    CSS_PATH = "confirm.tcss"
    BINDINGS = [
        Binding("escape,enter,q,n", "dismiss(False)", "Keep", id="leave-queue.keep", tooltip="They keep their place"),
        Binding("y", "dismiss(True)", "Take out", id="leave-queue.out", tooltip="Take them out of the queue"),
    ]

    def __init__(self, waiting: Sequence[RunSummary]) -> None:
        super().__init__()
        self._waiting = waiting

    def compose(self) -> ComposeResult:
        count = len(self._waiting)
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = f"Take {'this run' if count == 1 else f'these {count} runs'} out of the queue?"
            names = ", ".join(run_word(row.id) for row in self._waiting[:NAMED])
            more = f" and {count - NAMED} more" if count > NAMED else ""
            yield Static(f"{names}{more}: resume puts a run back at the end.", markup=False, classes="question")
            yield Static("    [b $accent]y[/]  take out")
            yield Static("[b $accent]enter[/]  keep")


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
        waiting = self._chosen.waiting

        def answered(yes: bool | None) -> None:
            if yes:
                in_thread(self._screen, partial(self._cancel, waiting))

        self._screen.app.push_screen(LeaveQueueScreen(waiting), answered)

    def _cancel(self, waiting: Sequence[RunSummary]) -> None:
        """Runs in a worker's thread."""
        for row in waiting:
            links.send_stop(RunDirectory(row.path), cmd.Stop(attempt=row.attempt))
        words = f"{run_word(waiting[0].id)} left" if len(waiting) == 1 else f"{len(waiting)} runs left"
        again = "resume puts it back at the end" if len(waiting) == 1 else "resume puts one back at the end"
        tell_from_thread(self._screen, f"{words} the queue; {again}.")
