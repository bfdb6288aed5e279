"""What runs on another machine: it says what lies in a runs folder as that changes, and does what it is asked.

The text of this module is sent to the python3 there. Standard library only, Python 3.8 or newer; nothing is installed,
no port is opened, and it ends with its connection. Both sides speak JSON, a line each; where a line has `bytes`, so
many bytes of the file it names follow.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from engines.basics.files import replace_bytes
from engines.basics.line_writer import append_line
from engines.basics.lock import alone_with, lock_holder
from engines.host.cgroup import cpu_limit, memory_limit

GREETING = b"cockpit follows from here\n"
"""Comes first: what a shell prints at login lies before it."""
WHOLE = re.compile(
    r"run\.json|config_resolved\.yaml|report\.json|attempts/[1-9][0-9]{0,8}(\.provenance)?\.(json|signal)"
    r"|attempts/config\.yaml|metrics/ranks\.json|metrics/(steps|system)/[0-9]{1,9}\.json"
)
"""Files that are replaced, never appended to."""
LOGS = re.compile(r"(events|commands|metrics/(train|val)_metrics)\.jsonl")
BULK = re.compile(r"metrics/(steps|system)/[0-9]{1,9}\.f64|logs/(stdout|supervisor|rank_[0-9]{1,5})\.log")
"""Files that grow, and of which the list of runs needs nothing."""
FOLDERS = ("", "attempts", "metrics", "metrics/steps", "metrics/system", "logs")
BEAT_SECONDS = 1.0
"""In a long look it says at least so often that it is there."""
TICK_SECONDS = 0.3
"""Between two looks at the live runs."""
LIST_SECONDS = 1.0
"""Between two looks for new runs, and for those whose folder has changed."""
ALL_SECONDS = 30.0
"""Between two looks at every file of every run."""
CHUNK = 1 << 18
BULK_AT_ONCE = 1 << 20
"""Bytes of one run's curves and output in one look: the state of no other run waits for them."""
LARGEST_WHOLE = 1 << 24
LARGEST_GROWN = 1 << 30
"""Bytes of a file; what is beyond is not sent."""
LONGEST_OUTPUT = 1 << 25
OUTPUT_KEPT = 1 << 20
"""Of printed output that is longer than the former, so much of its end is sent."""
KNOWN_AGAIN = 64
"""Bytes by which a file that grew is known from one that was replaced."""
ALONE_SECONDS = 60
"""It ends so long after the last word from the other side: a link may die without a sign."""


def tail_mark(data: bytes) -> int:
    """What the last bytes of a file are known by."""
    return zlib.crc32(data[-KNOWN_AGAIN:])


def is_name(name: str) -> bool:
    """Whether it can be a run's: one printable part of a path that hides nothing."""
    return name.isprintable() and "/" not in name and not name.startswith(".") and 0 < len(name.encode()) <= 255


class Grown:
    """How much of a growing file has been sent."""

    def __init__(self, inode: int, offset: int, base: int, mark: int) -> None:
        self.inode, self.offset, self.base, self.mark = inode, offset, base, mark


def _mark_at(handle: int, grown: Grown) -> int:
    """What the end of the part that was sent is known by."""
    start = max(grown.offset - KNOWN_AGAIN, grown.base)
    return tail_mark(os.pread(handle, grown.offset - start, start))


