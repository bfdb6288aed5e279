"""Places in the queue of a device: files in a host-local folder, each held by a record lock of its supervisor.

No daemon: `queue/<boot id>/<device>/<number>.waiting` or `.running`. A waiting place may run when it is the first of
those that wait and its share of the device is free (a whole one, unless its config says less); a run that was started
without the queue takes a running place at once, so that those who wait do wait for it. The lock of a dead supervisor is
gone: its place is passed over and removed.

Whoever looks or changes anything holds the folder's own flock. A supervisor must never open its own place again, since
closing *any* descriptor of it ends the lock, and only while nobody renames can it tell which place that is.

The folder is `$COCKPIT_QUEUE`, else `/tmp/cockpit-<uid>`: not $XDG_RUNTIME_DIR, which goes with the last login while
runs go on. The boot id keeps hosts apart where such a folder is shared after all.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from engines.basics import files
from engines.basics.errors import DataError, UserError
from engines.basics.lock import lock_holder
from engines.basics.reading import read_json
from engines.host.facts import boot_id

Where = Literal["first", "up", "down", "last"]
BUSY_SECONDS = 5.0
ROUNDING = 1e-9
"""Three shares of a third are a whole."""
_PLACE = re.compile(r"(\d{12})\.(waiting|running)")
_STANDING = re.compile(r"(\d+)(?:st|nd|rd|th) for (\S+?)(?:, (?:after|behind) \S+)?")


class Busy(DataError):
    """Somebody else holds the queue for longer than a look takes."""


class Holder(msgspec.Struct, frozen=True):
    """What a place file says: whose it is."""

    id: str = ""
    run: str = ""
    """The run directory."""
    share: float = 1.0
    """Of the device that it takes."""


@dataclass(frozen=True)
class QueuePlace:
    """A live place as it stands now."""

    device: str
    number: int
    """From 1 among those that wait; 0 for one that runs."""
    run: Path
    id: str

    @property
    def word(self) -> str:
        """The run's word, `amber`."""
        return self.id.rsplit("-", 1)[-1]


def standing(number: int, device: str, before: str) -> str:
    """`2nd for cuda:0, after amber`: the position that a waiting run shows, `before` the word of the run ahead."""
    return f"{ordinal(number)} for {device}" + (f", after {before}" if before else "")


def parse_standing(words: str) -> tuple[str, int] | None:
    """Device and number of what `standing` said; None for anything else."""
    match = _STANDING.fullmatch(words)
    return None if match is None else (match[2], int(match[1]))


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `13th`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def queue_folder() -> Path:
    """Where the queues of this boot are. Raises `DataError` for a folder that others could change."""
    root = Path(os.environ.get("COCKPIT_QUEUE") or f"/tmp/cockpit-{os.getuid()}")
    folder = root / "queue" / boot_id()
    try:
        files.make_directory(folder)
        status = root.lstat()
    except OSError as error:
        raise DataError(
            f"{folder} cannot be created ({error.strerror}); set COCKPIT_QUEUE to a folder of your own."
        ) from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise DataError(f"{root} can be changed by other users; set COCKPIT_QUEUE to a private folder.")
    return folder


def places() -> list[QueuePlace]:
    """Every live place of every device: first what runs there, then what waits, in order. Raises `DataError`.

    Not for a process that holds a place itself.
    """
    found: list[QueuePlace] = []
    for folder in sorted(queue_folder().iterdir()):
        with _alone_with(folder):
            found += [_described(entry, number) for number, entry in _numbered(_live(folder))]
    return found


def move(run: Path, where: Where) -> QueuePlace:
    """Put a waiting run elsewhere in its queue and give its new place. Raises `UserError` for one that does not wait.

    Each step is one rename that leaves a valid order: first all that wait get new numbers in the same order, the last
    one first, with room between them; then the one moves.
    """
    path = run.resolve()  # a run with an `output.dir` of its own is listed by a link to it
    for folder in sorted(queue_folder().iterdir()):
        with _alone_with(folder):
            waiting = [entry for entry in _live(folder) if not entry.running]
            held = (Path(_holder(entry).run).resolve() == path for entry in waiting)
            at = next((place for place, is_it in enumerate(held) if is_it), None)
            if at is None:
                continue
            last = len(waiting) - 1
            target = {"first": 0, "up": max(0, at - 1), "down": min(last, at + 1), "last": last}[where]
            base = waiting[-1].number + 1
            for place in range(last, -1, -1):
                waiting[place] = waiting[place].renamed(base + 2 * place + 1)
            moved = waiting[at].renamed(base + 2 * target + (2 if target > at else 0))
            return _described(moved, target + 1)
    raise UserError(f"{run.name} is not in a queue; `cockpit queue` lists the runs that are.", exit_code=1)


