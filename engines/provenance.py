"""Which code an attempt runs: versions and the commit, for its record."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from pathlib import Path

PACKAGES = ("cockpit", "torch", "numpy", "msgspec")


def versions() -> dict[str, str]:
    """Of Python and of the packages that results depend on, without importing them."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def git_hash() -> str | None:
    """Commit of the code that runs, None outside a checkout."""
    root = Path(__file__).resolve().parent.parent
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
