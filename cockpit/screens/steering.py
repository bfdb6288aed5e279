"""Keys that steer a run, the same wherever a run is shown or selected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from textual.binding import Binding
from textual.message import Message
from textual.screen import Screen

from cockpit.core.hosts import links
from cockpit.core.run import control
from cockpit.core.run.control import Action, Target
from cockpit.core.text import plain
from cockpit.screens.stopping import Stopping
from cockpit.screens.working import in_thread, tell_from_thread
from engines.contract.commands import Command
from engines.contract.rundir import RunDirectory

if TYPE_CHECKING:
    from cockpit.screens.resume import Choice

KEYS = (
    Binding(
        "p", "steer('pause')", "pause", id="run.pause",
        tooltip="Pause before the next step; everything stays in memory",
    ),
    Binding("p", "steer('continue')", "continue", id="run.continue", tooltip="Continue from the pause"),
    Binding(
        "s", "steer('stop')", "stop", id="run.stop",
        tooltip="Save and stop after this step; again: force it",
    ),
    Binding(
        "r", "steer('resume')", "resume", id="run.resume",
        tooltip="Resume from the last checkpoint; settings can be changed",
    ),
)  # fmt: skip
CHECKPOINT = Binding(
    "k", "steer('checkpoint')", "checkpoint", id="run.checkpoint", tooltip="Save a checkpoint (last.pt) now"
)
FORK = Binding("f", "steer('fork')", "fork", id="run.fork", tooltip="Start a new run from a checkpoint")
CHANGING = tuple(f"steer('{action}')" for action in get_args(Action))


class Steering:
    """What the keys do to `target`, the run that they mean now; a screen's action `steer` hands them on to `do`."""

    @dataclass
    class Sent(Message):
        """An order is in the run's command log."""

        command: Command

    @dataclass
    class Forked(Message):
        """A fork has started."""

        run: RunDirectory

    def __init__(self, screen: Screen[None], target: Callable[[], Target | None]) -> None:
        self._screen, self._target = screen, target
        self.stopping = Stopping(screen)
        self._resumed: dict[Path, int] = {}
        """Runs asked to resume, with the attempt they had then: until they have another they are not asked again."""

    # -- what can be done ------------------------------------------------------------------------------------------

    def check(self, parameters: tuple[object, ...]) -> bool | None:
        """For the `check_action` of the screen."""
        action, target = cast(Action, parameters[0]), self._target()
        goes_on = target is not None and target.can("continue")
        if action == "continue":  # shares its key with pause: only one of them is there
            return goes_on
        if action == "pause" and goes_on:
            return False
        if target is None or (action == "resume" and self._resumed.get(target.run.path) == target.attempt):
            return None
        return target.can(action) or None

    def why_not(self, parameters: tuple[object, ...]) -> str:
        """Why a greyed key does nothing, where that is not obvious; else empty."""
        match parameters, self._target():
            case ("resume",), Target() as target:
                return target.why_not_resume()
            case ("fork",), Target() as target:
                return target.why_not_fork()
        return ""

    # -- doing it --------------------------------------------------------------------------------------------------

    def do(self, action: Action) -> None:
        """Orders go out from workers; what is a new start asks first."""
        if (target := self._target()) is None:
            return
        if action == "resume":
            self._ask_resume(target)
        elif action == "fork":
            self._ask_fork(target)
        elif action == "stop" and not self.stopping.begins(target):
            self.stopping.ask_how(target)
        else:
            self._send(target, target.order(action))

    def _send(self, target: Target, command: Command) -> None:
        def send() -> None:
            links.send(target.run, command)
            self._screen.post_message(self.Sent(command))

        in_thread(self._screen, send)

    def _ask_resume(self, target: Target) -> None:
        from cockpit.screens.resume import ResumeScreen  # not needed by the first screen

        self._screen.app.push_screen(ResumeScreen(target.run, target.id), partial(self._resume, target))

    def _resume(self, target: Target, choice: Choice | None) -> None:
        if choice is None:
            return
        self._resumed[target.run.path] = target.attempt
        self._screen.refresh_bindings()
        self._screen.notify(f"resuming {plain(target.id)} …", markup=False)

        def resume() -> None:
            try:
                sentences = control.resume(target.run, choice.overrides, trusted=choice.trusted)
            except BaseException:
                del self._resumed[target.run.path]
                raise
            for sentence in sentences:
                tell_from_thread(self._screen, sentence)

        in_thread(self._screen, resume)

    def _ask_fork(self, target: Target) -> None:
        from cockpit.screens.resume import ForkScreen

        self._screen.app.push_screen(ForkScreen(target.run, target.id), partial(self._fork, target))

    def _fork(self, target: Target, choice: Choice | None) -> None:
        from cockpit.core.run import going_on

        if choice is None or (point := choice.point) is None:
            return
        self._screen.notify(f"forking {plain(target.id)} …", markup=False)

        def fork() -> None:
            run = going_on.fork(target.run, point, choice.overrides, choice.label, trusted=choice.trusted)
            self._screen.post_message(self.Forked(run))

        in_thread(self._screen, fork)
