"""The small files of another machine's runs, kept below one folder here, so that whatever reads a run reads these too.

Nothing that the other machine says is trusted: every name is checked against what a run has, and sizes are bounded.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from cockpit.core.hosts.follower import (
    BULK,
    CHUNK,
    FOLDERS,
    KNOWN_AGAIN,
    LARGEST_GROWN,
    LARGEST_WHOLE,
    LOGS,
    WHOLE,
    is_name,
    tail_mark,
)
from engines.basics.errors import DataError
from engines.basics.files import FILE_MODE, make_directory
from engines.basics.lock import ELSEWHERE
from engines.contract.rundir import RunDirectory

MOST_RUNS = 10_000
MOST_BYTES = 4 << 30
"""Of all files of one host."""
ENTRY_BYTES = 1 << 12
"""What a file or folder takes of the disk beside its content: a host could make millions of empty ones."""
KEPT_BYTES = MOST_BYTES // 2
"""From here on curves and output are removed before a connection: those that are looked at come again."""
LONGEST_WORDS = 1 << 20
LATEST = 1 << 62
"""Nanoseconds since 1970 that any file system can keep."""


class Said(msgspec.Struct, kw_only=True):
    """One line of the other side (`follower`); which of these it has says what it is about."""

    run: str = ""
    file: str = ""
    at: int = 0
    """Where in the file its bytes belong."""
    of: int | None = None
    """Size of a file that is replaced as a whole."""
    modified: int = 0
    """When such a file was changed, in nanoseconds, by the clock there."""
    bytes: int = 0
    held: bool | None = None
    """Whether somebody holds the run's lock."""
    runs: list[str] | None = None
    """All that there are."""
    synced: bool = False
    """All that had changed was sent, but for curves and output; said after every look."""
    machine: tuple[float, float, float] | None = None
    """Cores, bytes of memory, bytes of disk."""
    problem: str | None = None
    answer: int | None = None
    why: str = ""


class Refused(DataError):
    """The other side said what no follower says."""


decoder = msgspec.json.Decoder(Said)


