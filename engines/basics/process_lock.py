"""The lock of a run on a volume without record locks: a file beside it that names the holder's process.

A process is distinguished from a later one with the same id by its start time and the boot. It guards a run among the
processes of one machine; a record of another boot, as of a pod that is gone, holds nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from engines.basics.files import FILE_MODE, temporary_name

NO_RECORD_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
"""What a volume answers that has none."""
_PROCESSES = Path("/proc")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def acquire(path: Path) -> bool:
    """Take the lock at `path` for this process; False when a live process holds it. Raises OSError."""
    record = _record(path)
    own = temporary_name(record)
    with open(own, "x", opener=lambda name, flags: os.open(name, flags, FILE_MODE)) as file:
        file.write(" ".join(_mark(os.getpid())))
    try:
        while True:
            if holder(path) is not None:
                return False
            _remove_dead(record)
            with contextlib.suppress(FileExistsError):  # another process was faster: look whether it lives
                os.link(own, record)
                return True
    finally:
        own.unlink()


def holder(path: Path) -> int | None:
    """Process id of the live process of this machine that holds the lock at `path`; None where there is none."""
    return _live_process(_record(path))


def _live_process(record: Path) -> int | None:
    try:
        parts = record.read_text(errors="replace")[:200].split()
    except OSError:
        return None
    if len(parts) != 3 or not parts[0].isdecimal():
        return None
    return int(parts[0]) if _mark(int(parts[0])) == parts else None


def release(path: Path) -> None:
    """Give up the lock that this process holds."""
    with contextlib.suppress(FileNotFoundError):
        _record(path).unlink()


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.process")


def _remove_dead(record: Path) -> None:
    """Take away the record of a process that is gone; of two that find it at once each removes the same one.

    It is renamed first: what somebody else has put there meanwhile is put back.
    """
    aside = temporary_name(record)
    with contextlib.suppress(FileNotFoundError):
        os.rename(record, aside)
        lives = _live_process(aside) is not None
        if lives:
            with contextlib.suppress(FileExistsError):
                os.link(aside, record)
        aside.unlink()


def _mark(pid: int) -> list[str]:
    """Id, start time in ticks since the boot (proc(5), field 22 of stat), and the boot."""
    try:
        stat = (_PROCESSES / str(pid) / "stat").read_text(errors="replace")
        return [str(pid), stat.rpartition(")")[2].split()[19], _BOOT.read_text().strip()]
    except (OSError, IndexError):
        return [str(pid), "gone", ""]