class Follower:
    """Sends what lies in one runs folder over one connection."""

    def __init__(
        self, folder: Path, have: dict[str, dict[str, list[int]]], out: BinaryIO, wanted: Sequence[str] = ()
    ) -> None:
        """`have`: of each run the files that the other side has, as size and time (or the mark of its end).

        `wanted`: the runs of which curves and output are sent too.
        """
        self._folder, self._out = folder, out
        self._wanted = dict.fromkeys(wanted, 0)
        """With the number of the question that asked for one; 0 once it is answered."""
        self._one_at_a_time = threading.Lock()
        self._whole = {(run, name): tuple(of) for run, files in have.items() for name, of in files.items()}
        self._grown: dict[tuple[str, str], Grown] = {}
        self._held: dict[str, bool] = {}
        self._stamps: dict[str, tuple[int, ...]] = {}
        self._behind: set[str] = set()
        self._names: list[str] = []
        self._listed: list[str] | None = None
        """As the other side knows them."""
        self._problem: str | None = None
        self._list_due = self._all_due = self._said_at = 0.0

    def say(self, data: bytes = b"", **words: Any) -> None:
        """One line, with the bytes that belong to it."""
        if data:
            words["bytes"] = len(data)
        with self._one_at_a_time:
            self._out.write(json.dumps(words).encode() + b"\n" + data)
            self._out.flush()
            self._said_at = time.monotonic()

    @property
    def is_behind(self) -> bool:
        """Whether there is more to be sent at once."""
        return bool(self._behind)

    # -- looking ---------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Say all that has changed."""
        now, looked = time.monotonic(), [name for name in self._names if self._is_busy(name)]
        if now >= self._list_due:
            self._list_due, self._names = now + LIST_SECONDS, self._list()
            looked = [name for name in self._names if self._is_changed(name) or self._is_busy(name)]
        if now >= self._all_due:
            self._all_due, looked = now + ALL_SECONDS, self._names
        for name in looked:
            self._try(self._send_records, name)
        self.say(synced=True)
        for name in looked:
            if name in self._wanted:
                self._try(self._send_bulk, name)
            if name not in self._behind and (number := self._wanted.get(name)):
                self._wanted[name] = 0
                self.say(answer=number)

    def _try(self, send: Callable[[str], None], name: str) -> None:
        """A run on a disk that fails hides no other, and many on a slow one do not look like a dead link."""
        if time.monotonic() - self._said_at > BEAT_SECONDS:
            self.say()
        try:
            send(name)
        except BrokenPipeError:
            raise
        except OSError:
            self._stamps.pop(name, None)  # looked at again

    def _list(self) -> list[str]:
        """The names of the runs, the newest first."""
        try:
            found = [name for name in os.listdir(self._folder) if is_name(name)]
            names = [name for name in found if os.path.isfile(self._folder / name / "run.json")]
            problem = ""
        except OSError as error:
            names, problem = [], f"{self._folder} cannot be listed ({error.strerror})"
        names.sort(key=lambda name: name.rsplit("-", 3)[1:], reverse=True)
        if problem != self._problem:
            self._problem = problem
            self.say(problem=problem)
        if names != self._listed and not problem:
            self._forget({*(self._listed or ())} - {*names})
            self._listed = names
            self.say(runs=names)
        return names

    def _forget(self, gone: set[str]) -> None:
        """Runs that are no more, of which the other side keeps nothing either."""
        for known in (self._held, self._stamps):
            for name in gone & known.keys():
                del known[name]
        for sent in (self._whole, self._grown):
            for key in [key for key in sent if key[0] in gone]:
                del sent[key]

    def _is_busy(self, name: str) -> bool:
        """Whether a run is alive, or has more to be sent."""
        return self._held.get(name, False) or name in self._behind or bool(self._wanted.get(name))

    def _is_changed(self, name: str) -> bool:
        """Whether a record of the run was replaced: the times of its folders say so."""
        folder = self._folder / name
        stamp = tuple(_modified(path) for path in (folder, folder / "attempts"))
        changed, self._stamps[name] = stamp != self._stamps.get(name), stamp
        return changed

    def _send_records(self, name: str) -> None:
        """Facts are read in the order in which they change and sent in the opposite one: no end is ever missed."""
        folder = self._folder / name
        held = _is_held(folder / "engine.lock")
        if held:
            self._send_held(name, True)
        files = list(_files(folder))
        whole = [one for one in (self._changed(name, file) for file in files if WHOLE.fullmatch(file)) if one]
        for file in files:
            if LOGS.fullmatch(file):
                self._grow(name, file, None)
        for file, content, modified in sorted(whole, key=lambda one: one[0] == "run.json"):
            for at in range(0, max(len(content), 1), CHUNK):
                part = content[at : at + CHUNK]
                self.say(part, run=name, file=file, at=at, of=len(content), modified=modified)
            self._whole[name, file] = (len(content), modified)
        if not held:
            self._send_held(name, False)

    def _send_held(self, name: str, held: bool) -> None:
        if self._held.get(name) != held:
            self._held[name] = held
            self.say(run=name, held=held)

    def _send_bulk(self, name: str) -> None:
        self._behind.discard(name)
        left = BULK_AT_ONCE
        for file in _files(self._folder / name):
            if BULK.fullmatch(file):
                left -= self._grow(name, file, max(left, 0))

    # -- files -----------------------------------------------------------------------------------------------------

    def _changed(self, name: str, file: str) -> tuple[str, bytes, int] | None:
        """Name, content and time of a file that was replaced since it was sent."""
        handle = _opened(self._folder / name / file)
        if handle is None:
            return None
        with os.fdopen(handle, "rb") as opened:
            status = os.fstat(handle)
            known = (status.st_size, status.st_mtime_ns) == self._whole.get((name, file))
            if known or status.st_size > LARGEST_WHOLE:
                return None
            return file, opened.read(LARGEST_WHOLE), status.st_mtime_ns

    def _grow(self, name: str, file: str, most: int | None) -> int:
        """Send what was appended, at most `most` bytes of it; the bytes sent."""
        handle = _opened(self._folder / name / file)
        if handle is None:
            return 0
        sent = 0
        with os.fdopen(handle, "rb", 0) as opened:
            status = os.fstat(handle)
            grown = self._grown_of((name, file), handle, status)
            end = min(status.st_size, grown.base + LARGEST_GROWN)
            while grown.offset < end:
                if most is not None and sent >= most:
                    self._behind.add(name)
                    break
                opened.seek(grown.offset)
                data = opened.read(min(CHUNK, end - grown.offset))
                if not data:
                    break
                self.say(data, run=name, file=file, at=grown.offset - grown.base)
                grown.offset, sent = grown.offset + len(data), sent + len(data)
                grown.mark = _mark_at(handle, grown)
        return sent

    def _grown_of(self, key: tuple[str, str], handle: int, status: os.stat_result) -> Grown:
        """How far the file is sent; from its start where it is another one than before."""
        grown = self._grown.get(key)
        if grown is None:
            offset, mark = self._whole.get(key, (0, 0))
            grown = Grown(status.st_ino, offset, 0, mark)
        same = grown.inode == status.st_ino and grown.offset <= status.st_size
        if not same or (grown.offset and _mark_at(handle, grown) != grown.mark):
            grown = Grown(status.st_ino, 0, 0, 0)
            self.say(run=key[0], file=key[1], at=0)  # also where nothing follows
        if key[1].endswith(".log") and status.st_size - grown.base > LONGEST_OUTPUT:
            base = status.st_size - OUTPUT_KEPT
            grown = Grown(status.st_ino, base, base, 0)
        self._grown[key] = grown
        return grown

    # -- being asked -----------------------------------------------------------------------------------------------

    def answer(self, asked: dict[str, Any]) -> None:
        """Do what is asked, and say why where that is not possible."""
        why = ""
        try:
            run = self._folder / asked["run"]
            if not is_name(asked["run"]) or not (run / "run.json").is_file():
                why = "it is gone"
            elif "want" in asked:
                self._wanted[asked["run"]] = asked["ask"]
                return
            elif "command" in asked:
                append_line(run / "commands.jsonl", asked["command"].encode())
            else:
                with alone_with(run):
                    record = json.loads((run / "run.json").read_text())
                    replace_bytes(run / "run.json", json.dumps({**record, **asked["describe"]}, indent=2).encode())
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
        self.say(answer=asked["ask"], why=why)


