"""One result of `cockpit doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """Something that was looked at."""

    name: str
    level: Level
    text: str
    """A sentence about what was found."""
    fix: str = ""
    """A command that fixes it; empty where nothing is wrong."""


def ok(name: str, text: str) -> Finding:
    return Finding(name, "ok", text)


def warn(name: str, text: str, fix: str) -> Finding:
    """It works, slower or at a risk that is named."""
    return Finding(name, "warn", text, fix)


def fail(name: str, text: str, fix: str) -> Finding:
    """A training here fails or is lost."""
    return Finding(name, "fail", text, fix)
