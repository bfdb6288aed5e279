"""Which data files a run reads, so that it can be said later whether they are still the same.

A time of change alone says too much, since a copy on another machine has a new one, and a digest of terabytes costs too
much. So a file is known by its size and by a digest of what it holds: of all of it while that is quickly read, then of
samples.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from engines.runs.store import runs_folder

if TYPE_CHECKING:
    from engines.contract.settings import RunConfig

WHOLE_BYTES = 256 << 20
"""Files are read whole as long as they come to no more than this."""
BLOCK = 32 << 10
BLOCKS = 8
"""Samples of a file, evenly spread."""
MOST_SAMPLED = 1000
"""Files that are sampled, 256 MB; the others are known by size and time."""
MOST_FILES = 10_000
NAMED = 3
"""Files that a sentence names."""


Read = Literal["whole", "samples", "not"]


class DataFile(msgspec.Struct, frozen=True, array_like=True):
    """One file as it was."""

    size: int
    """Bytes."""
    time: int
    """Of its last change, in nanoseconds."""
    read: Read = "not"
    digest: str = ""
    """Of what was read."""

    def differs(self, now: DataFile) -> bool:
        """Whether its content is another one for certain."""
        return self.size != now.size or (self.read == now.read and self.digest != now.digest)

    def may_differ(self, now: DataFile) -> bool:
        """Whether it was written since, and not all of it was compared."""
        whole = self.read == now.read == "whole"
        return self.time != now.time and not whole and not self.differs(now)


Fingerprint = dict[str, DataFile]
"""Data files by their names, which are relative to the config's `data.path`."""


def below(settings: RunConfig) -> Iterator[Path]:
    """Every file that `data.path` is, or holds; hidden ones and runs are no data."""
    root, runs = Path(settings.data.path).expanduser(), runs_folder()
    if root.is_file():
        yield root
    for folder, folders, names in os.walk(root, followlinks=True):
        folders[:] = sorted(name for name in folders if not _hidden(name) and Path(folder, name) != runs)
        yield from (Path(folder, name) for name in sorted(names) if not _hidden(name))


def _hidden(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"


def take(root: Path, paths: Iterable[Path]) -> Fingerprint:
    """The first `MOST_FILES` of `paths` as they are now, but for those that cannot be read."""
    found: Fingerprint = {}
    bytes_left, samples_left = WHOLE_BYTES, MOST_SAMPLED
    for path in itertools.islice(paths, MOST_FILES):
        name = path.relative_to(root) if path != root and path.is_relative_to(root) else path.name
        with contextlib.suppress(OSError):
            size, time = path.stat().st_size, path.stat().st_mtime_ns
            read: Read = "whole" if size <= bytes_left else "samples" if samples_left else "not"
            bytes_left -= size if read == "whole" else 0
            samples_left -= read == "samples"
            found[str(name)] = DataFile(size, time, read, _digest(path, size, read))
    return found


def _digest(path: Path, size: int, read: Read) -> str:
    digest = hashlib.blake2b(digest_size=8)
    if read == "not":
        return ""
    with open(path, "rb") as file:
        if read == "whole":
            return hashlib.file_digest(file, lambda: digest).hexdigest()
        for place in range(BLOCKS):
            file.seek(max(0, size - BLOCK) * place // (BLOCKS - 1))
            digest.update(file.read(BLOCK))
    return digest.hexdigest()


def changes(then: Fingerprint, now: Fingerprint) -> str:
    """`2 of 12 files changed (a.npz, b.npz), 1 gone (c.npz)`; empty where nothing is known to have changed."""
    both = [name for name in then if name in now]
    changed = [name for name in both if then[name].differs(now[name])]
    gone, new = ([name for name in one if name not in other] for one, other in ((then, now), (now, then)))
    parts = [f"{len(changed)} of {len(both)} files changed{_named(changed)}"] if changed else []
    parts += [f"{len(names)} {word}{_named(names)}" for names, word in ((gone, "gone"), (new, "new")) if names]
    return ", ".join(parts)


def doubts(then: Fingerprint, now: Fingerprint) -> str:
    """Of files that are alike as far as they were compared those that were written since; empty where none was."""
    written = [name for name in then if name in now and then[name].may_differ(now[name])]
    return f"{len(written)} of {len(then)} files written since{_named(written)}, alike in samples" if written else ""


def _named(names: list[str]) -> str:
    more = ", …" if len(names) > NAMED else ""
    return f" ({', '.join(names[:NAMED])}{more})"
