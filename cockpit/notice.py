"""An alert told beyond the screen's own words, by the terminal the person sits at: its bell, or a notice of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from textual.app import App
from textual.message import Message

from cockpit.core.text import plain, run_word
from cockpit.title import write
from engines.contract.events import Alert

CHOICES = {"": "not at all", "bell": "by the terminal's bell", "osc9": "by a notice of the terminal (OSC 9)"}
LONGEST = 200


@dataclass
class Notice(Message):
    """A run was alerted of something that a person who looks elsewhere would know; several screens may say so."""

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
