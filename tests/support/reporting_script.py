"""A script of somebody else that reports by the three lines, as a process with a child of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engines.contract.rundir import RunDirectory

SCRIPT = """
import signal, subprocess, sys, time
if {deaf}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)
from engines.report import Reporter
child = subprocess.Popen(["sleep", "600"])
with Reporter("theirs", total_epochs=3) as report:
    print(report.path, flush=True)
    step = 0
    while True:
        report.log(step=step, loss=1 / (1 + step))
        step += 1
        time.sleep(0.02)
"""


@contextmanager
def reporting_script(folder: Path, *, deaf: bool = False) -> Iterator[tuple[subprocess.Popen[str], RunDirectory]]:
    """The live process and its run, in `$COCKPIT_RUNS`; `deaf` to every signal that can be ignored. It never ends."""
    file = folder / "their_train.py"
    file.write_text(SCRIPT.format(deaf=deaf))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, str(file)], env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, RunDirectory(Path(process.stdout.readline().strip()))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
