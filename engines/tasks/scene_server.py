"""The socket of an interactive engine: scenes out, inputs in, and no viewer can hold it up.

Every viewer has at most one line on its way; when that is through it gets the newest scene, however many it missed.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import msgspec

from engines.basics.files import FILE_MODE
from engines.basics.sockets import short_address
from engines.contract import scenes

MOST_VIEWERS = 16
BLOCK = 1 << 16


class SceneServer:
    """Serves the socket in `folder` while in its `with`; all of it happens inside `exchange`, without a thread.

    seats: those of a live session in the order in which they are taken; without any every viewer may press.
    """

    def __init__(self, folder: Path, seats: Sequence[str] = ()) -> None:
        self._folder, self._seats = folder, tuple(seats)
        self._selector = selectors.DefaultSelector()
        self._viewers: dict[socket.socket, _Viewer] = {}
        self._newest = b""
        self._version = 0
        self._alone_since = time.monotonic()
        self._awaited: set[str] = set()
        """Seats whose viewer has gone without an `End`, such as a terminal that died."""

    def __enter__(self) -> Self:
        self._path = self._folder / scenes.SOCKET
        self._path.unlink(missing_ok=True)  # left by an engine that was killed: the run's lock says it is gone
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with short_address(self._folder, scenes.SOCKET) as address:
            self._door.bind(address)
        os.chmod(self._path, FILE_MODE)  # nobody can connect before listen()
        self._door.listen(MOST_VIEWERS)
        self._door.setblocking(False)
        self._selector.register(self._door, selectors.EVENT_READ)
        return self

    def __exit__(self, *exception: object) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        for connection in (*self._viewers, self._door):
            connection.close()
        self._selector.close()

    def alone_for(self) -> float:
        """Seconds since the last viewer left, 0 while there is one."""
        return 0.0 if self._viewers else time.monotonic() - self._alone_since

    @property
    def taken(self) -> tuple[str, ...]:
        """The seats that are taken."""
        seats = {viewer.seat for viewer in self._viewers.values()}
        return tuple(seat for seat in self._seats if seat in seats)

    def show(self, scene: scenes.Scene) -> None:
        """Make `scene` the newest: it is on its way during the next `exchange`."""
        self._newest = scenes.encode(scene)
        self._version += 1
        for viewer in self._viewers.values():
            self._watch(viewer)

    def exchange(self, seconds: float) -> list[scenes.Input]:
        """Serve the viewers until one says something, at most `seconds`; what they said, in order.

        With seats it gives what those who have one said, each press with its viewer, and the `End` of the last.
        A seat whose viewer went without an `End` is waited for: then that of the others ends nothing.
        """
        deadline = time.monotonic() + seconds
        inputs: list[scenes.Input] = []
        while True:
            ready = self._selector.select(max(0.0, deadline - time.monotonic()))
            for key, events in sorted(ready, key=lambda found: found[0].fileobj is not self._door):
                if key.fileobj is self._door:  # first: who comes now is not left alone by who leaves now
                    self._welcome()
                elif (viewer := self._viewers.get(key.data)) is not None:
                    inputs += self._serve(viewer, events)
            if inputs or time.monotonic() >= deadline:
                return inputs

    def _welcome(self) -> None:
        with contextlib.suppress(OSError):  # gone before it could be greeted
            connection, _ = self._door.accept()
            if len(self._viewers) >= MOST_VIEWERS:
                connection.close()
                return
            connection.setblocking(False)
            self._viewers[connection] = viewer = _Viewer(connection)
            self._selector.register(connection, self._interest(viewer), connection)

    def _serve(self, viewer: _Viewer, events: int) -> list[scenes.Input]:
        try:
            inputs = viewer.hear() if events & selectors.EVENT_READ else []
            leaves = any(isinstance(order, scenes.End) for order in inputs)
            if events & selectors.EVENT_WRITE and not leaves:  # it may have gone: what it said must not be lost by that
                viewer.send(self._newest, self._version)
        except OSError:
            self._drop(viewer)
            return []
        kept = [order for order in map(viewer.signed, inputs) if self._is_taken(viewer, order)]
        if leaves:
            self._drop(viewer)
            self._awaited.discard(viewer.seat)
            over = not self._viewers and not self._awaited
            return [order for order in kept if over or not isinstance(order, scenes.End)]
        self._watch(viewer)
        return kept

    def _is_taken(self, viewer: _Viewer, order: scenes.Input) -> bool:
        """Whether an input is the session's to hear; a `Join` is done here."""
        if isinstance(order, scenes.Join):
            viewer.wanted = order.seat
            self._seat(viewer)
            return False
        return isinstance(order, scenes.End) or not self._seats or bool(viewer.seat)

    def _seat(self, viewer: _Viewer) -> None:
        """Give it the seat it asked for, or the first that is free; it hears what it has."""
        if not self._seats or viewer.seat:
            return
        free = [seat for seat in self._seats if seat not in self.taken]
        viewer.seat = next((seat for seat in free if viewer.wanted in ("", seat)), "")
        self._awaited.discard(viewer.seat)
        note = "" if viewer.seat else _why_it_watches(viewer.wanted or "", self._seats)
        viewer.letter = scenes.encode(scenes.Seated(viewer.seat, note))

    def _interest(self, viewer: _Viewer) -> int:
        behind = viewer.unsent or viewer.letter or viewer.version < self._version
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if behind else 0)

    def _watch(self, viewer: _Viewer) -> None:
        self._selector.modify(viewer.connection, self._interest(viewer), viewer.connection)

    def _drop(self, viewer: _Viewer) -> None:
        self._selector.unregister(viewer.connection)
        viewer.connection.close()
        del self._viewers[viewer.connection]
        self._alone_since = time.monotonic()
        if viewer.seat:
            self._awaited.add(viewer.seat)
            for other in self._viewers.values():
                if other.wanted is not None and not other.seat:
                    self._seat(other)
                    self._watch(other)


