"""`cost.on_finish` in words: a command in a config runs on the machine, so that it is told before anything starts.

`engines.supervisor.on_finish` carries it out.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from engines.basics import yaml12
from engines.basics.reading import read_text
from engines.contract.rundir import RunDirectory

Command = str | list[str]
"""Text for the shell, or the words of a command."""


def fault(value: Any) -> str:
    """Why it can be no command; empty where it can."""
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return f"expected a command, as text for the shell or as a list of words, got {value!r}"
    if not words or not words[0].strip() or any("\0" in word for word in words):
        return "expected a command, got none; null means none"
    return ""


def command_in(config: Any) -> Command | None:
    """The command of a config's tree; None where there is none, or nothing that can be one."""
    value = yaml12.find(config, "cost", "on_finish")
    return None if value is None or fault(value) else value


def words(command: Command) -> str:
    """As one line for a person."""
    return " ".join((command if isinstance(command, str) else shlex.join(command)).split())


def told(config: Any) -> list[str]:
    """What a person is to know before a run with this config's tree starts."""
    command = command_in(config)
    return [] if command is None else [f"when the run ends and nothing else runs here, this runs: {words(command)}"]


def told_of(run: RunDirectory) -> list[str]:
    """The same of a run that has not started yet."""
    return told(_tree(run.config))


def _tree(path: Path) -> Any:
    try:
        return yaml12.read(read_text(path))[0]
    except (OSError, ValueError):
        return None
