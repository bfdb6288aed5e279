"""The screen of a project's interactive task."""

from __future__ import annotations

from argparse import Namespace

from cockpit.cli.screen import open_app, require_terminal
from cockpit.cli.tasks import parsed
from engines.runs.store import find_run


def play(arguments: Namespace) -> int:
    """Start the play engine of a run, or find the one that waits or is to be joined, and show it."""
    from cockpit.core.scenes.play import open_play

    require_terminal()
    more = parsed(arguments.overrides)
    session = open_play(find_run(arguments.run), arguments.recording or "", arguments.seat or "", more)
    return open_app(play=session, ascii_only=arguments.ascii)
