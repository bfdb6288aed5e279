"""Asking before runs are deleted."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Static

from cockpit.core.runs.removal import Removal
from cockpit.core.text import plain
from cockpit.screens.dialog import Dialog
from engines.basics.amounts import size

NAMED = 10
"""Runs that are named one by one; of more only how many they are."""


class DeleteScreen(Dialog[bool]):
    """Says what would go and what stays; gives whether to delete it."""

    CSS_PATH = "confirm.tcss"
    BINDINGS = [
        Binding("escape,enter,q,n", "answer(False)", "Keep", id="delete.keep", tooltip="Keep everything"),
        Binding("y", "answer(True)", "Delete", id="delete.delete", tooltip="Delete the runs named here for good"),
    ]

    def __init__(self, removals: Sequence[Removal], forks: Sequence[str]) -> None:
        """`forks`: ids of runs that were forked from those to be deleted and are not deleted with them."""
        super().__init__()
        self._removals, self._forks = removals, forks

    def compose(self) -> ComposeResult:
        count, total = len(self._removals), sum(one.size for one in self._removals)
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "Delete this run?" if count == 1 else f"Delete these {count} runs?"
            yield Static(self._named(), classes="question")
            if self._forks:
                yield Static(self._forked(), classes="question", markup=False)
            yield Static(f"    [b $accent]y[/]  delete for good, freeing {size(total)}")
            yield Static("[b $accent]enter[/]  keep")

    def _named(self) -> Text:
        lines = [_line(one) for one in self._removals[:NAMED]]
        if more := len(self._removals) - NAMED:
            lines += [f"and {more} more"] if more > 0 else []
        return Text("\n".join(lines))

    def _forked(self) -> str:
        words = "A fork of it is kept" if len(self._forks) == 1 else f"{len(self._forks)} forks of it are kept"
        named = ", ".join(plain(fork) for fork in self._forks[:3]) + (" …" if len(self._forks) > 3 else "")
        return f"{words}: {named}"

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


def _line(one: Removal) -> str:
    if one.target is None:
        return f"{plain(one.path.name)}  {size(one.size)}"
    return f"{plain(one.path.name)}  only its entry here; its files are kept in {plain(str(one.target))}"
