"""Reporter: three lines in any script write a run that the cockpit shows live.

    from engines.report import Reporter

    with Reporter("my-model", total_epochs=20) as report:
        for step, batch in enumerate(batches):
            report.log(step=step, loss=loss, lr=lr)          # gathered, and written twice a second at most
        report.epoch(1, score=accuracy, val_loss=val_loss)   # a row of the table; a higher score is better

The script holds the run's lock itself, so that its death is noticed: a run left by an exception is failed, one whose
script was killed is lost. A thread tells what goes wrong, as it does for our own trainings (docs/alerts.md).
Torch-free; what is logged may be anything that `float` takes.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self

from engines.basics import yaml12
from engines.basics.errors import DataError, UserError
from engines.reporter.run import ReportedRun
from engines.runs.store import create_run

Parameters = ParamSpec("Parameters")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.]+")


def _harmless(
    method: Callable[Concatenate[Reporter, Parameters], None],
) -> Callable[Concatenate[Reporter, Parameters], None]:
    """Do nothing in a forked child or after the end, one thing at a time, and let no fault into the training."""

    @functools.wraps(method)
    def guarded(reporter: Reporter, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        if os.getpid() != reporter._pid:  # asked before the lock, which a fork may have caught held
            return
        with reporter._guard:
            if reporter._open:
                try:
                    method(reporter, *args, **kwargs)
                except OSError as error:
                    reporter._warn(f"{reporter.path} cannot be written: {error.strerror or error}")
                except Exception as error:
                    reporter._warn(f"{type(error).__name__}: {error}")

    return guarded


class Reporter:
    """One run of a script. Use it as a context manager, so that its end is on record.

    After the start nothing here raises: a full disk, or a value that is no number, is reported once on stderr. Threads
    may share it; in a forked child, such as a data loader's worker, it does nothing. Of several ranks one reports.
    """

    def __init__(self, name: str, *, total_epochs: int = 0, label: str = "") -> None:
        """Make the run directory in `$COCKPIT_RUNS`, else `./runs`. Raises `UserError`."""
        project = _UNSAFE.sub("-", name).strip("-.")
        if not project:
            raise UserError(f"A run name needs letters or digits, got {name!r}.")
        directory = create_run(
            project, yaml12.write({"project": project}), kind="training", engine="",
            title=f"reported by {Path(sys.argv[0]).name or 'python'}", label=label,
        )  # fmt: skip
        try:
            self._run = ReportedRun(directory, total_epochs=total_epochs)
        except OSError as error:
            raise DataError(f"The run {directory.path} cannot be written: {error.strerror or error}.") from None
        self.path = directory.path
        self._pid = os.getpid()
        self._guard = threading.RLock()
        self._open = True
        self._warned: set[str] = set()

    @property
    def stop_requested(self) -> bool:
        """Whether `cockpit stop` asked the run to end. Nothing ends a script but itself: look at this in the loop."""
        self._look()
        return self._run.stop_requested

    @_harmless
    def _look(self) -> None:
        self._run.look()

    @_harmless
    def log(
        self, values: Mapping[str, Any] | None = None, /, *, step: float | None = None, epoch: float | None = None,
        **more: Any,
    ) -> None:  # fmt: skip
        """Numbers of one step by name, in `values` those whose names are no Python words.

        `step` counts from 0 and by itself where it is not given; a step may be logged in several calls.
        """
        self._run.log(step, epoch, self._numbers({**(values or {}), **more}))

    @_harmless
    def epoch(
        self, number: int, values: Mapping[str, Any] | None = None, /, *, score: float | None = None, **more: Any
    ) -> None:
        """Row `number` (from 1) of the table. Names with `val`, `eval` or `test` in them are of validation.

        The first row's names are the table's columns.
        """
        self._run.end_epoch(
            int(number), None if score is None else float(score), self._numbers({**(values or {}), **more})
        )

    @_harmless
    def close(self, *, failed: str = "", stopped: str = "") -> None:
        """Write what is left, and how the run ended; leaving the `with` block does it."""
        self._open = False
        if failed:
            self._run.end("failed", failed)
        elif stopped or self._run.stop_requested:
            self._run.end("stopped", stopped or "stopped on request")
        else:
            self._run.end("finished", "")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None or (isinstance(error, SystemExit) and not error.code):
            self.close()
        elif isinstance(error, KeyboardInterrupt):
            self.close(stopped="interrupted")
        else:
            self.close(failed=f"{type(error).__name__}: {error}")

    def _numbers(self, values: Mapping[str, Any]) -> dict[str, float]:
        found = {}
        for name, value in values.items():
            try:
                found[str(name)] = float(value)
            except Exception:  # whatever a third party's type makes of it
                self._warn(f"{name} is ignored: {type(value).__name__} is not a number")
        return found

    def _warn(self, text: str) -> None:
        """Each thing once, on stderr if there is one."""
        if text not in self._warned:
            self._warned.add(text)
            with contextlib.suppress(Exception):
                print(f"cockpit reporter: {text}", file=sys.stderr, flush=True)