class Mirror:
    """The files of one host, of this process alone: a second cockpit has a second copy."""

    def __init__(self, host: Path) -> None:
        """Take the first copy below `host` that no other process has. Raises OSError."""
        self.folder, self._taken = _take_copy(host)
        self._used = 0
        self._runs: set[str] = set()
        self._arriving: tuple[Path, bytearray] | None = None
        """A file that is replaced once all of it is there."""

    def have(self) -> dict[str, dict[str, list[int]]]:
        """Of each run the files that are here: size and time, or of one that grows the mark of its end."""
        make_directory(self.folder)  # which somebody may have deleted
        self._used, self._arriving = 0, None
        found: dict[str, dict[str, list[int]]] = {}
        for run in filter(is_name, os.listdir(self.folder)):
            files: dict[str, list[int]] = {}
            for name, path in _files(self.folder / run):
                with contextlib.suppress(OSError), open(path, "rb", opener=_own) as file:
                    status = os.fstat(file.fileno())
                    size = status.st_size
                    end = os.pread(file.fileno(), KNOWN_AGAIN, max(size - KNOWN_AGAIN, 0))
                    files[name] = [size, status.st_mtime_ns if WHOLE.fullmatch(name) else tail_mark(end)]
                    self._used += size + ENTRY_BYTES
            found[run] = files
        self._runs = {*found}
        if self._used > KEPT_BYTES:
            self._remove_bulk(found)
        return found

    def _remove_bulk(self, found: dict[str, dict[str, list[int]]]) -> None:
        for run, files in found.items():
            for name in [name for name in files if BULK.fullmatch(name)]:
                (self.folder / run / name).unlink(missing_ok=True)
                self._used -= files.pop(name)[0] + ENTRY_BYTES

    def close(self) -> None:
        """Leave the copy to whoever comes next; nothing may be written after it."""
        os.close(self._taken)

    def take(self, said: Said, data: bytes) -> None:
        """Write what was said. Raises `Refused`, and OSError where it cannot be written here."""
        if said.runs is not None:
            self._take_runs(said.runs)
        if not said.run:
            return
        if not is_name(said.run):
            raise Refused(f"it names a run {said.run[:80]!r}")
        if said.run not in self._runs and len(self._runs) >= MOST_RUNS:
            raise Refused(f"it has more than {MOST_RUNS:,} runs")
        self._runs.add(said.run)
        if said.file:
            self._take_file(self._checked(said), said, data)
        if said.held is not None:
            self._take_held(self.folder / said.run, held=said.held)

    def _take_runs(self, names: list[str]) -> None:
        """Remove the runs that are no more."""
        if len(names) > MOST_RUNS:
            raise Refused(f"it has more than {MOST_RUNS:,} runs")
        if not all(map(is_name, names)):
            raise Refused("it lists runs that cannot be")
        self._runs &= {*names}
        for gone in set(os.listdir(self.folder)) - set(names):
            hidden = self.folder / f".gone-{secrets.token_hex(4)}"
            with contextlib.suppress(FileNotFoundError):  # another cockpit was faster
                os.rename(self.folder / gone, hidden)
            shutil.rmtree(hidden, ignore_errors=True)

    def _take_held(self, run: Path, *, held: bool) -> None:
        marker = RunDirectory(run).lock.with_name(ELSEWHERE)
        if held:
            make_directory(run)
            os.close(os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE))
        else:
            marker.unlink(missing_ok=True)

    def _checked(self, said: Said) -> Path:
        """Where its bytes belong."""
        whole, name = said.of is not None, said.file
        if not (WHOLE.fullmatch(name) if whole else LOGS.fullmatch(name) or BULK.fullmatch(name)):
            raise Refused(f"it sends a file {name[:80]!r}")
        end = said.at + said.bytes
        most = LARGEST_WHOLE if said.of is not None else LARGEST_GROWN
        if said.at < 0 or end > most or end > (said.of or end) or not 0 <= said.modified < LATEST:
            raise Refused(f"it sends too much of {name}")
        path = self.folder / said.run / name
        self._used += said.bytes + ENTRY_BYTES * (not path.exists())
        if self._used > MOST_BYTES:
            raise Refused("it sends more than 4 GiB")
        make_directory(path.parent)
        return path

    def _take_file(self, path: Path, said: Said, data: bytes) -> None:
        if said.of is not None:
            self._take_part(path, said, data)
        elif said.at == 0:
            _replace(path, data)
        else:
            file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.fstat(file).st_size < said.at:
                    raise Refused(f"{said.file} has a gap")
                os.pwrite(file, data, said.at)
            finally:
                os.close(file)

    def _take_part(self, path: Path, said: Said, data: bytes) -> None:
        """Of a file that is replaced at once when its last part is there."""
        if said.at == 0:
            self._arriving = path, bytearray()
        if self._arriving is None or self._arriving[0] != path or len(self._arriving[1]) != said.at:
            raise Refused(f"{said.file} has a gap")
        content = self._arriving[1]
        content += data
        if len(content) == said.of:
            self._arriving = None
            _replace(path, bytes(content), said.modified)


def _take_copy(host: Path) -> tuple[Path, int]:
    """The folder of a copy, and the open directory whose lock ends with the process."""
    for number in itertools.count(1):
        folder = host / str(number)
        make_directory(folder)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return folder, handle
        os.close(handle)
    raise AssertionError("there is no last number")


def _files(run: Path) -> Iterator[tuple[str, Path]]:
    for below in FOLDERS:
        with contextlib.suppress(OSError):
            for entry in os.listdir(run / below):
                name = f"{below}/{entry}" if below else entry
                if any(kind.fullmatch(name) for kind in (WHOLE, LOGS, BULK)):
                    yield name, run / name


def _own(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _replace(path: Path, content: bytes, modified: int | None = None) -> None:
    """As `files.replace_bytes`, but not durable: all of it can be fetched again."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, FILE_MODE)) as file:
        file.write(content)
    if modified is not None:
        os.utime(temporary, ns=(modified, modified))
    os.replace(temporary, path)


class Frames:
    """Takes the bytes of a connection apart into lines and what follows them."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._said: Said | None = None

    def feed(self, data: bytes) -> Iterator[tuple[Said, bytes]]:
        """What is complete now. Raises `Refused`."""
        self._buffer += data
        while True:
            if self._said is None:
                end = self._buffer.find(b"\n")
                if max(end, len(self._buffer) if end < 0 else 0) > LONGEST_WORDS:
                    raise Refused("it sends a line without end")
                if end < 0:
                    return
                self._said = _decoded(bytes(self._buffer[:end]))
                del self._buffer[: end + 1]
            if len(self._buffer) < self._said.bytes:
                return
            said, self._said = self._said, None
            content = bytes(self._buffer[: said.bytes])
            del self._buffer[: said.bytes]
            yield said, content


def _decoded(line: bytes) -> Said:
    try:
        said = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Refused("it sends what is no record") from None
    if not 0 <= said.bytes <= CHUNK:
        raise Refused("it sends too much at once")
    return said
