"""Commands at step boundaries: applied or refused, answered, and applied again after a resume."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal

import msgspec

from engines.basics.errors import nearest
from engines.contract import commands as cmd
from engines.contract import limits
from engines.contract.events import CommandAnswer
from engines.runtime.listener import CommandListener
from engines.runtime.room import Room
from engines.training.agreement import Agreement
from engines.training.phases import Phases
from engines.training.state import TrainState

PAUSE_POLL_SECONDS = 0.05


class Refused(Exception):
    """A command that cannot be carried out; the message says why."""


class Steering:
    """Carries out what a person asks. The loop calls `at_boundary` before every step."""

    def __init__(
        self,
        state: TrainState,
        listener: CommandListener,
        phases: Phases,
        room: Room,
        agreement: Agreement,
        *,
        weights_changed: Callable[[], None],
        save: Callable[[], str],
        evaluate: Callable[[], bool],
        measure: Callable[[], None],
        trained: Callable[[], Collection[str]],
        replay: Sequence[CommandAnswer] = (),
    ) -> None:
        self._state, self._listener, self._phases, self._room = state, listener, phases, room
        self._agreement = agreement
        self._weights_changed, self._save, self._evaluate = weights_changed, save, evaluate
        self._measure, self._trained = measure, trained
        self._replay = list(replay)
        self._paused = False
        self._stop: Literal["after_step", "after_epoch", "early"] | None = None

    def at_boundary(self) -> bool:
        """Apply what is due before the next step, hold while paused; True when the run is to stop here."""
        self._apply_due()
        if self._holding():
            with self._phases.during("paused"):
                while self._holding():
                    self._listener.wait(PAUSE_POLL_SECONDS)
                    self._apply_due(now=True)
        return self._stopping()

    def at_epoch_end(self) -> None:
        """Turn a stop after the epoch into a stop now."""
        if self._stop == "after_epoch":
            self._stop = "after_step"

    @property
    def wants_end(self) -> bool:
        """Whether the run is to end early, with the epoch that is running."""
        return self._stop == "early"

    @property
    def ends_early(self) -> bool:
        """Whether the run is to end before the next epoch begins, by a person's wish."""
        return self.wants_end and self._state.epoch > 0

    def _holding(self) -> bool:
        return self._paused and not self._stopping()

    def _stopping(self) -> bool:
        return self._stop == "after_step" or self._agreement.signalled

    def _apply_due(self, *, now: bool = False) -> None:
        while self._replay and self._is_due(self._replay[0]):
            self._carry_out(self._replay.pop(0).command)
        for command in self._agreement.commands(now=now):
            if self._carry_out(command):
                self._replay = overridden(self._replay, command)

    def _is_due(self, answer: CommandAnswer) -> bool:
        return self._state.step >= answer.step and self._state.epoch >= answer.epoch

    def _carry_out(self, command: cmd.Command) -> bool:
        """Apply and answer; False when it was refused."""
        try:
            self._apply(command)
        except Refused as refusal:
            self._answer(command, "refused", str(refusal))
            return False
        self._answer(command, "applied")
        return True

    def _answer(self, command: cmd.Command, state: Literal["applied", "refused"], reason: str = "") -> None:
        """On record before the step runs that it holds for."""
        step, epoch = self._state.step, self._state.epoch
        self._room.when_possible(lambda: self._listener.answer(command, state, step=step, epoch=epoch, reason=reason))
        print(f"{cmd.describe(command)}: {state} at step {self._state.step}" + (f" ({reason})" if reason else ""))

    def _apply(self, command: cmd.Command) -> None:
        match command:
            case cmd.Pause():
                self._paused = True
            case cmd.Continue():
                if not self._paused:
                    raise Refused("the run is not paused")
                self._paused = False
            case cmd.Stop(when=when):
                self._paused = False  # a paused run cannot reach the end of its epoch
                if self._stop != "after_step":  # the sooner stop holds: evaluations are being cut short for it
                    self._stop = when
            case cmd.StopEarly():
                self._paused = False
                if self._stop != "after_step":
                    self._stop = "early"
            case cmd.MeasureGradients():
                self._try_measure()
            case cmd.SaveCheckpoint():
                if reason := self._save():
                    raise Refused(f"the checkpoint could not be written: {reason}")
            case cmd.Evaluate():
                if not self._evaluate():
                    raise Refused("the run is stopping")
            case cmd.SetLossWeights() | cmd.SetLrScale() | cmd.SetEpochs() | cmd.SetPatience():
                self._edit(command)

    def _try_measure(self) -> None:
        """Whatever goes wrong in it, as when the GPU is out of memory, the training of one rank goes on."""
        try:
            self._measure()
        except (RuntimeError, OSError) as error:
            if not self._agreement.alone:  # the others wait in a sum that this rank has left
                raise
            raise Refused(f"the gradients could not be measured: {str(error).splitlines()[0]}") from None

    def _edit(self, edit: cmd.Edit) -> None:
        live, state = self._state.live, self._state
        match edit:
            case cmd.SetLossWeights(weights=weights):
                for head in weights:
                    if head not in live.weights:
                        raise Refused(f"there is no head {head!r}{nearest(head, live.weights)}")
                _refuse(limits.weights_fault(live.weights | weights))
                if not any((live.weights | weights)[head] for head in self._trained()):
                    raise Refused("with every weight of this stage at 0, nothing would be trained")
                live.weights.update(weights)
                self._weights_changed()
            case cmd.SetLrScale(scale=scale):
                _refuse(limits.scale_fault(scale))
                live.lr_scale = scale
            case cmd.SetEpochs(epochs=epochs):
                inside = state.step_in_epoch > 0 or not state.evaluated  # a run ends with an evaluation
                _refuse(limits.epochs_fault(epochs, done=state.epoch, inside=inside))
                live.epochs = epochs
            case cmd.SetPatience(patience=patience):
                _refuse(limits.patience_fault(patience))
                live.patience = patience


def _refuse(fault: str) -> None:
    if fault:
        raise Refused(fault)


def overridden(edits: Sequence[CommandAnswer], newer: cmd.Command) -> list[CommandAnswer]:
    """`edits` without what `newer` sets too."""
    left = ((answer, cmd.left_of(answer.command, newer)) for answer in edits)
    return [msgspec.structs.replace(answer, command=edit) for answer, edit in left if edit is not None]


def edits_after(answers: Sequence[CommandAnswer], step: int, epoch: int) -> list[CommandAnswer]:
    """What a checkpoint at `step` with `epoch` epochs done may not hold yet, in the order in which it is due.

    `answers` are the edits on record in the order they were made. After a resume a person may set again, at an earlier
    step, what an earlier attempt set at a later one: the newer word holds, and the older edit is not applied again.
    Edits made at the very boundary of the checkpoint come too: every edit sets an absolute value, so that applying
    one twice, in order, changes nothing.
    """
    kept: list[CommandAnswer] = []
    for answer in answers:
        later = [edit for edit in kept if _place(edit) > _place(answer)]
        sooner = [edit for edit in kept if _place(edit) <= _place(answer)]
        kept = sorted([*sooner, answer, *overridden(later, answer.command)], key=_place)
    return [answer for answer in kept if answer.step >= step and answer.epoch >= epoch]


def _place(answer: CommandAnswer) -> tuple[int, int]:
    return answer.step, answer.epoch
