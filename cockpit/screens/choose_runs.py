"""Choosing the runs, or the one run, that another is compared with."""

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
from textual.widgets import OptionList, SelectionList, Static
from textual.widgets.option_list import Option
from textual.widgets.selection_list import Selection

from cockpit.core.hosts.links import host_of, links, on_host
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
    HINT = "space mark   enter compare   escape close"

    @dataclass
    class Found(Message):
        """The runs that there are, with what they are called."""

        runs: Sequence[tuple[RunDirectory, str]]

    def __init__(self, folder: Path, run: RunDirectory) -> None:
        super().__init__()
        self._folder, self._run = folder, run
        self._offered: Sequence[RunDirectory] = ()

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="choose") as dialog:
            dialog.border_title = literal(f"Compare {self._run.path.name} with")
            dialog.border_subtitle = self.HINT
            yield self._list()
            yield Static("loading …", id="none", markup=False)

    def _list(self) -> OptionList:
        return SelectionList[RunDirectory](compact=True)

    def _option(self, words: Text, run: RunDirectory) -> Option:
        return Selection(words, run)

    def _chosen(self) -> tuple[RunDirectory, ...]:
        """The marked ones; without a mark the one under the cursor."""
        choices = self.query_one(SelectionList)
        at = choices.highlighted
        return tuple(choices.selected) or (() if at is None else (choices.get_option_at_index(at).value,))

    def on_mount(self) -> None:
        self.run_worker(self._look, thread=True)

    def _look(self) -> None:
        """Runs in a worker's thread."""
        folders = dict.fromkeys((self._folder, *(link.folder for link in links())))
        others = [run for folder in folders for run in list_runs(folder) if run.path != self._run.path]
        self.post_message(self.Found([(run, _called(run)) for run in others if _is_training(run)][:OFFERED]))

    @on(Found)
    def _offer(self, message: Found) -> None:
        self._offered = [run for run, _ in message.runs]
        choices = self.query_one(OptionList)
        choices.add_options(
            self._option(Text.assemble((f"{name}  ", "bold"), (plain(run.path.name), "dim")), run)
            for run, name in message.runs
        )
        self.query_one("#none", Static).update("" if message.runs else "No other training to compare with.")
        self.query_one("#none").display = not message.runs
        choices.highlighted = 0 if message.runs else None
        choices.focus()

    def action_choose(self) -> None:
        if chosen := self._chosen():
            self.dismiss(chosen)


class ChooseRunScreen(ChooseRunsScreen):
    """Gives the one chosen run, alone in its tuple."""

    BINDINGS = [
        Binding("enter", "choose", "compare", priority=True, id="choose.compare", tooltip="Compare with this run"),
    ]  # fmt: skip
    HINT = "enter compare   escape close"

    def _list(self) -> OptionList:
        return OptionList(compact=True)

    def _option(self, words: Text, run: RunDirectory) -> Option:
        return Option(words)

    def _chosen(self) -> tuple[RunDirectory, ...]:
        at = self.query_one(OptionList).highlighted
        return () if at is None else (self._offered[at],)


def _is_training(run: RunDirectory) -> bool:
    try:
        return run.info.kind == "training"
    except UserError:
        return False


def _called(run: RunDirectory) -> str:
    """Its label, else its word, after the name of its machine."""
    return on_host(host_of(run.path), plain(run.info.label) or run_word(run.path.name))