class Place:
    """A supervisor's own place, from taking it until the process ends."""

    def __init__(self, device: str, run_id: str, run: Path, *, waiting: bool, share: float = 1.0) -> None:
        """Take a position after all others. Raises `DataError` or OSError where that is not possible."""
        self.device = device
        self._folder = queue_folder() / device
        self._holder = Holder(run_id, str(run), share)
        with _alone_with(self._folder):
            last = max((entry.number for entry in _live(self._folder)), default=0)
            path = _path(self._folder, last + 1, running=not waiting)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, files.FILE_MODE)
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(self._file, msgspec.json.encode(self._holder))
            self._inode = os.fstat(self._file).st_ino

    def look(self) -> tuple[int, str]:
        """This place's number from 1, and the word of the run directly before it (empty for none).

        Number 0 says that its turn has come: from then on it is a running place. Raises `Busy`, or `DataError` when
        somebody has removed the place.
        """
        with _alone_with(self._folder):
            numbered = _numbered(_live(self._folder, self._inode))
            at = next((index for index, (_, entry) in enumerate(numbered) if entry.inode == self._inode), None)
            if at is None:
                raise DataError(f"its entry in {self._folder} was removed")
            number, mine = numbered[at]
            taken = sum(_holder(entry).share for _, entry in numbered[:at] if entry.running)
            if number <= 1 and taken + self._holder.share <= 1 + ROUNDING:
                mine.renamed(mine.number, running=True)
                return 0, ""
            return number, _described(numbered[at - 1][1], 0).word

    def release(self) -> None:
        """Give the turn on before the process ends."""
        os.close(self._file)

    def keep_fresh(self) -> None:
        """Tell those who tidy /tmp that this file is in use."""
        os.utime(self._file)


@dataclass(frozen=True)
class _Entry:
    """A place file."""

    path: Path
    inode: int
    number: int
    running: bool

    def renamed(self, number: int, *, running: bool = False) -> _Entry:
        new = _path(self.path.parent, number, running=running)
        self.path.rename(new)
        return _Entry(new, self.inode, number, running)


def _path(folder: Path, number: int, *, running: bool) -> Path:
    return folder / f"{number:012d}.{'running' if running else 'waiting'}"


@contextlib.contextmanager
def _alone_with(folder: Path) -> Iterator[None]:
    """Nobody else looks at the queue in `folder` or changes it inside the `with`. Raises `Busy`."""
    files.make_directory(folder)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    deadline = time.monotonic() + BUSY_SECONDS
    try:
        while not _flocked(handle):
            if time.monotonic() > deadline:
                raise Busy(f"The queue in {folder} is locked by another process; try again.")
            time.sleep(0.005)
        yield
    finally:
        os.close(handle)


def _flocked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _live(folder: Path, own: int | None = None) -> list[_Entry]:
    """The places whose holder lives, by number; the others are removed. The one with inode `own` is not opened."""
    found = []
    for path in sorted(folder.iterdir()):
        if (match := _PLACE.fullmatch(path.name)) is None:
            continue
        inode = path.stat().st_ino
        if inode != own and lock_holder(path) is None:
            path.unlink()
            continue
        found.append(_Entry(path, inode, int(match[1]), match[2] == "running"))
    return found


def _numbered(entries: list[_Entry]) -> list[tuple[int, _Entry]]:
    """What runs, each with 0, then what waits, from 1."""
    running = [(0, entry) for entry in entries if entry.running]
    return running + list(enumerate((entry for entry in entries if not entry.running), 1))


def _described(entry: _Entry, number: int) -> QueuePlace:
    holder = _holder(entry)
    return QueuePlace(entry.path.parent.name, number, Path(holder.run), holder.id)


def _holder(entry: _Entry) -> Holder:
    try:
        return read_json(entry.path, Holder)
    except msgspec.DecodeError:  # the disk was full when it was taken: the place counts all the same
        return Holder()
