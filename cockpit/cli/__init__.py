"""The `cockpit` command: everything the screens do, without a screen.

`arguments` is what can be typed, `codes` what comes back; each other module holds the commands of one group and imports
what they need, so that a command waits for nothing it does not use.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from cockpit.cli import codes
from cockpit.cli.arguments import parse


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give the exit code. A person's mistake is a sentence on stderr, never a traceback."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        arguments = parse(sys.argv[1:] if argv is None else argv)
        module, _, name = arguments.command.partition(":")
        command: Callable[[Any], int] = getattr(importlib.import_module(f"cockpit.cli.{module}"), name)
        return _guarded(command, arguments)
    except KeyboardInterrupt:
        return codes.INTERRUPTED
    except BrokenPipeError:
        # whoever read has seen enough; nothing more may be written, not even by the interpreter's last flush
        with contextlib.suppress(OSError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
        return codes.DONE


def _open_what_is_closed() -> None:
    """Where a shell closed standard streams (`2>&-`) the work is done all the same, and what is said goes nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, os.O_RDWR), mode))  # noqa: SIM115  it stays open


def _guarded(command: Callable[[Any], int], arguments: Any) -> int:
    from cockpit.cli.printing import say
    from cockpit.core.failures import sentence
    from engines.basics.errors import UserError

    try:
        code = command(arguments)
        sys.stdout.flush()
        return code
    except UserError as error:
        sys.stdout.flush()
        for line in str(error).splitlines():
            say(line)
        return error.exit_code
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk, a vanished directory: facts about the machine, not about this program
        say(sentence(error))
        return codes.FAILED
