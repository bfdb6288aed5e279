"""Live sessions: what is made step by step while users act, such as a world that a model dreams.

A project gives a `LiveSession`; `play_live` runs it: seats, clock, tape, branches, keys, end. The session holds
nothing that a step changes: it gives a state, and makes the next one out of it, so that every state on the tape can be
shown and continued.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from engines.contract import scenes
from engines.contract.scenes import Action, Press, Scene
from engines.tasks.interactive import IDLE_MINUTES, LEAP, InteractiveContext, serve
from engines.tasks.scene_server import SceneServer

LONGEST_TAPE = 36_000
"""States that are kept, ten minutes at 60 a second; the oldest are dropped."""
MOST_PRESSES = 64
"""That one step is given; of more, the last."""
MEASURED_STEPS = 20
"""Over which the speed is measured that a session keeps up with."""
TAPE = (
    Action("play", "space", "play", "Play or pause"),
    Action("on", "full_stop", "step", "One step forward; a new one at the end"),
    Action("back", "comma", "back", "One recorded step back"),
    Action("leap-back", "pageup,left_square_bracket", f"-{LEAP}", f"{LEAP} recorded steps back", minor=True),
    Action("leap-on", "pagedown,right_square_bracket", f"+{LEAP}", f"{LEAP} recorded steps forward", minor=True),
    Action("start", "home", "start", "To the first recorded step", minor=True),
    Action("end", "end", "newest", "To the newest step", minor=True),
    Action("slower", "minus", "slower", "To the next lower speed", minor=True),
    Action("faster", "plus,equals_sign", "faster", "To the next higher speed", minor=True),
    Action("restart", "R", "restart", "Drop the recorded steps and start again", minor=True),
)
"""What every live session can do; its own actions have other ids and keys."""

State = TypeVar("State")


class LiveSession(Protocol[State]):
    """What a project makes step by step: it knows nothing of sockets, clocks and tapes."""

    @property
    def rate(self) -> float:
        """Steps a second at speed 1."""
        ...

    @property
    def speeds(self) -> Sequence[float]:
        """Those to choose from, slowest first, as (0.1, 0.25, 0.5, 1)."""
        ...

    @property
    def speed(self) -> float:
        """The one it begins with."""
        ...

    @property
    def viewers(self) -> Sequence[str]:
        """Its seats in the order in which they are taken, as ("p1", "p2")."""
        ...

    @property
    def controls(self) -> Sequence[Action]:
        """Keys of those who act: `step` is given their presses. Pressed on the past of the tape they begin a branch."""
        ...

    @property
    def actions(self) -> Sequence[Action]:
        """What is done at once by `act` and changes no state: another view, writing down the tape."""
        ...

    def begin(self) -> State:
        """The state before the first step; again for each restart."""
        ...

    def step(self, state: State, presses: Sequence[Press], viewers: Sequence[str]) -> State:
        """The state after `state`, which stays as it is.

        presses: of `controls` since the last step, in order, each with its viewer. A terminal sends no key-up: how long
        a key is held is the session's to say, in its state. viewers: the seats that are taken now.
        """
        ...

    def act(self, press: Press, tape: Sequence[State]) -> None:
        """Do one of its `actions`; `tape` ends with the state that is shown."""
        ...

    def scene(self, state: State) -> Scene:
        """The picture of a state; what the tape knows is filled in later."""
        ...


def play_live(
    session: LiveSession[Any],
    context: InteractiveContext,
    idle_minutes: float = IDLE_MINUTES,
    longest: int = LONGEST_TAPE,
) -> None:
    """Run `session`, paused at first, until its last viewer ends it or nobody has looked for `idle_minutes`.

    It pauses while no seat is taken. longest: states that the tape keeps, at least one. Raises `StopRequested` on a
    stop, and ValueError for a key or id that two of its actions have.
    """
    _check_actions([*TAPE, *session.controls, *session.actions])
    with SceneServer(context.folder, session.viewers) as server:
        serve(Live(session, lambda: server.taken, context.log, longest), server, context, idle_minutes)


def _check_actions(actions: Sequence[Action]) -> None:
    for kind, names in (
        ("id", [action.id for action in actions]),
        ("key", [key for action in actions for key in action.key.split(",")]),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two actions of the session have the {kind} {twice[0]!r}; give one of them another")


class Clock:
    """When the next step is due. A late one delays those after it: none is skipped, and none is made up for in a rush.

    Args:
        rate: steps a second at speed 1.
        speeds: those there are, slowest first.
        speed: one of them.
    """

    def __init__(self, rate: float, speeds: Sequence[float], speed: float) -> None:
        self._rate, self._speeds = rate, list(speeds)
        self._place = self._speeds.index(speed)
        self.due: float | None = None
        """None while it stands."""
        self._done: deque[float] = deque(maxlen=MEASURED_STEPS + 1)

    @property
    def speed(self) -> float:
        return self._speeds[self._place]

    @property
    def reached(self) -> float:
        """The speed that was kept up over the last steps; 0 while that is not known."""
        if self.due is None or len(self._done) <= MEASURED_STEPS:
            return 0.0
        return MEASURED_STEPS / (self._done[-1] - self._done[0]) / self._rate

    def start(self, now: float) -> None:
        self.due = now + self._period
        self._done.clear()

    def stop(self) -> None:
        self.due = None

    def change(self, places: int, now: float) -> None:
        """To a speed so many places higher, or to the last one there is."""
        self._place = min(max(self._place + places, 0), len(self._speeds) - 1)
        if self.due is not None:
            self.start(now)

    def choose(self, speed: float, now: float) -> None:
        """To the speed that is nearest."""
        nearest = min(range(len(self._speeds)), key=lambda place: abs(self._speeds[place] - speed))
        self.change(nearest - self._place, now)

    def tick(self, now: float) -> None:
        """A step was begun at `now`: the next is due a period after this one was, or after `now` where that is past."""
        assert self.due is not None
        self._done.append(now)
        due = self.due + self._period
        self.due = due if due > now else now + self._period

    @property
    def _period(self) -> float:
        return 1 / (self._rate * self.speed)


class Live(Generic[State]):
    """The `Player` of a live session: the tape of its states, and where on it the viewers are.

    Args:
        session: makes the states.
        viewers: gives the seats that are taken now.
        log: hears of viewers, branches and restarts.
        longest: states that are kept.
    """

    def __init__(
        self,
        session: LiveSession[State],
        viewers: Callable[[], Sequence[str]],
        log: Callable[[str], None],
        longest: int = LONGEST_TAPE,
    ) -> None:
        self._session, self._viewers, self._log, self._longest = session, viewers, log, longest
        self._clock = Clock(session.rate, session.speeds, session.speed)
        self._here: tuple[str, ...] = ()
        self._restart()

    @property
    def due(self) -> float | None:
        return self._clock.due

    def advance(self, now: float) -> bool:
        """One step at most, the next on the tape or a new one."""
        changed = self._note_viewers()
        if self.due is None or now < self.due:
            return changed
        self._go_on()
        self._clock.tick(now)
        return True

    def obey(self, order: scenes.Input, now: float) -> None:
        match order:
            case scenes.Seek(position):
                self._seek(position)
            case scenes.Play(playing, speed):
                if speed is not None:
                    self._clock.choose(speed, now)
                self._play(playing, now)
            case scenes.Press():
                self._press(order, now)

    def scene(self) -> Scene:
        scene = self._session.scene(self._tape[self._position - self._first])
        scene.live, scene.position, scene.total = True, self._position, self._newest + 1
        scene.playing, scene.speed, scene.reached = self.due is not None, self._clock.speed, self._clock.reached
        scene.viewers = list(self._here)
        scene.actions = [*TAPE, *self._session.controls, *self._session.actions]
        return scene

    @property
    def _newest(self) -> int:
        return self._first + len(self._tape) - 1

    def _restart(self) -> None:
        self._tape = [self._session.begin()]
        self._first = self._position = 0
        self._presses: list[Press] = []
        self._clock.stop()

    def _note_viewers(self) -> bool:
        here = tuple(self._viewers())
        if here == self._here:
            return False
        for words, some, others in (("joined", here, self._here), ("left", self._here, here)):
            for viewer in some:
                if viewer not in others:
                    self._log(f"{viewer} {words}")
        self._here = here
        if not here:
            self._clock.stop()
        return True

    def _go_on(self) -> None:
        if self._position == self._newest:
            self._tape.append(self._session.step(self._tape[-1], self._presses, self._here))
            self._presses = []
            if len(self._tape) > self._longest:
                del self._tape[0]
                self._first += 1
        self._position += 1

    def _play(self, playing: bool, now: float) -> None:
        if playing:
            self._clock.start(now)
        else:
            self._clock.stop()

    def _seek(self, position: int) -> None:
        """To a position on the tape, or the nearest there is, and pause there; what was pressed before is dropped."""
        self._position = min(max(position, self._first), self._newest)
        self._presses = []
        self._clock.stop()

    def _press(self, press: Press, now: float) -> None:
        """An action of the tape or of the session. Any other is ignored."""
        steps = {"back": -1, "leap-back": -LEAP, "leap-on": LEAP, "start": -self._position, "end": len(self._tape)}
        match press.action:
            case "play":
                self._play(self.due is None, now)
            case "on":
                self._clock.stop()
                self._go_on()
            case "slower" | "faster":
                self._clock.change(1 if press.action == "faster" else -1, now)
            case "restart":
                self._log(f"{press.viewer} started again; {self._newest} steps dropped")
                self._restart()
            case action if action in steps:
                self._seek(self._position + steps[action])
            case action if any(action == known.id for known in self._session.controls):
                self._control(press)
            case action if any(action == known.id for known in self._session.actions):
                self._session.act(press, self._tape[: self._position - self._first + 1])

    def _control(self, press: Press) -> None:
        """Keep it for the next step; what the tape holds after the position that is shown is dropped."""
        if later := self._newest - self._position:
            del self._tape[-later:]
            self._log(f"{press.viewer} branched off at step {self._position}; {later} later steps dropped")
        self._presses = [*self._presses, press][-MOST_PRESSES:]
