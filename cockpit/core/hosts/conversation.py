"""One ssh client while it lives: what goes in, what comes out, and why it ended."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import IO

from cockpit.core.hosts.follower import GREETING
from cockpit.core.hosts.mirror import LONGEST_WORDS, Frames, Refused, Said

CONNECT_SECONDS = 40.0
"""From the start of ssh to the first word of the follower: a login and a start of python3."""
SILENT_SECONDS = 12.0
"""A link that says nothing for so long is dropped: the follower speaks three times a second."""
BEAT_SECONDS = 5.0
READ_AT_ONCE = 1 << 18
WORDS_KEPT = 4000
LEAVING_SECONDS = 2.0
NO_PROGRAM = 127
"""Exit code of a shell that finds no such program."""


class Dropped(Exception):
    """The connection is over; says why, in a clause."""


class Conversation:
    """Sends `outbox`, gives to `hear` what the follower says; a byte in `wake` says that there is more to send."""

    def __init__(
        self,
        client: subprocess.Popen[bytes],
        destination: str,
        wake: int,
        outbox: deque[bytes],
        hear: Callable[[Said, bytes], None],
    ) -> None:
        self._client, self._destination, self._wake = client, destination, wake
        self._outbox, self._hear = outbox, hear
        self._in, self._out, self._err = _handle(client.stdin), _handle(client.stdout), _handle(client.stderr)
        self._unsent = bytearray()
        self._words = b""
        """The end of what ssh and the shell there complained of."""
        self._greeting: bytearray | None = bytearray()
        """What came before the follower spoke; None since then."""
        self._frames = Frames()

    def hold(self, first: bytes, stopping: threading.Event) -> None:
        """Talk until `stopping`. Raises `Dropped` and whatever `hear` raises."""
        self._unsent += first
        heard = beaten = time.monotonic()
        with selectors.DefaultSelector() as selector:
            for handle in (self._out, self._err, self._wake):
                selector.register(handle, selectors.EVENT_READ)
            while not stopping.is_set():
                if time.monotonic() - beaten > BEAT_SECONDS:
                    beaten = time.monotonic()
                    self._unsent += b"{}\n"
                while self._outbox:
                    self._unsent += self._outbox.popleft()
                self._want_to_send(selector)
                ready = {key.fd for key, _ in selector.select(min(1.0, SILENT_SECONDS / 4))}
                if self._out in ready:
                    heard = time.monotonic()
                    self._listen()
                elif time.monotonic() - heard > (SILENT_SECONDS if self._greeting is None else CONNECT_SECONDS):
                    raise Dropped("it does not answer")
                self._do_the_rest(ready, selector)

    def _want_to_send(self, selector: selectors.BaseSelector) -> None:
        """Watch for space in the pipe, but only while there is something to send."""
        wanted = self._in in selector.get_map()
        if self._unsent and not wanted:
            selector.register(self._in, selectors.EVENT_WRITE)
        elif wanted and not self._unsent:
            selector.unregister(self._in)

    def _do_the_rest(self, ready: set[int], selector: selectors.BaseSelector) -> None:
        if self._wake in ready:
            os.read(self._wake, READ_AT_ONCE)
        if self._err in ready and not self._complaint():
            selector.unregister(self._err)
        if self._in in ready:
            try:
                del self._unsent[: os.write(self._in, self._unsent[:READ_AT_ONCE])]
            except BlockingIOError:
                pass
            except BrokenPipeError:
                raise Dropped(self._why()) from None

    def _complaint(self) -> bool:
        """Read what is complained of; False at its end."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._err, READ_AT_ONCE)
            self._words = (self._words + data)[-WORDS_KEPT:]
            return bool(data)
        return True

    def _listen(self) -> None:
        data = os.read(self._out, READ_AT_ONCE)
        if not data:
            raise Dropped(self._why())
        if self._greeting is not None:
            self._greeting += data
            if (place := self._greeting.find(GREETING)) < 0:
                if len(self._greeting) > LONGEST_WORDS:
                    raise Refused("something other than the follower answers")
                return
            data, self._greeting = bytes(self._greeting[place + len(GREETING) :]), None
        for said, content in self._frames.feed(data):
            self._hear(said, content)

    def _why(self) -> str:
        """Why the client ended, and what to do about it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._client.wait(LEAVING_SECONDS)
            self._complaint()
        words = self._words.decode(errors="replace")
        once = f"run `ssh {self._destination}` once"
        if "IDENTIFICATION HAS CHANGED" in words:
            return f"its host key is another one than before; {once} to see both"
        if "Host key verification failed" in words:
            return f"its host key is not known yet; {once} and accept it"
        if "Permission denied" in words:
            return f"the login failed; {once} to see why; it must not ask for a password (ssh-copy-id, ssh-agent)"
        if self._client.returncode == NO_PROGRAM:
            return "it has no python3 in its PATH"
        lines = [line.strip() for line in words.splitlines() if line.strip()]
        return lines[-1].rstrip(".") if lines else "the connection was closed"


def _handle(pipe: IO[bytes] | None) -> int:
    assert pipe is not None
    os.set_blocking(pipe.fileno(), False)
    return pipe.fileno()
