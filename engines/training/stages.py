"""The stages of a run: which one is on, how long it lasts, when the run ends."""

from __future__ import annotations

from collections.abc import Sequence

from engines.contract.errors import UserError, nearest
from engines.contract.events import EndReason, StageInfo
from engines.contract.settings import Stage, Training
from engines.training.state import TrainState

WHOLE = Stage(name="train")
"""The one stage of a run that names none."""


class StagePlan:
    """The stages of a config, or one with everything on."""

    def __init__(self, training: Training, heads: Sequence[str]) -> None:
        self.stages = training.stages or [WHOLE]
        self._heads = heads
        self._patience = training.patience
        for stage in self.stages:
            for head in stage.heads or ():
                if head not in heads:
                    raise UserError(
                        f"training.stages, stage {stage.name!r}: no head is called {head!r}{nearest(head, heads)}; "
                        f"the heads are {', '.join(heads)}."
                    )

    def current(self, state: TrainState) -> Stage:
        return self.stages[state.stage]

    def heads(self, state: TrainState) -> frozenset[str]:
        """Loss terms that are on."""
        chosen = self.current(state).heads
        return frozenset(self._heads if chosen is None else chosen)

    def patience(self, state: TrainState) -> int:
        return state.live.patience or self.current(state).patience or self._patience

    def is_last(self, state: TrainState) -> bool:
        return state.stage == len(self.stages) - 1

    def stage_over(self, state: TrainState) -> bool:
        """Whether the current stage has had its epochs or its patience."""
        epochs = self.current(state).epochs
        return (epochs is not None and state.stage_epoch >= epochs) or self._out_of_patience(state)

    def ending(self, state: TrainState) -> EndReason | None:
        """Why the run is over, None while it is not."""
        if self.is_last(state) and self._out_of_patience(state) and state.epoch < state.live.epochs:
            return "early-stopped"
        over = state.epoch >= state.live.epochs or (self.is_last(state) and self.stage_over(state))
        return "finished" if over else None

    def schedule_epochs(self, state: TrainState) -> int:
        """Length of the learning-rate schedule in force: up to the next stage that restarts it, or the run's end."""
        length = 0
        for index in range(state.schedule_stage, len(self.stages)):
            stage = self.stages[index]
            if index > state.schedule_stage and stage.restart_schedule:
                break
            if stage.epochs is None:
                return max(1, state.live.epochs - state.schedule_epoch)
            length += stage.epochs
        return max(1, min(length, state.live.epochs - state.schedule_epoch))

    def advance(self, state: TrainState) -> None:
        """Move the counters to the next stage."""
        state.stage += 1
        state.stage_epoch = 0
        stage = self.current(state)
        if stage.restart_schedule:
            state.schedule_stage, state.schedule_epoch = state.stage, state.epoch
        if stage.restart_best:
            state.best_score, state.best_epoch, state.epochs_without_best = None, 0, 0

    def planned(self, epochs: int) -> list[StageInfo]:
        """First and last epoch of each stage if none ends early."""
        infos, first = [], 1
        for stage in self.stages:
            last = min(epochs, first + stage.epochs - 1) if stage.epochs else epochs
            infos.append(StageInfo(stage.name, first, last))
            first = last + 1
        return infos

    def _out_of_patience(self, state: TrainState) -> bool:
        return state.epochs_without_best >= self.patience(state)
