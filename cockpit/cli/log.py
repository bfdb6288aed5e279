"""What a run's engine printed, as lines that are safe to show."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence

from cockpit.cli import codes
from cockpit.cli.printing import say, show
from cockpit.core.hosts.links import as_heard, link_of
from cockpit.core.log.logfile import LogFile
from engines.basics.errors import DataError, UserError
from engines.contract.rundir import RunDirectory
from engines.runs.state import RunReader
from engines.runs.store import find_run

POLL_SECONDS = 0.2
AT_ONCE = 10_000
"""Lines that are held in memory."""


def log(arguments: Namespace) -> int:
    """Print the log of a run, with `--follow` until the run ends. Raises `UserError`, also where its host is lost."""
    if arguments.lines is not None and arguments.lines < 0:
        raise UserError(f"--lines {arguments.lines}: expected 0 or more.")
    run = _find_there(arguments.run, arguments.hosts) if arguments.hosts else find_run(arguments.run)
    reader, file, link = RunReader(run), LogFile(run.stdout), link_of(run.path)
    while file.extend():
        pass
    printed = max(0, file.count - arguments.lines) if arguments.lines is not None else 0
    while True:
        status = as_heard(link, reader.status())  # asked before the file is read: what came last is in it
        if arguments.follow and link is not None and not status.live and status.state != "stale":
            link.fetch(run.path.name)  # from there output comes after the records
        while file.extend():
            pass
        following = arguments.follow and status.live
        printed = _show(file, printed, file.count - following)  # a line that may still change is not shown yet
        if not following:
            break
        time.sleep(POLL_SECONDS)
    if arguments.follow and status.state == "stale":
        raise DataError(f"{status.detail}.")
    if not file.count:
        say(f"{run.info.id} has printed nothing")
    return codes.DONE


def _find_there(name: str, hosts: Sequence[str]) -> RunDirectory:
    """A run on another machine, its log fetched. Raises `UserError`."""
    from cockpit.cli.hosts import connected
    from cockpit.core.hosts.address import Host

    if len(hosts) > 1:
        raise UserError("log: give one --host, the machine that RUN is on.")
    [link] = connected([Host.parse(hosts[0])])
    if not link.standing.fresh:
        raise DataError(f"{link.fault}.")
    run = find_run(name, link.folder)
    link.fetch(run.path.name)
    return run


def _show(file: LogFile, first: int, stop: int) -> int:
    """Print the lines from `first` to `stop`; how many are printed now, from the beginning of the file if it is new."""
    if file.count < first:
        first = 0
    for start in range(first, stop, AT_ONCE):
        for line in file.lines(start, min(start + AT_ONCE, stop)):
            show(line)
    return max(first, stop)
