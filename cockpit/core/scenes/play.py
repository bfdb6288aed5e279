"""The viewer's end of an interactive engine: starts one, follows its scenes, tells it what to do. Textual-free."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cockpit.core.states import is_live
from engines.basics.errors import DataError, UserError
from engines.basics.jsonl import last_lines
from engines.basics.lock import lock_holder
from engines.basics.reading import read_text
from engines.basics.sockets import short_address
from engines.contract import commands as cmd
from engines.contract import scenes
from engines.contract import spec as specs
from engines.contract.events import Progress
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.state import RunReader, Status
from engines.runs.store import list_runs

TASK = "play"
"""Name of the interactive task in a project's spec."""
WAIT_SECONDS = 0.2
BLOCK = 1 << 16
LOG_LINES = 12


def can_play(run: RunDirectory) -> bool:
    """Whether a training has exported something to play; of a play task, whether it is there to be watched."""
    try:
        info = run.info
        if info.kind == "task":
            return (run.path / scenes.SOCKET).exists() and lock_holder(run.lock) is not None
        return run.export.is_dir() and any(run.export.iterdir()) and TASK in specs.find(info.project).tasks
    except (UserError, OSError):
        return False


@dataclass(frozen=True)
class Viewing:
    """A play engine and how a terminal looks at it."""

    run: RunDirectory
    seat: str = ""
    """The seat of a live session that it asks for; the first that is free where empty."""
    started: bool = True
    """This terminal has started the engine, and may stop it before there is anything to see."""


def open_play(run: RunDirectory, recording: str = "", seat: str = "", more: Mapping[str, Any] | None = None) -> Viewing:
    """The play engine of `run`, started now, or the one that was given the same order and still lives.

    `recording`: a file, or a folder where the project says so; the project chooses where empty. `seat`: the session may
    then be any that lives of this run, whatever its recording, where none is named here. `more`: other arguments of its
    task. Raises `UserError` where that cannot be played.
    """
    info = run.info
    if info.kind == "task":
        if not can_play(run):
            raise DataError(f"{info.id} is a task with nothing to show now; give the id of a training.")
        return Viewing(run, seat, started=False)
    spec = specs.of_run(info, "nothing to play")
    if TASK not in spec.tasks:
        raise UserError(f"The project {info.project!r} has no play mode.")
    if not can_play(run):
        raise DataError(f"{info.id} has no export yet; make one with `cockpit export {info.id}`.")
    _check_recording(recording, spec.recordings)
    arguments = {"run": str(run.path), "recording": recording and str(Path(recording).absolute()), **(more or {})}
    if (found := _playing(info.project, arguments, any_of_run=bool(seat) and not (recording or more))) is not None:
        return Viewing(found, seat, started=False)
    title = f"{info.id} played" + (f" on {Path(recording).name}" if recording else "")
    play = launch.prepare_task(info.project, TASK, arguments, title=title)
    launch.start(play)
    return Viewing(play, seat)


def _check_recording(recording: str, kind: str) -> None:
    """Raises `DataError` for one that is not there, or not what the project's spec says."""
    path = Path(recording)
    if recording and not ((path.is_file() and kind != "folder") or (path.is_dir() and kind != "file")):
        what = "file or folder" if kind == "either" else kind
        raise DataError(f"{recording}: there is no such {what}; expected a recording to play.")


def _playing(project: str, arguments: Mapping[str, Any], *, any_of_run: bool) -> RunDirectory | None:
    """The newest live play engine that was given these arguments, or `any_of_run` with others."""
    from engines.basics import yaml12  # its library is not needed by the first screen

    for run in list_runs():
        with contextlib.suppress(DataError, OSError, ValueError, KeyError, TypeError):
            if run.info.kind == "task" and run.info.project == project and lock_holder(run.lock) is not None:
                order, _ = yaml12.read(read_text(run.config))
                given = order["arguments"]
                same = given == arguments or (any_of_run and given["run"] == arguments["run"])
                if order["task"] == TASK and same:
                    return run
    return None


@dataclass(frozen=True)
class PlayNews:
    """How things stand with an interactive engine."""

    status: Status
    progress: Progress | None
    """Of what it does before there is anything to see."""
    scene: scenes.Scene | None
    """The newest, None before the first."""
    seat: str = ""
    """Of a live session, the seat that this viewer has."""
    note: str = ""
    """Why it has none, a sentence."""
    log: tuple[str, ...] = ()
    """The last lines of its log, once it has ended."""

    @property
    def live(self) -> bool:
        return is_live(self.status.state)


class PlayFollower:
    """Follows one interactive engine: `poll` in a thread of its own, `send` from any."""

    def __init__(self, viewing: Viewing) -> None:
        self.run, self._viewing = viewing.run, viewing
        self._reader = RunReader(viewing.run)
        self._seated = scenes.Seated("")
        self._connection: socket.socket | None = None
        self._partial = b""
        self._scene: scenes.Scene | None = None
        self.damaged = 0
        """Lines that were no scenes."""

    def poll(self, seconds: float = WAIT_SECONDS) -> PlayNews:
        """Wait for a scene, at most `seconds`, and say how things stand."""
        if self._connection is None:
            self._connect()
        if self._connection is None:
            select.select([], [], [], seconds)
        else:
            self._receive(self._connection, seconds)
        return self._news()

    def _news(self) -> PlayNews:
        status = self._reader.status()
        log = () if status.live else tuple(last_lines(self.run.stdout, LOG_LINES))
        seated = self._seated
        return PlayNews(status, self._reader.history.progress, self._scene, seated.viewer, seated.note, log)

    def send(self, order: scenes.Input) -> bool:
        """Tell the engine; False where nobody listens. Never waits: an engine that does not read hears less."""
        connection = self._connection
        if connection is None:
            return False
        try:
            connection.send(scenes.encode(order), socket.MSG_DONTWAIT)
        except OSError:
            return False
        return True

    def end(self) -> None:
        """Leave: the engine ends unless others look at it, or is stopped before it shows anything. Raises OSError."""
        told = self.send(scenes.End())
        attempts = self.run.attempt_numbers()
        if not told and self._viewing.started and attempts and lock_holder(self.run.lock) is not None:
            launch.send_stop(self.run, cmd.Stop(attempt=attempts[-1]))
        self.close()

    def close(self) -> None:
        """Leave the engine to itself."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with short_address(self.run.path, scenes.SOCKET) as address:
                connection.connect(address)
        except (OSError, DataError):  # not yet, or no more: the run's state says which
            connection.close()
            return
        self._partial = b""
        self._connection = connection
        self.send(scenes.Join(self._viewing.seat))

    def _receive(self, connection: socket.socket, seconds: float) -> None:
        """Take what has come; of several scenes the newest counts."""
        try:
            while select.select([connection], [], [], seconds)[0]:
                data = connection.recv(BLOCK)
                if not data:
                    raise ConnectionResetError
                *lines, self._partial = (self._partial + data).split(b"\n")
                if len(self._partial) > scenes.LONGEST_SCENE:
                    raise ConnectionAbortedError
                if lines and self._take(lines):
                    return
                seconds = 0.0 if not self._partial else seconds
        except (OSError, ValueError):  # ValueError: closed by another thread
            self.close()

    def _take(self, lines: list[bytes]) -> bool:
        """Keep what `lines` say, of several scenes the newest; whether there was anything."""
        taken = False
        for line in lines:
            try:
                said = scenes.output_decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self.damaged += 1
                continue
            taken = True
            if isinstance(said, scenes.Seated):
                self._seated = said
            else:
                self._scene = said
        return taken
