"""One writer at work: `python -P -m engines.writers NAME RUN ATTEMPT`, started by the engine.

It follows the run until stdin says the reason of the end, or closes: then the engine was killed. Signals to end are
left to the engine, so that what it does last is mirrored too.
"""

from __future__ import annotations

import select
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engines.basics import yaml12
from engines.basics.reading import read_text
from engines.contract.rundir import RunDirectory
from engines.writers.attempt_log import AttemptLog
from engines.writers.writer import Beginning, Writer

POLL_SECONDS = 1.0


def _writer(name: str) -> Writer:
    if name == "wandb":
        from engines.writers.wandb import WandbWriter

        return WandbWriter()
    from engines.writers.tensorboard import TensorBoardWriter

    return TensorBoardWriter()


def _end_within(seconds: float) -> str:
    """The reason of the end; empty while there is none."""
    readable, _, _ = select.select([sys.stdin], [], [], seconds)
    return (sys.stdin.readline().strip() or "failed") if readable else ""


def mirror(writer: Writer, run: RunDirectory, attempt: int) -> None:
    """Follow the attempt to its end."""
    text = read_text(run.config)
    config: Mapping[str, Any] = yaml12.read(text)[0]
    log = AttemptLog(run, attempt, config["training"]["log_every"])
    rows = list(log.poll())
    writer.start(Beginning(run, run.info, config, text, attempt, log.resumed_step))
    reason = ""
    while True:
        for step, time, values in rows:
            writer.log(step, time, values)
        writer.flush()
        if reason:
            break
        reason = _end_within(POLL_SECONDS)
        rows = list(log.poll())
    writer.close(reason)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    name, run, attempt = sys.argv[1:]
    mirror(_writer(name), RunDirectory(Path(run)), int(attempt))


if __name__ == "__main__":
    main()
