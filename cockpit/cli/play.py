"""Stepping through a session with a trained policy."""

from __future__ import annotations

from argparse import Namespace

from cockpit.cli.screen import open_app, require_terminal
from engines.runs.store import find_run


def play(arguments: Namespace) -> int:
    """Start the play engine of a run, or find the one that waits or is to be joined, and show it."""
    from cockpit.core.scenes.play import open_play

    require_terminal()
    session = open_play(find_run(arguments.run), arguments.recording or "", arguments.seat or "")
    return open_app(play=session, ascii_only=arguments.ascii)
