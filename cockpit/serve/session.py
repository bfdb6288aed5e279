"""`python -m cockpit.serve.session SERVER`: the cockpit of one browser page, which ends when the server does."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Show the cockpit over the pipes that process `SERVER` holds.

    A server that is killed closes the pipes, which Textual's web driver takes for a silent keyboard: without the
    signal, the session would stay for ever.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != int(sys.argv[1]):
        return 0  # gone before it could be asked for the signal
    from cockpit.app import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
