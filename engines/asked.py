"""`python -P -m engines.asked PID MODULE arguments…`: run a module for process PID, which waits for its answer.

Whoever asks may be ended by a signal or a closed terminal, with no time to take back what it asked: then the module and
all it has started end too. Also of a module that has answered nothing is left. Torch-free.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from engines.supervisor import processes

GRACE_SECONDS = 30.0
"""For a try to finish its step and clean up after itself; nobody waits any more."""
HEARD = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)
"""SIGINT goes to the whole session: the module has heard it itself."""


def main() -> int:
    """The module's exit code; of one that died by a signal, or is ended with its asker, 128 and the signal's number."""
    asker, module, *arguments = sys.argv[1:]
    processes.become_subreaper()
    processes.die_with_parent(int(asker), signal.SIGTERM)()
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    answering = subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        env={**processes.ENVIRONMENT, **os.environ},
        preexec_fn=processes.die_with_parent(os.getpid()),  # noqa: PLW1509  (one thread)
    )
    code = _wait(answering.pid)
    processes.end_descendants(GRACE_SECONDS)
    return code if code >= 0 else 128 - code


def _wait(pid: int) -> int:
    while True:
        if (status := processes.reap().get(pid)) is not None:
            return os.waitstatus_to_exitcode(status)
        if signal.sigwait(HEARD) == signal.SIGTERM:
            return -signal.SIGTERM


if __name__ == "__main__":
    sys.exit(main())
