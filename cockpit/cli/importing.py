"""Making runs of logs that other programs wrote."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from cockpit.cli import codes
from cockpit.cli.printing import say, show
from cockpit.core.foreign.importing import import_log
from cockpit.core.foreign.logs import Logs
from engines.basics.errors import DataError


def import_(arguments: Namespace) -> int:
    """Print the id of each run made; a log that makes none is told, and does not keep the others from it."""
    code = codes.DONE
    for source in Logs([Path(path) for path in arguments.paths]).sources:
        try:
            run = import_log(source, arguments.name)
        except DataError as error:
            say(str(error))
            code = codes.FAILED
            continue
        show(run.path.name)
        for problem in source.problems():
            say(f"{source.title}: {problem}")
    return code
