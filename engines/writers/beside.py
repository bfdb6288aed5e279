"""The writers of an attempt as the engine has them: started beside it, given its end, never waited for in between."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from engines.basics.files import FILE_MODE
from engines.basics.jsonl import last_lines
from engines.contract.events import Alert, EventWriter
from engines.contract.rundir import RunDirectory
from engines.writers import why_not

END_SECONDS = 10.0
"""How long an ended training waits for its writers to write the rest."""


class WritersBeside:
    """Use as a context around the training; set `reason` to how it ended. Raises nothing."""

    def __init__(self, run: RunDirectory, names: Sequence[str], events: EventWriter) -> None:
        self.reason = "failed"
        self._run, self._events = run, events
        self._names = list(dict.fromkeys(names))
        self._late: set[str] = set()
        self._beside: list[tuple[str, subprocess.Popen[bytes], threading.Thread]] = []

    def __enter__(self) -> WritersBeside:
        for name in self._names:
            if sentence := why_not(name):
                self._warn(name, sentence)
                continue
            try:
                self._start(name)
            except OSError as error:
                self._warn(name, f"the writer {name} did not start: {error.strerror or error}")
        return self

    def __exit__(self, *exception: object) -> None:
        for _, process, _ in self._beside:
            assert process.stdin is not None
            with contextlib.suppress(OSError):  # it is gone, and was reported
                process.stdin.write(f"{self.reason}\n".encode())
                process.stdin.close()
        deadline = time.monotonic() + END_SECONDS
        for name, process, watch in self._beside:
            watch.join(max(0.0, deadline - time.monotonic()))
            if watch.is_alive():
                self._late.add(name)
                process.kill()
                watch.join()

    def _start(self, name: str) -> None:
        path = self._run.stdout.with_name(f"{name}.log")
        path.touch(FILE_MODE)
        command = [sys.executable, "-P", "-m", "engines.writers", name, str(self._run.path), str(self._events.attempt)]
        with open(path, "wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        watch = threading.Thread(target=self._watch, args=(name, process), name=f"writer {name}", daemon=True)
        self._beside.append((name, process, watch))
        watch.start()

    def _watch(self, name: str, process: subprocess.Popen[bytes]) -> None:
        """Tell of the writer's end, once, if it was not a good one."""
        code = process.wait()
        log = self._run.stdout.with_name(f"{name}.log")
        if name in self._late:
            self._warn(name, f"the writer {name} was stopped: it was still writing {END_SECONDS:.0f} s after the end")
        elif code < 0:
            self._warn(name, f"the writer {name} was killed by signal {-code}; training is not affected")
        elif code:
            reason = " ".join(last_lines(log, 1)) or f"exit code {code}"
            self._warn(
                name, f"the writer {name} failed: {reason[:200]} (more in logs/{log.name}); training is not affected"
            )

    def _warn(self, name: str, text: str) -> None:
        with contextlib.suppress(OSError):
            self._events.write(Alert(code=f"writer-{name}", level="warning", text=text))
