"""Choosing the runs that one is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import SelectionList, Static
from textual.widgets.selection_list import Selection

from cockpit.core.text import plain, run_word
from cockpit.screens.dialog import Dialog
from cockpit.widgets.heading import literal
from engines.basics.errors import UserError
from engines.contract.rundir import RunDirectory
from engines.runs.store import list_runs

OFFERED = 200
"""The newest runs; the list of all runs marks any."""


class ChooseRunsScreen(Dialog[tuple[RunDirectory, ...] | None]):
    """Gives the chosen runs, None where the person thought better of it."""

    CSS_PATH = "choose_runs.tcss"
    BINDINGS = [
        Binding("enter", "choose", "compare", priority=True, id="choose.compare", tooltip="Compare with marked runs"),
        Binding("escape", "dismiss", "close", id="choose.close", tooltip="Close without comparing"),
    ]  # fmt: skip

    @dataclass
    class Found(Message):
        """The runs that there are, with what they are called."""

        runs: Sequence[tuple[RunDirectory, str]]

    def __init__(self, folder: Path, run: RunDirectory) -> None:
        super().__init__()
        self._folder, self._run = folder, run

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="choose") as dialog:
            dialog.border_title = literal(f"Compare {self._run.path.name} with")
            dialog.border_subtitle = "space mark   enter compare   escape close"
            yield SelectionList[RunDirectory](compact=True)
            yield Static("loading …", id="none", markup=False)

    def on_mount(self) -> None:
        self.run_worker(self._look, thread=True)

    def _look(self) -> None:
        """Runs in a worker's thread."""
        others = [run for run in list_runs(self._folder) if run.path != self._run.path]
        self.post_message(self.Found([(run, _called(run)) for run in others if _is_training(run)][:OFFERED]))

    @on(Found)
    def _offer(self, message: Found) -> None:
        choices = self.query_one(SelectionList)
        choices.add_options(
            Selection(Text.assemble((f"{name}  ", "bold"), (plain(run.path.name), "dim")), run)
            for run, name in message.runs
        )
        self.query_one("#none", Static).update("" if message.runs else "No other training to compare with.")
        self.query_one("#none").display = not message.runs
        choices.highlighted = 0 if message.runs else None
        choices.focus()

    def action_choose(self) -> None:
        """The marked ones; without a mark the one under the cursor."""
        choices = self.query_one(SelectionList)
        chosen = tuple(choices.selected)
        if not chosen and choices.highlighted is not None:
            chosen = (choices.get_option_at_index(choices.highlighted).value,)
        if chosen:
            self.dismiss(chosen)


def _is_training(run: RunDirectory) -> bool:
    try:
        return run.info.kind == "training"
    except UserError:
        return False


def _called(run: RunDirectory) -> str:
    """Its label, else its word."""
    return plain(run.info.label) or run_word(run.path.name)
