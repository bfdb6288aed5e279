"""Work of a screen that may wait for a disk or a process: in a thread, and what goes wrong is a sentence."""

from __future__ import annotations

from collections.abc import Callable

from textual.screen import Screen

from cockpit.core import failures
from cockpit.core.text import plain


def in_thread(screen: Screen[None], work: Callable[[], object]) -> None:
    """Do it beside whatever else is at work."""
    guarded = failures.told(work, lambda sentence: screen.call_later(refuse, screen, sentence))
    screen.run_worker(guarded, thread=True, group="orders", exclusive=False)


def tell_from_thread(screen: Screen[None], sentence: str) -> None:
    """Say what has been done, from a worker's thread."""
    screen.app.call_from_thread(screen.notify, plain(sentence), markup=False)


def refuse(screen: Screen[None], sentence: str) -> None:
    """Say what could not be done; its key may work again."""
    screen.notify(plain(sentence), severity="error", timeout=10, markup=False)
    screen.refresh_bindings()
