"""The connection to one host: an ssh client whose other end follows the runs there; it comes back by itself."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
import json
import os
import subprocess
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from cockpit.core.hosts import follower
from cockpit.core.hosts.address import Host
from cockpit.core.hosts.conversation import Conversation, Dropped
from cockpit.core.hosts.mirror import Mirror, Refused, Said
from cockpit.core.text import plain
from cockpit.core.times import minute
from engines.basics.errors import DataError
from engines.contract import commands as cmd

SENT_ALONG = (
    "engines", "engines.basics", "engines.host", "engines.basics.files", "engines.basics.process_lock",
    "engines.basics.lock", "engines.basics.line_writer", "engines.host.cgroup",
)  # fmt: skip
"""Packages (without what their own file holds) and modules that the follower imports, each after those it imports."""
RETRY_SECONDS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Waits between the first tries to connect again; the last one for all that follow."""
ANSWER_SECONDS = 10.0
FETCH_SECONDS = 120.0
LEAVING_SECONDS = 1.0
CONNECTING = "connecting"
LARGEST_SIZE = 1e18
LONGEST_WHY = 300
"""Characters of what the other side says is wrong."""


@dataclass(frozen=True)
class Standing:
    """How a link stands; replaced, never changed."""

    fresh: bool = False
    """Whether what is known of the host's runs is so now."""
    since: float = 0.0
    """Since when that is so, in Unix seconds; 0 before the first connection."""
    why: str = ""
    """What is wrong, a clause; of a link that is up, what hides its runs."""


@dataclass(frozen=True)
class TheirSize:
    """What the machine has; zeros before it has said so."""

    cores: float = 0.0
    memory: int = 0
    disk: int = 0


@dataclass
class Ask:
    """Something asked of the host."""

    answered: threading.Event = field(default_factory=threading.Event)
    why: str = ""
    """Why it was not done."""


