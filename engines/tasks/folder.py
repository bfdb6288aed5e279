"""The folder that a task fills: claimed before anything is written, filled part by part, resumed where it stopped.

    with output_folder(out, "demo.json", {"seed": 0}, ours=names.__contains__) as folder:
        for part in parts:
            if not folder.has(part, f"{part}.npz"):
                replace_with(out / f"{part}.npz", …)  # whole or not at all, the same bytes whenever it is written
                folder.finish(part)
        folder.complete()

Killed anywhere and started again, it ends with the files of an undisturbed task, byte for byte. The notes are one JSON
object: the settings, the names of the finished parts, and whether that is all of them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from engines.basics.errors import DataError
from engines.basics.files import make_directory, remove_stale_temporaries, replace_bytes
from engines.basics.reading import read_json

FINISHED, COMPLETE = "finished", "complete"
NOTED_SHARE = 0.05
"""Of the time, at most, that writing notes may take: a kill between two of them costs the parts since, made again."""


class OutputFolder:
    """A claimed folder and its notes, as `output_folder` gives it."""

    def __init__(self, path: Path, notes: str, settings: Mapping[str, Any], finished: set[str]) -> None:
        self.path = path
        self._notes, self._settings, self._finished = path / notes, settings, finished
        self._complete = False
        self._unsaved = True
        self._due = 0.0

    def has(self, part: str, *files: str) -> bool:
        """Whether `part` was finished, and its files (relative names) are still there."""
        return part in self._finished and all((self.path / file).is_file() for file in files)

    def finish(self, part: str) -> None:
        """Note that all files of `part` are written. Raises OSError."""
        self._finished.add(part)
        self._unsaved = True
        if time.monotonic() >= self._due:
            self.save()

    def complete(self) -> None:
        """Note that nothing is missing. Raises OSError."""
        self._complete = True
        self.save()

    def save(self) -> None:
        """Write the notes. Raises OSError."""
        began = time.monotonic()
        content = {**self._settings, FINISHED: sorted(self._finished), COMPLETE: self._complete}
        replace_bytes(self._notes, msgspec.json.format(msgspec.json.encode(content)) + b"\n")
        self._unsaved = False
        self._due = time.monotonic() + (time.monotonic() - began) / NOTED_SHARE

    def save_what_is_new(self) -> None:
        """Write the notes where they say less than what was finished. Raises OSError."""
        if self._unsaved:
            self.save()


@contextlib.contextmanager
def output_folder(
    path: Path, notes: str, settings: Mapping[str, Any], ours: Callable[[str], bool]
) -> Iterator[OutputFolder]:
    """The folder `path`, claimed for parts made with `settings`, its notes in the file `notes`.

    A folder with notes of the same settings is taken up where it stopped; any other must be new or empty. `settings`
    are plain JSON values and hold the version of whatever makes the parts. ours: as for `claimed`. Raises `DataError`.
    """
    kept = msgspec.json.decode(msgspec.json.encode(settings))
    with claimed(path, lambda name: name == notes or ours(name), notes):
        folder = OutputFolder(path, notes, kept, _finished(path, notes, kept))
        folder.save()
        try:
            yield folder
        except BaseException:
            with contextlib.suppress(OSError):  # what ended it is the news
                folder.save_what_is_new()
            raise
        folder.save_what_is_new()


@contextlib.contextmanager
def claimed(path: Path, ours: Callable[[str], bool], notes: str = "") -> Iterator[None]:
    """The folder `path`, made where it is absent, for one task alone that may write in it.

    ours: whether a file with that name (`sub/name`, relative to `path`) may be there already. notes: a file that must
    be there where any other is. Raises `DataError` for a foreign file, a second task, and what cannot be written.
    """
    try:
        if path.exists() and not path.is_dir():
            raise DataError(f"{path}: is a file, expected a new or empty folder.")
        make_directory(path)
        with _alone(path):
            for folder in _examined(path, ours, notes):
                remove_stale_temporaries(folder)
            yield
    except OSError as error:
        place = Path(os.fsdecode(error.filename)) if error.filename else path
        if not (place.is_relative_to(path) or path.is_relative_to(place)):
            raise
        raise DataError(f"{place}: cannot be written ({error.strerror or error}).") from None


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """With a lock on the folder itself, which leaves no file in it and ends with this process."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system without such locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DataError(f"{path}: another task is writing there; wait until it ends, or stop it.") from None
        yield
    finally:
        os.close(handle)


def _examined(path: Path, ours: Callable[[str], bool], notes: str) -> list[Path]:
    """The folder and those below it. Raises `DataError` for the first file that is not `ours`, the topmost first."""
    folders, noted = [], not notes or (path / notes).is_file()
    for root, below, files in os.walk(path, onerror=_fail):
        below.sort()
        folder = Path(root)
        folders.append(folder)
        links = [name for name in below if (folder / name).is_symlink()]
        for name in sorted([*files, *links]):
            file = (folder / name).relative_to(path).as_posix()
            if not noted and not _is_temporary(name):
                raise DataError(f"{path}: holds {file!r} and no {notes}; choose a new or empty folder.")
            if not ours(file) and not _is_temporary(name):
                raise DataError(f"{path}: holds {file!r}, which this task does not make; choose a new or empty folder.")
    return folders


def _fail(error: OSError) -> None:
    """A folder that cannot be read may hold anything."""
    raise error


def _is_temporary(name: str) -> bool:
    """What an interrupted write left, as `remove_stale_temporaries` knows it."""
    return name.startswith(".") and name.endswith(".tmp")


def _finished(path: Path, notes: str, settings: Mapping[str, Any]) -> set[str]:
    """The parts that the notes name. Raises `DataError` where they are damaged or of other settings."""
    file = path / notes
    if not file.is_file():
        return set()
    try:
        found = read_json(file, dict[str, Any])
        finished = msgspec.convert(found.get(FINISHED, []), set[str])
    except msgspec.MsgspecError as error:
        raise DataError(f"{file}: damaged ({error}); make everything again in a new folder.") from None
    other = [f"{key} {found.get(key)}, not {value}" for key, value in settings.items() if found.get(key) != value]
    if other:
        raise DataError(f"{path}: was made with {' and '.join(other)}; choose another folder.")
    return finished
