"""The title of the terminal's window or tab: set on change, given back on leaving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.app import App

from cockpit.core.ascii import PLAIN_TERMINALS, text_in_ascii
from cockpit.core.text import plain

SAVE, RESTORE = "\x1b[22;0t", "\x1b[23;0t"
"""XTWINOPS: keep the title on the terminal's stack, and take it from there."""
LONGEST = 80


def write(app: App[Any], sequence: str) -> None:
    """Send a control sequence past the picture. Textual has no public way, so this is the one place that goes round."""
    driver = app._driver
    if driver is not None and not driver.is_headless:
        driver.write(sequence)
        driver.flush()


class TerminalTitle:
    """Writes only what changed, and nothing to a terminal that would print it: a dumb one, the bare console."""

    def __init__(self, app: App[Any], environment: Mapping[str, str]) -> None:
        self._app = app
        self._silent = environment.get("TERM", "") in PLAIN_TERMINALS
        self._shown = ""

    def show(self, title: str) -> None:
        """`title` may hold anything; in ASCII, since terminals read titles in many ways."""
        title = text_in_ascii(plain(title))[:LONGEST]
        if self._silent or title == self._shown:
            return
        write(self._app, f"{'' if self._shown else SAVE}\x1b]0;{title}\x07")
        self._shown = title

    def restore(self) -> None:
        if self._shown:
            write(self._app, f"\x1b]0;\x07{RESTORE}")  # empty first, for terminals without such a stack
            self._shown = ""
