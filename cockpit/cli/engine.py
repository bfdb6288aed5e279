"""Short questions to the torch side: a process that prints one JSON document and leaves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from cockpit.cli.printing import StatusLine
from engines.contract.errors import UserError

LOG_LINES = 20


def ask_engine(module: str, arguments: Sequence[str], *, doing: str) -> Any:
    """What `python -P -m module` prints. Raises `UserError` with the sentences it wrote instead, and its exit code.

    `doing` is shown on a terminal while it works, which may take a minute. In a session of its own: Ctrl-C is for
    this process, which takes the other with it.
    """
    command = [sys.executable, "-P", "-m", module, *arguments]
    line = StatusLine()
    line.show(doing)
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, start_new_session=True, check=False
        )
    finally:
        line.clear()
    errors = answer.stderr.decode("utf-8", "replace").splitlines()
    if answer.returncode != 0:
        sentences = "\n".join(errors[-LOG_LINES:]) or f"{module} ended with exit code {answer.returncode}."
        raise UserError(sentences, exit_code=answer.returncode if answer.returncode in (1, 2) else 1)
    try:
        return msgspec.json.decode(answer.stdout)
    except msgspec.DecodeError as error:
        raise UserError(f"{module} printed something else than JSON ({error}).", exit_code=1) from None
