"""An alert outside the screen, by the user's terminal: its bell, or a notification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from textual.app import App
from textual.message import Message

from cockpit.core.text import plain, run_word
from cockpit.title import write
from engines.contract.events import Alert

CHOICES = {"": "off", "bell": "terminal bell", "osc9": "terminal notification (OSC 9)"}
LONGEST = 200


@dataclass
class Notice(Message):
    """A run was alerted of something that a user who looks elsewhere should know; several screens may say so."""

    run: str
    alert: Alert

    @property
    def text(self) -> str:
        return f"{run_word(self.run)}: {self.alert.text}"

    @property
    def key(self) -> tuple[str, str, float]:
        """The same for the same alert."""
        return self.run, self.alert.code, self.alert.time


def following(choice: str) -> str:
    """The choice after this one, in turn."""
    known = list(CHOICES)
    return known[(known.index(choice) + 1) % len(known)]


def tell(app: App[Any], choice: str, text: str) -> None:
    """Ring or show, as chosen. Terminals that know no OSC 9 ignore it, tmux does so unless passthrough is on."""
    if choice == "bell":
        app.bell()
    elif choice == "osc9":
        write(app, f"\x1b]9;{plain(text)[:LONGEST]}\x07")
