"""What to do with a run that was asked to stop and has not yet."""

from __future__ import annotations

import signal

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from cockpit.core.text import plain


class StopHarder(ModalScreen[signal.Signals | None]):
    """Asks before anything stronger than a stop is sent; gives the signal for the supervisor, or None to wait."""

    CSS_PATH = "confirm.tcss"
    BINDINGS = [
        Binding("escape,enter,q", "choose('')", "Keep waiting", id="stop.wait", tooltip="Let it finish and save"),
        Binding("t", "choose('SIGTERM')", "Ask again with SIGTERM", id="stop.term", tooltip="Save and leave"),
        Binding("K", "choose('SIGQUIT')", "Kill it", id="stop.kill", tooltip="At once, without saving"),
    ]

    def __init__(self, run_id: str) -> None:
        super().__init__()
        self._run_id = run_id

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "Still stopping"
            yield Static(
                f"{plain(self._run_id)} finishes its step, saves and leaves.", markup=False, classes="question"
            )
            yield Static("[b $accent]⏎[/]  keep waiting")
            yield Static("[b $accent]t[/]  ask again with SIGTERM: it saves and leaves")
            yield Static("[b $accent]K[/]  kill it now: what it did since its last checkpoint is lost")

    def action_choose(self, name: str) -> None:
        self.dismiss(signal.Signals[name] if name else None)
