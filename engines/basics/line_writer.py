"""Writing append-only logs of one JSON object a line: a writer that survives torn lines and never waits for a reader.

Standard library only: it is sent to other machines too (`cockpit.core.hosts`).
"""

from __future__ import annotations

import errno
import os
import weakref
from pathlib import Path

from engines.basics.files import FILE_MODE


class LineWriter:
    """Appends whole lines with one `write` each. A torn last line is ended first, so it damages nothing but itself.

    Raises OSError for a file that cannot be written, and for a link.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, FILE_MODE)
        self._close = weakref.finalize(self, os.close, self._file)  # a forgotten writer keeps no file open
        size = os.fstat(self._file).st_size
        self._torn = size > 0 and os.pread(self._file, 1, size - 1) != b"\n"

    def append(self, line: bytes, *, durable: bool = False) -> None:
        """Append `line` (without newline); `durable` waits until it would survive a power cut. Raises OSError."""
        data = (b"\n" if self._torn else b"") + line + b"\n"
        if (written := os.write(self._file, data)) < len(data):  # what a full disk may take of a line
            self._torn = self._torn or written > 0
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        self._torn = False
        if durable:
            os.fsync(self._file)

    def close(self) -> None:
        self._close()


def append_line(path: Path, *lines: bytes) -> None:
    """Append durable lines to `path`, all with one write, for writers that come and go. Raises OSError."""
    writer = LineWriter(path)
    try:
        writer.append(b"\n".join(lines), durable=True)
    finally:
        writer.close()
