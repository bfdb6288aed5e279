"""The socket of an interactive engine: scenes out, inputs in, and no viewer can hold it up.

Every viewer has at most one line on its way; when that is through it gets the newest scene, however many it missed.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
from pathlib import Path
from typing import Self

import msgspec

from engines.basics.files import FILE_MODE
from engines.basics.sockets import short_address
from engines.contract import scenes

MOST_VIEWERS = 16
BLOCK = 1 << 16


class SceneServer:
    """Serves the socket in `folder` while in its `with`; all of it happens inside `exchange`, without a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._selector = selectors.DefaultSelector()
        self._viewers: dict[socket.socket, _Viewer] = {}
        self._newest = b""
        self._version = 0
        self._alone_since = time.monotonic()

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

    def show(self, scene: scenes.Scene) -> None:
        """Make `scene` the newest: it is on its way during the next `exchange`."""
        self._newest = scenes.encode(scene)
        self._version += 1
        for viewer in self._viewers.values():
            self._watch(viewer)

    def exchange(self, seconds: float) -> list[scenes.Input]:
        """Serve the viewers until one of them says something, at most `seconds`; what they said, in order."""
        deadline = time.monotonic() + seconds
        inputs: list[scenes.Input] = []
        while True:
            for key, events in self._selector.select(max(0.0, deadline - time.monotonic())):
                if key.fileobj is self._door:
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
            if events & selectors.EVENT_WRITE:
                viewer.send(self._newest, self._version)
        except OSError:
            self._drop(viewer)
            return []
        if any(isinstance(order, scenes.End) for order in inputs):
            self._drop(viewer)
            return [order for order in inputs if not self._viewers or not isinstance(order, scenes.End)]
        self._watch(viewer)
        return inputs

    def _interest(self, viewer: _Viewer) -> int:
        behind = viewer.unsent or viewer.version < self._version
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if behind else 0)

    def _watch(self, viewer: _Viewer) -> None:
        self._selector.modify(viewer.connection, self._interest(viewer), viewer.connection)

    def _drop(self, viewer: _Viewer) -> None:
        self._selector.unregister(viewer.connection)
        viewer.connection.close()
        del self._viewers[viewer.connection]
        self._alone_since = time.monotonic()


class _Viewer:
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.version = 0
        """Of the scene sent last."""
        self.unsent = memoryview(b"")
        self._heard = b""

    def send(self, newest: bytes, version: int) -> None:
        """As much as fits now of the line on its way, else of the newest. Raises OSError."""
        if not self.unsent:
            if self.version == version:
                return
            self.unsent, self.version = memoryview(newest), version
        with contextlib.suppress(BlockingIOError):
            self.unsent = self.unsent[self.connection.send(self.unsent) :]

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
