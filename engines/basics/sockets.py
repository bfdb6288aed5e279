"""Unix sockets in folders of any depth: an address may have 107 bytes, a run's path more."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from engines.basics.errors import DataError

LONGEST_ADDRESS = 107 if sys.platform == "linux" else 103


@contextlib.contextmanager
def short_address(folder: Path, name: str) -> Iterator[str]:
    """An address of the socket `name` in `folder` that is short enough, good inside the `with`.

    On Linux a long one leads through the descriptor of the folder. Elsewhere raises `DataError` for a path that is too
    long. Raises OSError for a folder that cannot be opened.
    """
    path = folder / name
    if len(os.fsencode(path)) <= LONGEST_ADDRESS:
        yield str(path)
        return
    if sys.platform != "linux":
        raise DataError(
            f"{path}: a socket's path may have {LONGEST_ADDRESS} bytes on this system; set COCKPIT_RUNS to a "
            "shorter folder."
        )
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}/{name}"
    finally:
        os.close(handle)