def machine_of(folder: Path) -> list[float]:
    """Cores and bytes of memory that may be used at once, and bytes of the volume with the runs."""
    cores, memory = float(len(os.sched_getaffinity(0))), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cpu, limit = cpu_limit(), memory_limit()
    disk = shutil.disk_usage(folder).total if folder.is_dir() else 0
    return [cores if cpu is None else min(cores, cpu.cores), memory if limit is None else min(memory, limit[1]), disk]


def _modified(path: Path) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _is_held(lock: Path) -> bool:
    try:
        return lock_holder(lock) is not None
    except OSError:
        return False


def _files(folder: Path) -> Iterator[str]:
    """Names of the files in the folders of a run, from the run's own."""
    for below in FOLDERS:
        try:
            names = sorted(os.listdir(folder / below))
        except OSError:
            continue
        for name in names:
            yield f"{below}/{name}" if below else name


def _opened(path: Path) -> int | None:
    """A regular file, opened; a link, a pipe or a device is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    return None


def _listen(follower: Follower, heard: BinaryIO) -> None:
    """Read from the other side until it closes: in a thread of its own, so that no command waits for a file."""
    for line in iter(heard.readline, b""):
        signal.alarm(ALONE_SECONDS)
        asked = json.loads(line)
        if "ask" in asked:
            follower.answer(asked)
    os._exit(0)


def main() -> None:
    """Follow until the connection ends."""
    heard, out = sys.stdin.buffer, sys.stdout.buffer
    signal.alarm(ALONE_SECONDS)
    out.write(GREETING)
    out.flush()
    first = json.loads(heard.readline())
    folder = Path(os.path.expanduser(first["runs"] or os.environ.get("COCKPIT_RUNS") or "runs")).absolute()
    follower = Follower(folder, first["have"], out, first["want"])
    follower.say(machine=machine_of(folder))
    threading.Thread(target=_listen, args=(follower, heard), daemon=True).start()
    try:
        while True:
            follower.look()
            time.sleep(0 if follower.is_behind else TICK_SECONDS)
    except BrokenPipeError:
        os._exit(0)
