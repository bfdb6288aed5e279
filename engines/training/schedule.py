"""Where in the run the next step is: its stage, its samples, its rate and its context."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from engines.contract.schedule import learning_rate
from engines.training.order import step_generator
from engines.training.project import Context
from engines.training.stages import StagePlan
from engines.training.work import Work


class Schedule:
    """The stages of a run and what they make of its counters. Raises `UserError` for stages that do not fit."""

    def __init__(self, work: Work, plan: StagePlan) -> None:
        self.plan = plan
        self._state, self._training = work.state, work.settings.training
        self._orders = plan.orders(work.project, work.settings, work.data)
        plan.rehearse(work.project, work.model)
        self.enter()

    def enter(self) -> None:
        """Take the samples of the stage that the counters are in."""
        self.order = self._orders[self._state.stage]
        self.steps_per_epoch = self._training.steps_per_epoch or self.order.steps_per_pass

    @property
    def epoch_is_trained(self) -> bool:
        """Whether all steps of the running epoch are done: its evaluation comes next."""
        return self._state.step_in_epoch == self.steps_per_epoch

    def draw(self) -> tuple[Tensor, np.random.Generator]:
        """Samples of the next step, (batch,) int64, and their randomness; at an epoch's end those of its last step."""
        epoch, place = self._state.epoch, min(self._state.step_in_epoch, self.steps_per_epoch - 1)
        return self.order.indices(epoch, place), step_generator(self._training.seed, epoch, place)

    def rate(self, *, last: bool = False) -> float:
        """Learning rate of the next step (of the step just done, with `last`)."""
        state, size = self._state, 1 / self.steps_per_epoch
        position = state.epoch - state.schedule_epoch + (state.step_in_epoch - last) * size
        rate = learning_rate(
            position, step_size=size, total=self.plan.schedule_epochs(state), warmup=self._training.warmup_epochs,
            peak=self.plan.stages[state.schedule_stage].lr or self._training.lr, least=self._training.min_lr,
        )  # fmt: skip
        return rate * state.live.lr_scale

    def context(self) -> Context:
        state = self._state
        progress = (state.epoch + state.step_in_epoch / self.steps_per_epoch) / state.live.epochs
        stage, on = self.plan.current(state).name, self.plan.on(state)
        return Context(state.step, state.epoch, min(1.0, progress), stage, on.heads, on.parts)
