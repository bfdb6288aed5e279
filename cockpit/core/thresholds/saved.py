"""The thresholds in a run's exported config: read, compared and replaced, with a history of who changed what."""

from __future__ import annotations

import getpass
import hashlib
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from engines.basics import files
from engines.basics.errors import DataError
from engines.basics.line_writer import append_line
from engines.basics.lock import RunLock
from engines.basics.reading import decoded, read_bytes
from engines.contract.rundir import RunDirectory
from engines.thresholds.adapter import ThresholdAdapter
from engines.thresholds.review import SAVE_LOCK, About

HISTORY = "history.jsonl"


class Saving(msgspec.Struct):
    """A line of the history."""

    time: float
    who: str
    old: dict[str, float]
    new: dict[str, float]
    checkpoint: str
    epoch: int
    step: int

    @property
    def changed(self) -> list[str]:
        return [name for name, value in self.new.items() if self.old.get(name) != value]


def who() -> str:
    """`user@host`, as the history names whoever saves."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):  # a user id without a name, as in some containers
        return socket.gethostname()


class SavedThresholds:
    """The exported config as it was when this was made. Raises `DataError` where it cannot be read."""

    def __init__(self, run: RunDirectory, adapter: ThresholdAdapter) -> None:
        self._run, self._adapter = run, adapter
        self.path = run.export / adapter.file
        self.content: dict[str, Any] | None = None
        """None: nothing is exported yet."""
        self.thresholds: dict[str, float] = {}
        self._digest = ""
        if (data := self._read()) is not None:
            self._take(data)

    def mismatch(self, about: About) -> str:
        """In a sentence: the config is of another checkpoint than a review. Empty where it is not."""
        if self.content is None:
            return ""
        epoch, step = self._adapter.checkpoint(self.content)
        if epoch in (None, about.epoch) and step in (None, about.step):
            return ""
        of = f"epoch {epoch}" if epoch != about.epoch else f"step {step}"
        return (
            f"The exported config is from {of}, these numbers are from {about.checkpoint} at epoch {about.epoch}, "
            f"step {about.step}: export again with `cockpit export {self._run.info.id}`."
        )

    def save(self, new: Mapping[str, float], *, about: About, support: Mapping[str, Any], who: str, now: float) -> None:
        """Replace the thresholds in the file, if it still is what was read, and add a line to the history.

        Raises `DataError` where it is not, belongs to another checkpoint, or is being saved by someone else.
        """
        if self.content is None:
            raise DataError(
                f"{self._run.info.id} has no exported config yet: make it with `cockpit export {self._run.info.id}`, "
                "then save."
            )
        if mismatch := self.mismatch(about):
            raise DataError(f"Nothing was saved. {mismatch}")
        of = {"checkpoint": about.checkpoint, "epoch": about.epoch, "step": about.step}
        changed = self._adapter.write(self.content, new) | {
            "thresholds_reviewed": True,
            "thresholds_review": {**of, "time": now, "who": who, "support": support},
        }
        data = msgspec.json.format(msgspec.json.encode(changed), indent=2) + b"\n"
        with self._alone():
            if _digest(self._read()) != self._digest:
                raise DataError(
                    f"{self.path} was changed since it was read, by another cockpit or a new export; nothing was "
                    "saved: check again, then save."
                )
            files.replace_bytes(self.path, data)
            line = {"time": now, "who": who, "old": self.thresholds, "new": dict(new), **of}
            append_line(self._run.review / HISTORY, msgspec.json.encode(line))
        self._take(data)

    def history(self) -> list[Saving]:
        """Oldest first; lines that cannot be read are left out."""
        try:
            lines = read_bytes(self._run.review / HISTORY).splitlines()
        except FileNotFoundError:
            return []
        found = []
        for line in lines:
            with suppress(msgspec.DecodeError):
                found.append(decoded(line, Saving))
        return found

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Between comparing and replacing no other cockpit may do either; the kernel frees a dead one's lock."""
        lock = RunLock(self._run.review / SAVE_LOCK)
        if not lock.acquire():
            raise DataError(f"Another cockpit is saving {self.path} right now; nothing was saved: check again.")
        try:
            yield
        finally:
            lock.release()

    def _read(self) -> bytes | None:
        try:
            return read_bytes(self.path)
        except FileNotFoundError:
            return None

    def _take(self, data: bytes) -> None:
        try:
            content = decoded(data, dict[str, Any])
        except msgspec.DecodeError as error:
            raise DataError(f"{self.path} cannot be read as an exported config ({error}); export again.") from None
        self.content, self.thresholds, self._digest = content, self._adapter.read(content), _digest(data)


def _digest(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()
