"""Hears commands while the engine works: a thread that acknowledges them at once, in every phase.

The engine takes what is due at its own boundaries and answers it there. The listener knows what is still open, so that
every command gets exactly one answer, whatever the engine comes to.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Literal, Self

from engines.basics.files import FILE_MODE
from engines.basics.jsonl import RecordFollower
from engines.contract import commands as cmd
from engines.contract.events import Alert, CommandAnswer, EventWriter
from engines.contract.rundir import RunDirectory

POLL_SECONDS = 0.1


class CommandListener:
    """Collects the commands meant for one attempt."""

    def __init__(self, run: RunDirectory, attempt: int, events: EventWriter) -> None:
        self.stop_requested = False
        """Set as soon as a stop after the step is heard, by command, SIGTERM or SIGINT: long phases look at it."""
        self.signalled = False
        """That stop, or one more, came as a signal: nobody waits for its answer."""
        self.step: Callable[[], int] = lambda: 0
        """Steps done, for the answers; the loop puts its own counter here."""
        self._attempt = attempt
        self._events = events
        self._commands = run.commands
        self._follower: RecordFollower[cmd.Command] = RecordFollower(run.commands, cmd.decoder)
        self._heard: set[str] = set()
        """A log that was replaced is read again, and nothing in it may happen twice."""
        self._pending: list[cmd.Command] = []
        self._open: dict[str, cmd.Command] = {}
        self._closed = ""
        self._damage = 0
        self._lock = threading.Lock()
        self._arrived = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="commands", daemon=True)

    def __enter__(self) -> Self:
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, self._on_signal)
        with contextlib.suppress(OSError):
            self._commands.touch(FILE_MODE)  # so that a run's directory is whole before anybody asks for anything
        self._hear()  # what was sent before the start is due from the first step on
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._closing.set()
        self._thread.join()

    def take(self, step: int, epoch: int, *, kind: type[cmd.Order] = cmd.Order) -> list[cmd.Command]:
        """The commands of a kind due before step `step` runs with `epoch` epochs done, in the order they were sent."""
        if not self._pending:  # read without the lock: a command missed now is taken at the next boundary
            return []
        with self._lock:
            due = [one for one in self._pending if isinstance(one, kind) and one.due(step, epoch)]
            self._pending = [command for command in self._pending if command not in due]
        return due

    def next_step(self, step: int) -> int | None:
        """The next step after `step` that a command waits for."""
        with self._lock:
            return min((one.at_step for one in self._pending if one.at_step and one.at_step > step), default=None)

    def answer(
        self, command: cmd.Command, state: Literal["applied", "refused"], *, step: int, epoch: int = 0, reason: str = ""
    ) -> None:
        """The answer to a command, on record before what it changes happens. Raises OSError."""
        answer = CommandAnswer(command=command, state=state, step=step, epoch=epoch, reason=reason)
        self._events.write(answer, durable=True)
        self._open.pop(command.id, None)

    def close(self, reason: str) -> None:
        """Let nothing be taken from now on: all that is open or still comes is refused at once.

        A stop is answered as applied: the run ends, which is what it asked for. Raises OSError.
        """
        with self._lock:
            self._closed = reason
            self._pending.clear()
            self._hear_locked()
            self._answer_open()

    def wait(self, seconds: float) -> None:
        """Until a command or a signal arrives, at most `seconds`."""
        self._arrived.wait(seconds)
        self._arrived.clear()

    def _listen(self) -> None:
        while not self._closing.wait(POLL_SECONDS):
            with contextlib.suppress(OSError):  # a full disk must not make the run deaf
                self._hear()

    def _hear(self) -> None:
        with self._lock:
            self._hear_locked()

    def _hear_locked(self) -> None:
        for command in self._follower.poll():
            if command.attempt != self._attempt or command.id in self._heard:
                continue
            self._heard.add(command.id)
            self._open[command.id] = command
            self._tell(CommandAnswer(command=command, state="seen", step=self.step()))
            if not self._closed:
                self._pending.append(command)
            if isinstance(command, cmd.Stop) and command.when == "after_step" and command.at_step is None:
                self.stop_requested = True
            self._arrived.set()
        if len(self._follower.damage) > self._damage:
            self._damage = len(self._follower.damage)
            line = self._follower.damage[-1].line
            text = f"commands.jsonl line {line} is not a command; ignored"
            self._tell(Alert(code="bad-command", level="warning", text=text))
        if self._closed:
            self._answer_open()

    def _tell(self, event: CommandAnswer | Alert) -> None:
        """A courtesy: where it cannot be written, what was heard is carried out all the same."""
        with contextlib.suppress(OSError):
            self._events.write(event)

    def _answer_open(self) -> None:
        for command in list(self._open.values()):
            stop = isinstance(command, cmd.Stop)
            self.stop_requested |= stop and command.at_step is None
            self.answer(
                command, "applied" if stop else "refused", step=self.step(), reason="" if stop else self._closed
            )

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # Plain assignments: an Event's lock may be held by the very thread that this interrupts.
        self.stop_requested = self.signalled = True
