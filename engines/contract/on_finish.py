"""Commands of a config that run on this machine when a run is over: `cost.on_finish` and those beside it, in words.

A command in a config runs on the machine, so it is shown before anything starts. `engines.supervisor.on_finish`
carries them out.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engines.basics import yaml12
from engines.basics.errors import DataError
from engines.basics.reading import read_text
from engines.contract.rundir import RunDirectory

Command = str | list[str]
"""Text for the shell, or the words of a command."""
ON_FINISH, ON_ERROR, ON_STALL, ON_IDLE, COPY_FIRST = "on_finish", "on_error", "on_stall", "on_idle", "copy_first"
WHEN = {
    ON_FINISH: "when the run ends and nothing else runs here, this runs",
    ON_ERROR: "when the run fails and nothing else runs here, this runs",
    ON_STALL: "when the run hangs, it is stopped, and if nothing else runs here, this runs",
    ON_IDLE: "{minutes:g} minutes after the run has ended, if nothing runs here and nobody types, this runs",
}
"""Settings of `cost` that are such a command, and when they run, in words."""
IDLE_MINUTES = 30.0
POD = {"stop-pod": "stop", "remove-pod": "remove"}
"""Words for what `runpodctl` does with the pod that this is."""
_FIRST_PROCESS = Path("/proc/1/environ")
"""Of a pod: it knows which one it is, where a login over SSH may not."""


def fault(value: Any) -> str:
    """Why it can be no command; empty where it can."""
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return f"expected a command, as text for the shell or as a list of words, got {value!r}"
    if not words or not words[0].strip() or any("\0" in word for word in words):
        return "expected a command, got none; null means none"
    return ""


def command_in(config: Any, name: str = ON_FINISH) -> Command | None:
    """The command of a config's tree; None where there is none, or nothing that can be one."""
    value = yaml12.find(config, "cost", name)
    return None if value is None or fault(value) else value


def commands_in(config: Any) -> dict[str, Command]:
    """All of them, by the names of their settings; none where only `copy_first` is there."""
    found = {name: command for name in WHEN if (command := command_in(config, name)) is not None}
    if found and (first := command_in(config, COPY_FIRST)) is not None:
        found[COPY_FIRST] = first
    return found


def idle_minutes(config: Any) -> float:
    """Minutes without work and typing before `on_idle` runs."""
    value = yaml12.find(config, "cost", "idle_minutes")
    return float(value) if isinstance(value, int | float) and value > 0 else IDLE_MINUTES


def words(command: Command) -> str:
    """As one line for the user; `stop-pod` with what it means on this machine."""
    if isinstance(command, str) and command.strip() in POD:
        try:
            return f"{command.strip()} ({shlex.join(resolved(command))})"
        except DataError as error:
            return f"{command.strip()} (which fails here: {error})"
    return " ".join((command if isinstance(command, str) else shlex.join(command)).split())


def resolved(command: Command, environment: Mapping[str, str] = os.environ) -> list[str]:
    """The words to start a process with. Raises `DataError` where `stop-pod` cannot work on this machine."""
    if not isinstance(command, str):
        return command
    if (verb := POD.get(command.strip())) is None:
        return ["/bin/sh", "-c", command]
    if (program := shutil.which("runpodctl", path=environment.get("PATH"))) is None:
        raise DataError("runpodctl is not installed")
    if not (pod := pod_id(environment)):
        raise DataError("RUNPOD_POD_ID is not set")
    return [program, verb, "pod", pod]


def pod_id(environment: Mapping[str, str] = os.environ, first: Path = _FIRST_PROCESS) -> str:
    """The id of the pod that this machine is; empty where it is none."""
    if pod := environment.get("RUNPOD_POD_ID"):
        return pod
    try:
        entries = first.read_bytes().split(b"\0")
    except OSError:
        return ""
    found = (entry.removeprefix(b"RUNPOD_POD_ID=") for entry in entries if entry.startswith(b"RUNPOD_POD_ID="))
    return next(found, b"").decode(errors="replace")


def sentences(config: Any) -> list[str]:
    """What the user should know before a run with this config's tree starts, a sentence per command."""
    commands = commands_in(config)
    found = [
        f"{WHEN[name].format(minutes=idle_minutes(config))}: {words(commands[name])}"
        for name in WHEN
        if name in commands
    ]
    if COPY_FIRST in commands:
        found.append(f"before that, this must succeed: {words(commands[COPY_FIRST])}")
    return found


def sentences_of(run: RunDirectory) -> list[str]:
    """The same of a run that has not started yet."""
    return sentences(tree_of(run.config))


def tree_of(path: Path) -> Any:
    """The tree of a config file; None for one that cannot be read, which whatever reads it next reports."""
    try:
        return yaml12.read(read_text(path))[0]
    except (OSError, ValueError):
        return None
