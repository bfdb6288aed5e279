"""Opening the app."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from cockpit.core.demo import Demo
from engines.contract.errors import UserError
from engines.contract.rundir import RunDirectory


def cockpit(arguments: Namespace) -> int:
    return open_app()


def require_terminal() -> None:
    """Raises `UserError` without a terminal to draw on."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(
            "The cockpit needs a terminal for keys and for its picture (which goes to stderr); "
            "`cockpit ls` and `cockpit demo --headless` work without one."
        )


def open_app(demo: Demo | None = None, *, play: RunDirectory | None = None, ascii_only: bool = False) -> int:
    """Open the cockpit, at the demo or at a play engine if there is one. Raises `UserError` without a terminal."""
    require_terminal()
    from cockpit.app import run
    from cockpit.core.ascii import needs_ascii

    return run(demo, play=play, ascii_only=ascii_only or needs_ascii(os.environ, sys.stderr.encoding))
