"""Opening the app."""

from __future__ import annotations

import sys
from argparse import Namespace

from cockpit.core.demo import Demo
from engines.contract.errors import UserError


def cockpit(arguments: Namespace) -> int:
    return open_app()


def open_app(demo: Demo | None = None) -> int:
    """Open the cockpit, at the demo if there is one. Raises `UserError` without a terminal to draw on."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(
            "The cockpit needs a terminal for keys and for its picture (which goes to stderr); "
            "`cockpit ls` and `cockpit demo --headless` work without one."
        )
    from cockpit.app import run

    return run(demo)
