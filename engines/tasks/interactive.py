"""Interactive engines: a task that shows scenes to whoever looks, and does what they say.

A project gives a `Session`, a recording with all its positions, and `play` runs it: socket, clock, speed, keys, end.
What is made step by step while users act is a `LiveSession`, in `engines.tasks.live`; `serve` is the loop of both.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from engines.contract import scenes
from engines.contract.scenes import Action, Scene
from engines.tasks import TaskContext
from engines.tasks.scene_server import SceneServer

IDLE_MINUTES = 10.0
"""How long nobody may be connected before the engine ends, unless its task says otherwise."""
STOP_SECONDS = 0.25
"""How often it looks for a stop while nothing happens."""
SLOWEST, FASTEST = 0.5, 4.0
LEAP = 20
TRANSPORT = (
    Action("play", "space", "play", "Play or pause"),
    Action("back", "left,comma", "back", "One step back"),
    Action("on", "right,full_stop", "step", "One step forward"),
    Action("leap-back", "pageup,left_square_bracket", f"-{LEAP}", f"{LEAP} steps back", minor=True),
    Action("leap-on", "pagedown,right_square_bracket", f"+{LEAP}", f"{LEAP} steps forward", minor=True),
    Action("start", "home", "start", "To the start", minor=True),
    Action("end", "end", "end", "To the end", minor=True),
    Action("slower", "minus", "slower", f"Half as fast, down to ×{SLOWEST:g}", minor=True),
    Action("faster", "plus,equals_sign", "faster", f"Twice as fast, up to ×{FASTEST:g}", minor=True),
)
"""What every session can do."""


class InteractiveContext(TaskContext, Protocol):
    """What an interactive task is given besides."""

    folder: Path
    """The run's directory, in which the socket lies."""

    def check(self) -> None:
        """Raises `StopRequested` when the task should end."""
        ...


class Session(Protocol):
    """What a project shows: it knows what lies at each position, and nothing of sockets and clocks."""

    @property
    def total(self) -> int:
        """Positions there are."""
        ...

    @property
    def rate(self) -> float:
        """Positions a second at speed 1."""
        ...

    @property
    def actions(self) -> Sequence[Action]:
        """What it can do besides playing and seeking."""
        ...

    def act(self, action: str, position: int) -> int:
        """Do one of its actions and give the position to go to; another than now pauses."""
        ...

    def scene(self, position: int) -> Scene:
        """The picture of a position; what the transport knows is filled in later."""
        ...


class Transport:
    """Where a session is and how fast it goes. Time comes from outside.

    Args:
        total: positions there are, at least one.
        rate: positions a second at speed 1.
    """

    def __init__(self, total: int, rate: float) -> None:
        self.total, self.rate = total, rate
        self.position = 0
        self.playing = False
        self.speed = 1.0
        self._since = 0.0
        """When the position now shown was due."""

    @property
    def due(self) -> float | None:
        """When the next position is due, None while it stands."""
        return self._since + 1 / (self.rate * self.speed) if self.playing else None

    def advance(self, now: float) -> None:
        """Go on to the position that is due at `now`; stops at the last one. What came too late is skipped."""
        if not self.playing:
            return
        steps = int((now - self._since) * self.rate * self.speed + 1e-6)
        self._since += steps / (self.rate * self.speed)
        self.seek(self.position + steps)
        if self.position == self.total - 1:
            self.playing = False

    def run(self, playing: bool, speed: float | None, now: float) -> None:
        """Play or pause; at the end playing begins again."""
        if playing and not self.playing and self.position == self.total - 1:
            self.position = 0
        if speed is not None:
            self.speed = min(max(speed, SLOWEST), FASTEST)
        self.playing, self._since = playing, now

    def seek(self, position: int) -> None:
        self.position = min(max(position, 0), self.total - 1)

    def press(self, action: str, now: float) -> None:
        """Do an action of `TRANSPORT`; stepping pauses. Any other is ignored."""
        steps = {"back": -1, "on": 1, "leap-back": -LEAP, "leap-on": LEAP, "start": -self.total, "end": self.total}
        if action == "play":
            self.run(not self.playing, None, now)
        elif action in ("slower", "faster"):
            self.run(self.playing, self.speed * (2 if action == "faster" else 0.5), now)
        elif action in steps:
            self.playing = False
            self.seek(self.position + steps[action])


class Player(Protocol):
    """What `serve` drives: where it is, and what inputs do. Time comes from outside."""

    @property
    def due(self) -> float | None:
        """When it has something to do, None while it waits for an input."""
        ...

    def obey(self, order: scenes.Input, now: float) -> None:
        """Do what a viewer says."""
        ...

    def advance(self, now: float) -> bool:
        """Do what is due at `now`; whether there is another scene to show."""
        ...

    def scene(self) -> Scene:
        """The picture of where it is."""
        ...


def serve(player: Player, server: SceneServer, context: InteractiveContext, idle_minutes: float) -> None:
    """Show what `player` gives until its last viewer ends it or nobody has looked for `idle_minutes`.

    Each turn hears the viewers first, so an input waits for one step at most. Raises `StopRequested`.
    """
    context.log(f"ready; ends after {idle_minutes:g} minutes without a viewer")
    server.show(player.scene())
    while True:
        wait = STOP_SECONDS if player.due is None else min(max(player.due - time.monotonic(), 0.0), STOP_SECONDS)
        inputs = server.exchange(wait)
        context.check()
        for order in inputs:
            if isinstance(order, scenes.End):
                context.log("ended by a viewer")
                return
            player.obey(order, time.monotonic())
        if player.advance(time.monotonic()) or inputs:
            server.show(player.scene())
        if server.alone_for() > idle_minutes * 60:
            context.log(f"ended: no viewer for {idle_minutes:g} minutes")
            return


def play(session: Session, context: InteractiveContext, idle_minutes: float = IDLE_MINUTES) -> None:
    """Show `session` until its last viewer ends it or nobody has looked for `idle_minutes`.

    Raises `StopRequested` on a stop.
    """
    with SceneServer(context.folder) as server:
        serve(_Recorded(session), server, context, idle_minutes)


class _Recorded:
    """The `Player` of a session: any viewer may press."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._transport = Transport(session.total, session.rate)

    @property
    def due(self) -> float | None:
        return self._transport.due

    def advance(self, now: float) -> bool:
        transport = self._transport
        before = transport.position, transport.playing
        transport.advance(now)
        return (transport.position, transport.playing) != before

    def obey(self, order: scenes.Input, now: float) -> None:
        session, transport = self._session, self._transport
        match order:
            case scenes.Seek(position):
                transport.seek(position)
            case scenes.Play(playing, speed):
                transport.run(playing, speed, now)
            case scenes.Press(action) if any(action == known.id for known in session.actions):
                position = session.act(action, transport.position)
                transport.playing &= position == transport.position
                transport.seek(position)
            case scenes.Press(action):
                transport.press(action, now)

    def scene(self) -> Scene:
        session, transport = self._session, self._transport
        scene = session.scene(transport.position)
        scene.position, scene.total = transport.position, transport.total
        scene.playing, scene.speed = transport.playing, transport.speed
        scene.actions = [*TRANSPORT, *session.actions]
        return scene
