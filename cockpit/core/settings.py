"""What a person has chosen, kept between sessions: one small file in their configuration directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from engines.basics.files import make_directory, replace_bytes
from engines.basics.reading import read_json
from engines.host.preferences import settings_path as settings_path


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every choice that outlives a session. A new one is a field with a default here."""

    theme: str = "cockpit-dark"
    ascii: bool = False
    keys: dict[str, str] = {}
    """Other keys for bindings, by the binding's id: `{"run.stop": "f8"}`."""
    runs_sort: str = ""
    """Column by which the list of runs is ordered, with a leading `-` for descending; empty: newest first."""
    table_columns: dict[str, list[str]] = {}
    """Columns of the epoch table by project, where a person has chosen them."""
    compare_columns: dict[str, list[str]] = {}
    """Values that Compare shows, by project (`one+other` of several), where a person has chosen them."""
    hosts: list[str] = []
    """Other machines whose runs are listed too: `user@box` or `user@box:FOLDER`."""
    notify: str = ""
    """How an alert is sent beyond the screen: `bell`, `osc9` (a notice of the terminal's), or an address that the
    run's supervisor posts it to, with or without a cockpit; empty: not at all."""


class SettingsFile:
    """The settings in force. Two cockpits may be open: each change is made to what the file holds then."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem = ""
        """Why the file could not be read or written: a sentence for the person; empty while all is well."""
        self.value = self._read()

    def change(self, **choices: Any) -> None:
        """Take these choices and keep them. What cannot be written holds for this session; see `problem`."""
        if self.problem:  # never overwrite what could not be understood
            self.value = msgspec.structs.replace(self.value, **choices)
            return
        self.value = msgspec.structs.replace(self._read(), **choices)
        try:
            make_directory(self.path.parent)
            replace_bytes(self.path, msgspec.json.format(msgspec.json.encode(self.value), indent=2) + b"\n")
        except OSError as error:
            self.problem = f"{self.path} cannot be written ({error.strerror}); choices last for this session only."

    def _read(self) -> Settings:
        try:
            return read_json(self.path, Settings)
        except FileNotFoundError:
            return Settings()
        except (OSError, msgspec.DecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            self.problem = (
                f"{self.path} cannot be read ({why}); fix or remove it. Defaults are used, and nothing is saved."
            )
            return Settings()
