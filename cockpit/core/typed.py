"""Commands in sentences as the user can type them: by how this program was started, where it is not on PATH."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

STARTED_AS = "COCKPIT_COMMAND"
"""Set by scripts that start the cockpit, as `./run`: what was typed for them."""
NAME = "cockpit"


def program() -> str:
    """`cockpit` where that is on PATH, else what starts it: `./run`, `.venv/bin/cockpit`, `…/python -m cockpit`."""
    if shutil.which(NAME):
        return NAME
    if (started := os.environ.get(STARTED_AS, "")).isprintable() and started:
        return shlex.quote(started)
    script = Path(sys.argv[0])
    if script.parts[-2:] == (NAME, "__main__.py"):
        return f"{shlex.quote(sys.executable)} -m {NAME}"
    return shlex.quote(sys.argv[0]) if script.name == NAME else NAME


def typed(sentence: str) -> str:
    """`sentence` with its commands (`` `cockpit show RUN` ``) as they can be typed here."""
    return sentence.replace(f"`{NAME} ", f"`{program()} ")
