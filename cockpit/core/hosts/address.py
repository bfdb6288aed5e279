"""Where another machine and its runs are: `user@box[:runs]` as it is typed, remembered and given to ssh."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engines.basics.errors import UserError

_WRITTEN = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9._-]*)@)?"
    r"(?P<box>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_][A-Za-z0-9._-]*)"
    r"(?::(?P<runs>.+))?"
)
_NUMBERS = re.compile(r"[0-9.]+|\[.*\]")
LONGEST = 500
"""Characters of an address."""
OPTIONS = (
    "BatchMode=yes",  # a password is never asked for under the screen
    "ConnectTimeout=10",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=2",
    "Compression=yes",
    "ClearAllForwardings=yes",
    "RemoteCommand=none",
    "ControlMaster=no",  # other connections of the user's would end with this one
)


@dataclass(frozen=True)
class Host:
    """Another machine with a runs folder."""

    destination: str
    """As ssh takes it: `user@box`, an address, or a name from `~/.ssh/config`."""
    runs: str = ""
    """Its runs folder, from the home there; empty: its COCKPIT_RUNS, else `runs`."""

    @classmethod
    def parse(cls, written: str) -> Host:
        """`user@box:runs`. Raises `UserError`, also for what ssh could take for an option."""
        found = _WRITTEN.fullmatch(written) if written.isprintable() and len(written) <= LONGEST else None
        if found is None:
            raise UserError(
                f"--host {written[:LONGEST]!r}: expected user@box or user@box:FOLDER, as ssh knows the box."
            )
        user = f"{found['user']}@" if found["user"] else ""
        return cls(user + found["box"].strip("[]"), found["runs"] or "")

    @property
    def written(self) -> str:
        """As it can be typed again."""
        user, at, box = self.destination.rpartition("@")
        box = f"[{box}]" if ":" in box else box
        return f"{user}{at}{box}:{self.runs}" if self.runs else f"{user}{at}{box}"

    @property
    def name(self) -> str:
        """What it is called on screens: the box, without user and domain."""
        box = self.destination.rpartition("@")[2]
        return box if _NUMBERS.fullmatch(box) or ":" in box else box.partition(".")[0]

    def folder(self, environment: Mapping[str, str] = os.environ) -> Path:
        """Where copies of its files are kept here: below `$XDG_CACHE_HOME/cockpit/hosts`, by default in `~/.cache`."""
        home = environment.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
        digest = hashlib.sha256(self.written.encode()).hexdigest()[:12]
        return Path(home).absolute() / "cockpit" / "hosts" / f"{self.name.replace(':', '.')[:60]}-{digest}"

    def forget(self) -> None:
        """Remove what is kept of its runs here."""
        shutil.rmtree(self.folder(), ignore_errors=True)

    def ssh(self, command: str) -> list[str]:
        """The ssh client running `command` there, without a terminal; it asks nobody anything."""
        options = (part for option in OPTIONS for part in ("-o", option))
        return ["ssh", "-T", "-a", "-x", *options, "--", self.destination, command]

    def typed(self, *command: str) -> str:
        """What the user types here to run a cockpit's command there: `ssh -t user@box 'cockpit resume amber'`."""
        runs = self.runs.removeprefix("~/") or "."  # a command begins in the home; a quoted ~ is no home
        where = f"COCKPIT_RUNS={shlex.quote(runs)} " if self.runs else ""
        return shlex.join(["ssh", "-t", self.destination, f"{where}cockpit {shlex.join(command)}"])
