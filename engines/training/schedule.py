"""Where in the run the next step is: its stage, its samples, its rate and its context."""

from __future__ import annotations

from engines.contract.schedule import learning_rate
from engines.training.project import Context
from engines.training.stages import StagePlan
from engines.training.work import Work


class Schedule:
    """The stages of a run and what they make of its counters. Raises `UserError` for stages that do not fit."""

    def __init__(self, work: Work, plan: StagePlan) -> None:
        self.plan = plan
        self._state, self._settings, self._training = work.state, work.settings, work.settings.training
        self._orders = plan.orders(work.project, work.settings, work.data)
        plan.rehearse(work.project, work.model)
        self.enter()

    def enter(self) -> None:
        """Take the samples of the stage that the counters are in."""
        self.order = self._orders[self._state.stage]
        self.steps_per_epoch = self.plan.trainings[self._state.stage].steps_per_epoch or self.order.steps_per_pass

    @property
    def epoch_is_trained(self) -> bool:
        """Whether all steps of the running epoch are done: its evaluation comes next."""
        return self._state.step_in_epoch == self.steps_per_epoch

    @property
    def last_of_epoch(self) -> bool:
        """Whether the next step is the last of its epoch."""
        return self._state.step_in_epoch + 1 >= self.steps_per_epoch

    def place(self, ahead: int = 0) -> int:
        """Place in its epoch, from 0, of the step so many after the next one; at an epoch's end that of its last."""
        return min(self._state.step_in_epoch + ahead, self.steps_per_epoch - 1)

    def rate(self, *, last: bool = False) -> float:
        """Learning rate of the next step (of the step just done, with `last`)."""
        state, size = self._state, 1 / self.steps_per_epoch
        position = state.epoch - state.schedule_epoch + (state.step_in_epoch - last) * size
        rate = learning_rate(
            position, step_size=size, total=self.plan.schedule_epochs(state), warmup=self._training.warmup_epochs,
            peak=self.plan.trainings[state.schedule_stage].lr, least=self._training.min_lr,
        )  # fmt: skip
        return rate * state.live.lr_scale

    def context(self, ahead: int = 0) -> Context:
        """Of the next step, or of one so many after it in its epoch."""
        state = self._state
        progress = (state.epoch + (state.step_in_epoch + ahead) / self.steps_per_epoch) / state.live.epochs
        stage, on = self.plan.current(state).name, self.plan.on(state)
        return Context(state.step + ahead, state.epoch, min(1.0, progress), stage, on.heads, on.parts, self._settings)