def _why_it_watches(wanted: str, seats: Sequence[str]) -> str:
    if wanted and wanted not in seats:
        return f"This session has no {wanted!r}, only {' and '.join(seats)}; you are a viewer: your keys do nothing."
    taken = f"{wanted} is" if wanted else f"{' and '.join(seats)} are"
    return f"{taken} taken by another terminal; you are a viewer until it leaves."


class _Viewer:
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.wanted: str | None = None
        """The seat it asked for, empty for any; None as long as it has not asked."""
        self.seat = ""
        self.letter = b""
        """What it hears before the next scene."""
        self.version = 0
        """Of the scene sent last."""
        self.unsent = memoryview(b"")
        self._heard = b""

    def send(self, newest: bytes, version: int) -> None:
        """As much as fits now of the line on its way, else of its letter or the newest. Raises OSError."""
        if not self.unsent and self.letter:
            self.unsent, self.letter = memoryview(self.letter), b""
        elif not self.unsent:
            if self.version == version:
                return
            self.unsent, self.version = memoryview(newest), version
        with contextlib.suppress(BlockingIOError):
            self.unsent = self.unsent[self.connection.send(self.unsent) :]

    def signed(self, order: scenes.Input) -> scenes.Input:
        """A press with this viewer's seat; anything else as it is."""
        return msgspec.structs.replace(order, viewer=self.seat) if isinstance(order, scenes.Press) else order

    def hear(self) -> list[scenes.Input]:
        """The inputs that came whole; lines that are none are ignored. Raises OSError when the viewer is gone."""
        data = self.connection.recv(BLOCK)
        if not data:
            raise ConnectionResetError
        *lines, self._heard = (self._heard + data).split(b"\n")
        if max(map(len, (*lines, self._heard))) > scenes.LONGEST_INPUT:
            raise ConnectionAbortedError
        inputs = []
        for line in lines:
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                inputs.append(scenes.input_decoder.decode(line))
        return inputs
