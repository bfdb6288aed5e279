"""One engine a run directory: a POSIX record lock, asked about without being taken.

Record locks, not flock: a flock lives on in forked workers. They end when the holder closes *any* descriptor of the
file, so the holder opens it once. On a volume without record locks the holder is recorded by its process instead
(`process_lock`).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from engines.basics import process_lock
from engines.basics.files import FILE_MODE

ELSEWHERE = "engine.lock.elsewhere"
"""Lies in the copy of a run that another machine has, in place of its lock, while that is held there."""
_OWN = os.O_NOFOLLOW | os.O_NONBLOCK
_FLOCK = "hhqqi"  # l_type, l_whence, l_start, l_len, l_pid: `struct flock` on 64-bit Linux


class RunLock:
    """Held by the supervisor from before the engine starts until nothing of it is left."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self.by_process = False
        """The volume has no record locks: held by the process's id and start time."""

    def acquire(self) -> bool:
        """Take the lock; False when another process holds it. Raises OSError for an unusable directory, or a link."""
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | _OWN, FILE_MODE)
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            if error.errno not in process_lock.NO_RECORD_LOCKS:
                raise
            self.by_process = process_lock.acquire(self._path)
            return self.by_process
        return True

    def release(self) -> None:
        if self.by_process:
            process_lock.release(self._path)
            self.by_process = False
        if self._file is not None:
            os.close(self._file)
            self._file = None


def lock_holder(path: Path) -> int | None:
    """Process id of the holder of the lock at `path`, None when it is free. Never to be called by the holder.

    -1 for a holder on another machine. A link is no lock, nor is a file with a second name, a pipe or a device: its
    holder may hold something else.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | _OWN)
    except FileNotFoundError:
        return -1 if path.with_name(ELSEWHERE).exists() else None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return None
        raise
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return None
        question = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, question))
        return None if kind == fcntl.F_UNLCK else pid
    except OSError as error:
        if error.errno in process_lock.NO_RECORD_LOCKS:
            return process_lock.holder(path)
        raise
    finally:
        os.close(file)


@contextlib.contextmanager
def alone_with(folder: Path, seconds: float = 10.0, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """No other process changes the small records of `folder` inside the `with`, so none of them is lost.

    An flock of the folder itself: nothing is left in it. Raises OSError where it cannot be opened, TimeoutError where
    another process holds it for more than `seconds`. `waiting` is called again and again until then, and may raise.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    deadline = time.monotonic() + seconds
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(errno.ETIMEDOUT, "another process holds it", str(folder)) from None
                waiting()
                time.sleep(0.005)
        yield
    finally:
        os.close(handle)