class Link:
    """Keeps the mirror of one host up to date in a thread of its own, from `start` to `stop`."""

    def __init__(self, host: Host) -> None:
        """Raises OSError where nothing can be written here."""
        self.host = host
        self._mirror = Mirror(host.folder())
        self.folder = self._mirror.folder
        """Its runs here."""
        self.standing = Standing(why=CONNECTING)
        self.machine = TheirSize()
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._outbox: deque[bytes] = deque()
        self._wanted: set[str] = set()
        self._asked: dict[int, Ask] = {}
        self._numbers = itertools.count(1)
        self._hidden = ""
        """Why a host that answers shows no runs."""
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._thread = threading.Thread(target=self._run, name=f"host {host.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Close the link; the host's runs go on. Waits a moment at most."""
        self._stopping.set()
        self._wake()
        self._thread.join(LEAVING_SECONDS)

    # -- for other threads -----------------------------------------------------------------------------------------

    @property
    def stale(self) -> str:
        """`gpu1 is stale since 20:41: connection closed`; empty while its runs are known as they are."""
        standing = self.standing
        if standing.fresh:
            return ""
        if not standing.since:
            return f"{self.host.name}: {standing.why}"
        return f"{self.host.name} is stale since {minute(standing.since)}: {standing.why}"

    @property
    def problem(self) -> str:
        """The same, and why a host that answers shows no runs; empty while all is well, or may be so in a moment."""
        if self.standing.why == CONNECTING:
            return ""
        return self.stale or (f"{self.host.name}: {self.standing.why}" if self.standing.why else "")

    @property
    def fault(self) -> str:
        """The same for whoever has waited for the connection."""
        return self.problem or self.stale

    @property
    def in_short(self) -> str:
        """The same in a few words."""
        standing = self.standing
        if standing.why == CONNECTING:
            return f"{self.host.name} connecting"
        if not standing.fresh:
            return f"{self.host.name} " + (f"stale since {minute(standing.since)}" if standing.since else "not reached")
        return f"{self.host.name}: no runs folder" if standing.why else ""

    def send(self, run: str, command: cmd.Command) -> None:
        """Append a command for the run there, as it is appended here. Raises `DataError` where it does not arrive."""
        self._ask(run, "The command", command=cmd.encode(command).decode())

    def describe(self, run: str, changes: dict[str, Any]) -> None:
        """Change label, notes or tags of the run there. Raises `DataError`."""
        self._ask(run, "The description", describe=changes)

    def want(self, run: str) -> None:
        """Have the curves and the output of a run from now on, also after a new connection. Returns at once."""
        with self._changed:
            if run in self._wanted:
                return
            self._wanted.add(run)
            self._outbox.append(json.dumps({"ask": next(self._numbers), "run": run, "want": True}).encode() + b"\n")
        self._wake()

    def fetch(self, run: str) -> None:
        """Wait until the curves and the output of a run are here. Raises `DataError`."""
        self._ask(run, "The request", FETCH_SECONDS, want=True)

    def wait(self, seconds: float) -> bool:
        """Whether the first look at all runs is over, at the latest after `seconds`, or with the first failure."""
        with self._changed:
            self._changed.wait_for(lambda: self.standing.fresh or self.standing.why != CONNECTING, seconds)
        return self.standing.fresh

    def _ask(self, run: str, what: str, seconds: float = ANSWER_SECONDS, **words: Any) -> None:
        with self._changed:  # nothing is left for the next connection
            if self.stale:
                raise DataError(f"{self.stale}. {what} was not sent.")
            number, ask = next(self._numbers), Ask()
            self._asked[number] = ask
            self._outbox.append(json.dumps({"ask": number, "run": run, **words}).encode() + b"\n")
        self._wake()
        answered = ask.answered.wait(seconds)
        self._asked.pop(number, None)
        if not answered:
            raise DataError(f"{self.host.name} does not answer; the events of {run} show whether it received it.")
        if ask.why:
            raise DataError(f"{what} for {plain(run)} on {self.host.name} failed: {ask.why}.")

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: it is awake
            os.write(self._wake_write, b".")

    # -- in its thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        tries = 0
        while not self._stopping.is_set():
            try:
                self._connect()
            except Refused as error:
                tries = len(RETRY_SECONDS)
                self._drop(str(error))
            except (Dropped, OSError) as error:
                tries = 0 if self.standing.fresh else tries + 1
                self._drop(str(error))
            except Exception as error:  # whatever the other side has brought about: nothing is fresh without a link
                tries = len(RETRY_SECONDS)
                self._drop(f"{type(error).__name__}: {error}")
            self._stopping.wait(RETRY_SECONDS[min(tries, len(RETRY_SECONDS) - 1)])
        self._drop("it is no longer followed")  # nobody waits for an answer
        self._mirror.close()

    def _stand(self, standing: Standing) -> None:
        with self._changed:
            self.standing = standing
            self._changed.notify_all()

    def _drop(self, why: str) -> None:
        since = time.time() if self.standing.fresh else self.standing.since
        why = plain(why)[:LONGEST_WHY]
        with self._changed:
            self._stand(Standing(False, since, why))
            self._outbox.clear()
        for ask in list(self._asked.values()):
            ask.why = f"the connection dropped; its events show whether it arrived ({why})"
            ask.answered.set()

    def _connect(self) -> None:
        """One connection, until it ends. Raises `Dropped`, `Refused` and OSError."""
        text, self._hidden = program(), ""
        command = f"exec python3 -I -c 'import sys;exec(sys.stdin.buffer.read({len(text)}))'"
        first = {"runs": self.host.runs, "have": self._mirror.have(), "want": sorted(self._wanted)}
        try:
            # apart from the terminal: Ctrl-C there is not meant for it
            client = subprocess.Popen(
                self.host.ssh(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True, bufsize=0,
            )  # fmt: skip
        except FileNotFoundError:
            raise Dropped("there is no ssh client here; install OpenSSH") from None
        with client:
            try:
                talk = Conversation(client, self.host.destination, self._wake_read, self._outbox, self._hear)
                talk.hold(text + json.dumps(first).encode() + b"\n", self._stopping)
            finally:
                client.kill()

    def _hear(self, said: Said, data: bytes) -> None:
        self._mirror.take(said, data)
        if said.problem is not None:
            self._hidden = plain(said.problem)[:LONGEST_WHY]
        if said.machine is not None:
            cores, memory, disk = (min(max(value, 0.0), LARGEST_SIZE) for value in said.machine)
            self.machine = TheirSize(cores, int(memory), int(disk))
        if said.synced and (not self.standing.fresh or self.standing.why != self._hidden):
            self._stand(Standing(True, time.time(), self._hidden))
        if said.answer is not None and (ask := self._asked.get(said.answer)) is not None:
            ask.why = plain(said.why)[:LONGEST_WHY]
            ask.answered.set()


def program() -> bytes:
    """The text that python3 is given there: the follower, after the modules that it imports."""
    lines = ["import sys, types"]
    for name in SENT_ALONG:
        lines.append(f"sys.modules[{name!r}] = types.ModuleType({name!r})")
        if name.count(".") == 2:
            text = inspect.getsource(importlib.import_module(name))
            lines.append(f"exec(compile({text!r}, {name!r}, 'exec'), sys.modules[{name!r}].__dict__)")
    lines.append(f"exec(compile({inspect.getsource(follower)!r}, 'cockpit.follower', 'exec'), globals())")
    return "\n".join([*lines, "main()"]).encode()
