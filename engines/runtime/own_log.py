"""What an engine prints goes to its log, and a full disk that takes no more of it ends no engine: those lines are lost.

What counts is in the events and metrics, which wait for room.
"""

from __future__ import annotations

import io
import sys
from typing import Any

from engines.runtime.room import is_full


class _Log(io.FileIO):
    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if not is_full(error):
                raise
            return len(data)


def let_full_disks_be() -> None:
    """From now on, of all that this process prints."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        log = _Log(descriptor, "wb", closefd=False)
        text = io.TextIOWrapper(log, "utf-8", "backslashreplace", line_buffering=True, write_through=True)
        setattr(sys, name, text)
