"""Ending with the terminal, and giving it back on a signal."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.app import App

GRACE_SECONDS = 3.0
"""For leaving in good order after a signal."""
AS_IT_WAS = (
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"  # reports of the mouse
    "\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[<u"  # of the focus, of pastes, of sizes, of keys
    "\x1b[0m\x1b[?25h\x1b[?1049l"  # colours, the cursor, and the screen that was there before
)


def end_with_the_terminal() -> None:
    """From now on end this process when the terminal of its standard input is gone.

    A terminal tells with SIGHUP only those it controls. Without that, as under `setsid` or `nohup`, reading keys would
    find nothing, again and again, on a whole core. Nothing is lost by an end: every run goes on.
    """
    threading.Thread(target=_wait, args=(sys.stdin.fileno(),), name="hang-up", daemon=True).start()


def _wait(terminal: int) -> None:
    hang_up = select.poll()
    hang_up.register(terminal, 0)  # it is reported without being asked for
    hang_up.poll()
    os._exit(128 + signal.SIGHUP)  # the main thread may wait for a write that will never be


def leave_on_signals(app: App[Any]) -> None:
    """From now on SIGTERM and SIGHUP end the app as its own key does; where that hangs, the terminal is given back."""
    before = None
    if sys.stdin.isatty():
        before = termios.tcgetattr(sys.stdin.fileno())

    def give_back(code: int) -> None:
        with contextlib.suppress(OSError, termios.error):
            if before is not None:
                os.write(2, AS_IT_WAS.encode())
                termios.tcsetattr(0, termios.TCSANOW, before)
        os._exit(code)

    def leave(number: int, frame: FrameType | None) -> None:
        code = 128 + number
        timer = threading.Timer(GRACE_SECONDS, give_back, (code,))
        timer.daemon = True
        timer.start()
        if (loop := app._loop) is not None:
            loop.call_soon_threadsafe(lambda: app.exit(return_code=code))

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
