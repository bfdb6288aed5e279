"""What to do with a run that was asked to stop and has not yet."""

from __future__ import annotations

import signal
from collections.abc import Callable

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.timer import Timer
from textual.widgets import Static

from cockpit.core.text import plain
from cockpit.screens.dialog import Dialog

GRACE_SECONDS = 30
"""Between SIGTERM and SIGKILL: time to finish a step and to save."""
TICK_SECONDS = 1.0


class StopHarder(Dialog[None]):
    """Asks before anything stronger than a stop; `send` brings a signal to the run's supervisor.

    SIGTERM goes to the engine; after it a countdown is seen, then all of the engine's process group is killed (which is
    what SIGQUIT asks of a supervisor). Leaving the dialog ends the countdown.
    """

    CSS_PATH = "confirm.tcss"
    BINDINGS = [
        Binding("escape,enter,q", "wait", "Keep waiting", id="stop.wait", tooltip="Let it finish and save"),
        Binding(
            "t", "terminate", "SIGTERM, then kill", id="stop.term",
            tooltip="Send SIGTERM; kill it if it has not ended in time",
        ),
        Binding("K", "kill", "Kill it", id="stop.kill", tooltip="Kill it now, without saving"),
    ]  # fmt: skip

    def __init__(self, run_id: str, send: Callable[[signal.Signals], None]) -> None:
        super().__init__()
        self._run_id, self._send = run_id, send
        self._left = GRACE_SECONDS
        self._countdown: Timer | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "Still stopping"
            yield Static(
                f"{plain(self._run_id)} is finishing its step, saving and stopping.", markup=False, classes="question"
            )
            yield Static("[b $accent]enter[/]  keep waiting")
            yield Static(
                f"    [b $accent]t[/]  SIGTERM: it saves and stops, or is killed in {GRACE_SECONDS} s",
                id="term",
            )
            yield Static("    [b $accent]K[/]  kill it now: progress since its last checkpoint is lost", id="kill")

    def action_wait(self) -> None:
        self.dismiss()

    def action_terminate(self) -> None:
        if self._countdown is None:
            self._send(signal.SIGTERM)
            self._countdown = self.set_interval(TICK_SECONDS, self._count_down)
            self._show_countdown()

    def _count_down(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self.action_kill()
        else:
            self._show_countdown()

    def _show_countdown(self) -> None:
        self.query_one("#term", Static).update(f"       SIGTERM is sent; killed in {self._left} s; enter cancels")

    def action_kill(self) -> None:
        if self._countdown is not None:
            self._countdown.stop()
        self._send(signal.SIGQUIT)
        self.query_one("#kill", Static).update("       killed; waiting for its processes to end …")
