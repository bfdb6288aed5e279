"""Opening the app."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engines.basics.errors import UserError

if TYPE_CHECKING:
    from cockpit.core.foreign.logs import Logs
    from cockpit.core.launch.demo import Demo
    from cockpit.core.scenes.play import Viewing
    from engines.contract.rundir import RunDirectory


def cockpit(arguments: Namespace) -> int:
    if arguments.hosts:
        from cockpit.cli.hosts import remember

        remember(arguments.hosts)
    return open_app(ascii_only=arguments.ascii)


def require_terminal() -> None:
    """Raises `UserError` without a terminal to draw on."""
    if not has_terminal():
        raise UserError(
            "The cockpit needs a terminal for input and for the screen (drawn on stderr); "
            "`cockpit ls` and `cockpit demo --headless` work without one."
        )


def has_terminal() -> bool:
    """Whether keys can be read and a picture be drawn."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def open_app(
    demo: Demo | None = None,
    *,
    play: Viewing | None = None,
    watch: Logs | None = None,
    compare: Sequence[RunDirectory] = (),
    ascii_only: bool = False,
) -> int:
    """Open the cockpit, at the demo, a play engine, logs or runs. Raises `UserError` without a terminal."""
    require_terminal()
    with contextlib.suppress(OSError):
        if all(os.get_terminal_size(2)):
            for name in ("COLUMNS", "LINES"):  # exported by a shell they would be believed, and a resize would not
                os.environ.pop(name, None)
    gc.disable()  # a start makes hardly any garbage; the app enables it again
    from cockpit.app import run
    from cockpit.core.ascii import needs_ascii

    ascii_only = ascii_only or needs_ascii(os.environ, sys.stderr.encoding)
    return run(demo, play=play, watch=watch, compare=compare, ascii_only=ascii_only)
