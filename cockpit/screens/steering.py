"""Keys that steer a run, the same wherever a run is shown or selected."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events, on
from textual.binding import Binding
from textual.message import Message
from textual.timer import Timer

from cockpit.core import failures
from cockpit.core.poller import Poller
from cockpit.core.run import control
from cockpit.core.run.control import Action, Target
from cockpit.core.run.ending import record_end, send_signal
from cockpit.core.states import Shown, is_live
from cockpit.core.text import plain
from cockpit.screens.changing_keys import ChangingKeysScreen
from cockpit.screens.confirm import StopHarder
from engines.contract import launch
from engines.contract.commands import Command
from engines.contract.rundir import RunDirectory

if TYPE_CHECKING:
    from cockpit.screens.resume import Choice

ACTIONS: tuple[Action, ...] = ("pause", "continue", "stop", "checkpoint", "resume", "fork")


class SteeringScreen(ChangingKeysScreen):
    """A screen with a run under its keys. A subclass says which run; orders go out from workers."""

    CHANGING = (*ACTIONS, "open")
    STEERING = [
        Binding("p", "pause", "pause", id="run.pause", tooltip="Pause before the next step, keeping all in memory"),
        Binding("p", "continue", "continue", id="run.continue", tooltip="Go on where it was paused"),
        Binding("s", "stop", "stop", id="run.stop", tooltip="Stop after this step, saved; again: more ways to end it"),
        Binding(
            "r", "resume", "resume", id="run.resume", tooltip="Go on from the last checkpoint; asks what to change"
        ),
    ]
    FORK = Binding("f", "fork", "fork", id="run.fork", tooltip="Begin a run of its own with a checkpoint")

    @dataclass
    class Sent(Message):
        """An order is in the run's command log."""

        command: Command

    @dataclass
    class Forked(Message):
        """A fork has started."""

        run: RunDirectory

    @dataclass
    class Refused(Message):
        """Something could not be done: a sentence for the person."""

        text: str

    def __init__(self) -> None:
        super().__init__()
        self._stops: set[tuple[Path, int]] = set()
        self._signals: dict[tuple[Path, int], signal.Signals] = {}
        """The last one sent to an attempt that would not stop."""
        self._resumed: dict[Path, int] = {}
        """Runs asked to resume, with the attempt they had then: until they have another they are not asked again."""
        self._pollers: Sequence[Poller] = ()
        self._tick: Timer | None = None
        self._question: tuple[StopHarder, Target] | None = None

    # -- following only while there is something to see ----------------------------------------------------------

    def follow(self, pollers: Sequence[Poller], tick: Timer) -> None:
        """Run `pollers` and `tick` from now on."""
        self._pollers, self._tick = pollers, tick
        for poller in pollers:
            poller.start()

    def on_screen_suspend(self) -> None:
        """Under another screen everything that happens here, even to no effect, would paint that one whole, 15 KB.

        Only the question how to stop is worth it: it is taken back when the run ends.
        """
        if self._tick is not None and not isinstance(self.app.screen, StopHarder):
            self._tick.pause()
            for poller in self._pollers:
                poller.pause()

    def on_screen_resume(self) -> None:
        if self._tick is not None:
            self._tick.resume()
        for poller in self._pollers:
            poller.resume()

    def on_unmount(self) -> None:
        for poller in self._pollers:
            poller.stop()

    # -- what can be done ------------------------------------------------------------------------------------------

    def target(self) -> Target | None:
        """The run that the keys mean now."""
        raise NotImplementedError

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action not in ACTIONS:
            return True
        target = self.target()
        can = {name: target is not None and target.can(name) for name in ACTIONS}
        if target is not None and self._resumed.get(target.run.path) == target.attempt:
            can["resume"] = False
        if action == "continue":  # shares its key with pause: only one of them is there
            return can["continue"]
        if action == "pause" and can["continue"]:
            return False
        return can[action] or None

    def why_not(self, action: str) -> str:
        """Why a greyed key does nothing, where that is not obvious; else empty."""
        target = self.target()
        return target.why_not_resume() if action == "resume" and target is not None else ""

    def on_key(self, event: events.Key) -> None:
        active = self.active_bindings.get(event.key)
        if active is not None and not active.enabled and (sentence := self.why_not(active.binding.action)):
            self.notify(plain(sentence), markup=False)

    # -- orders ----------------------------------------------------------------------------------------------------

    def action_pause(self) -> None:
        self._send("pause")

    def action_continue(self) -> None:
        self._send("continue")

    def action_checkpoint(self) -> None:
        self._send("checkpoint")

    def action_stop(self) -> None:
        """The first press asks nothing; while it is stopping, the next one asks before anything stronger."""
        target = self.target()
        if target is None:
            return
        asked = (target.run.path, target.attempt)
        if asked not in self._stops and target.state != "stopping":
            self._stops.add(asked)
            self._send("stop")
            return
        question = StopHarder(target.id, partial(self._stop_harder, target))
        self._question = (question, target)
        self.app.push_screen(question)

    def withdraw_question(self, run: Path, state: Shown) -> None:
        """When `run` has ended, take back the question how to stop it, and say what remains of what was stopped."""
        if is_live(state):
            return
        if self._question is not None and self._question[1].run.path == run:
            question, self._question = self._question[0], None
            if question.is_active:
                question.dismiss()
        if any(path == run for path, _ in self._stops):
            self._stops = {asked for asked in self._stops if asked[0] != run}
            sent = {attempt: number for (path, attempt), number in self._signals.items() if path == run}
            self._signals = {asked: number for asked, number in self._signals.items() if asked[0] != run}
            self._work(partial(self._tell_what_remains, RunDirectory(run), sent))

    def _tell_what_remains(self, run: RunDirectory, sent: Mapping[int, signal.Signals]) -> None:
        """`sent`: the last signal from here to each of its attempts, if any."""
        from cockpit.core.runs.remains import what_remains  # not needed by the first screen

        for attempt, number in sent.items():
            record_end(run, attempt, number)
        self.app.call_from_thread(self.notify, plain(what_remains(run)), markup=False)

    def _stop_harder(self, target: Target, number: signal.Signals) -> None:
        self._signals[target.run.path, target.attempt] = number
        self._work(partial(send_signal, target.run, number))

    def _send(self, action: Action) -> None:
        if (target := self.target()) is None:
            return
        command = target.order(action)

        def send() -> None:
            launch.send(target.run, command)
            self.post_message(self.Sent(command))

        self._work(send)

    def action_resume(self) -> None:
        from cockpit.screens.resume import ResumeScreen  # not needed by the first screen

        if (target := self.target()) is not None:
            self.app.push_screen(ResumeScreen(target.run, target.id), partial(self._resume, target))

    def action_fork(self) -> None:
        from cockpit.screens.resume import ForkScreen

        if (target := self.target()) is not None:
            self.app.push_screen(ForkScreen(target.run, target.id), partial(self._fork, target))

    def _fork(self, target: Target, choice: Choice | None) -> None:
        from cockpit.core.run import going_on

        if choice is None or (point := choice.point) is None:
            return
        self.notify(f"forking {plain(target.id)} …", markup=False)

        def fork() -> None:
            self.post_message(self.Forked(going_on.fork(target.run, point, choice.overrides, choice.label)))

        self._work(fork)

    def _resume(self, target: Target, choice: Choice | None) -> None:
        if choice is None:
            return
        self._resumed[target.run.path] = target.attempt
        self.refresh_bindings()
        self.notify(f"resuming {plain(target.id)} …", markup=False)

        def resume() -> None:
            try:
                sentences = control.resume(target.run, choice.overrides)
            except BaseException:
                del self._resumed[target.run.path]
                raise
            for sentence in sentences:
                self.app.call_from_thread(self.notify, plain(sentence), markup=False)

        self._work(resume)

    def _work(self, work: Callable[[], object]) -> None:
        """Do it in a thread; a failure becomes a sentence."""
        guarded = failures.told(work, lambda sentence: self.post_message(self.Refused(sentence)))
        self.run_worker(guarded, thread=True, group="orders", exclusive=False)

    @on(Refused)
    def _tell_refusal(self, message: Refused) -> None:
        self.notify(plain(message.text), severity="error", timeout=10, markup=False)
        self.refresh_bindings()
