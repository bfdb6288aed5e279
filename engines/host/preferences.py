"""Where what a person has chosen for themselves lies: read by the cockpit, and by supervisors for where to post."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

ADDRESS = ("https://", "http://")
"""Begins a choice of `notify` that supervisors post to."""


def settings_path(environment: Mapping[str, str] = os.environ) -> Path:
    """`$XDG_CONFIG_HOME/cockpit/settings.json`, by default below `~/.config`."""
    home = environment.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(home) / "cockpit" / "settings.json"
