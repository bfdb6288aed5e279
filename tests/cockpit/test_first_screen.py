"""The first screen waits for nothing that it does not show."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("numpy", "pydantic", "plotext", "torch", "textual_serve", "aiohttp")


def test_the_list_of_runs_comes_without_what_only_later_screens_need() -> None:
    program = f"import sys, cockpit.app; print(*(name for name in {HEAVY} if name in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []
