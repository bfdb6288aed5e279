"""What rank 0 hears and its clock says, taken by all ranks at the same step."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from engines.contract import commands as cmd
from engines.runtime.listener import CommandListener
from engines.training.pace import Pace
from engines.training.ranks import Ranks
from engines.training.state import TrainState

SECONDS = 0.25
"""Between two words of rank 0, in whole steps: each makes all hosts wait for each other."""
MOST_STEPS = 1000


@dataclass(frozen=True)
class Word:
    """What rank 0 says before a step; `after` is the step before which it speaks again."""

    commands: list[cmd.Command]
    signalled: bool
    saves: bool
    reports: bool
    after: int


class Agreement:
    """Commands, signals and the clock of a run. One rank asks its listener before every step.

    Several ranks hear rank 0 before the first step of an epoch and after its last, and a few times a second between.
    """

    def __init__(
        self, ranks: Ranks, listener: CommandListener, state: TrainState, turning: Callable[[], bool],
        save_is_due: Callable[[], bool], pace: Pace,
    ) -> None:  # fmt: skip
        """turning: whether an epoch begins or has been trained."""
        self._ranks, self._listener, self._state = ranks, listener, state
        self._turning, self._save_is_due, self._pace = turning, save_is_due, pace
        self._word = Word([], False, False, False, state.step)
        self._spoke, self._spoke_at = time.monotonic(), state.step

    @property
    def alone(self) -> bool:
        """Whether the run has one rank."""
        return self._ranks.alone

    @property
    def signalled(self) -> bool:
        """Whether a signal asks the run to stop here."""
        return self._listener.signalled if self._ranks.alone else self._word.signalled

    @property
    def save_is_due(self) -> bool:
        """Whether last.pt is to be saved after this step; once."""
        if self._ranks.alone:
            return self._save_is_due()
        due = self._word.saves
        self._word = replace(self._word, saves=False)
        return due

    def commands(self, *, now: bool = False) -> list[cmd.Command]:
        """What is to be carried out before the next step; `now`: ask for it in any case."""
        state = self._state
        if self._ranks.alone:
            return self._listener.take(state.step, state.epoch)
        if not (now or state.step >= self._word.after or self._turning()):
            return []
        self._word = self._ranks.from_first(self._next_word())
        if now or state.step_in_epoch == 0:
            self._pace.begin(state.step)
        elif self._word.reports:
            self._pace.report(state.step)
        return self._word.commands

    def _next_word(self) -> Word:
        """Of rank 0; what other ranks would say is not heard."""
        state, listener = self._state, self._listener
        each = (time.monotonic() - self._spoke) / max(1, state.step - self._spoke_at)
        self._spoke, self._spoke_at = time.monotonic(), state.step
        commands = listener.take(state.step, state.epoch)
        after = state.step + max(1, min(MOST_STEPS, int(SECONDS / each)))
        wanted = listener.next_step(state.step)
        after = after if wanted is None else min(after, wanted)
        return Word(commands, listener.signalled, self._save_is_due(), self._pace.due or self._turning(), after)
