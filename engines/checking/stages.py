"""What each stage of a run takes: its steps, the seconds of one at both of its ends, its memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from engines.checking.duration import StageTime, StepTimes
from engines.checking.memory import ADAM_MOMENTS, activation_size, evaluation_size, is_room, memory_needed
from engines.checking.steps import Built, StepTimer, precision_seconds
from engines.contract.settings import Training
from engines.training.order import Order
from engines.training.out_of_memory import is_out_of_memory, more_parts
from engines.training.precision import choices
from engines.training.project import Context
from engines.training.stages import StagePlan


@dataclass(frozen=True)
class PlannedStage:
    """A stage that the epochs of the run reach."""

    index: int
    name: str
    epochs: int
    steps_per_epoch: int
    begin: float
    """Progress of the run at its first step, and at the end of its last."""
    end: float


def planned_stages(plan: StagePlan, training: Training, steps_per_pass: Sequence[int]) -> list[PlannedStage]:
    """The stages of a run if none ends early, by the steps of one pass over the data of each."""
    planned = []
    for index, stage in enumerate(plan.planned(training.epochs)):
        if stage.last_epoch >= stage.first_epoch:
            steps = plan.trainings[index].steps_per_epoch or steps_per_pass[index]
            epochs = stage.last_epoch - stage.first_epoch + 1
            begin, end = (stage.first_epoch - 1) / training.epochs, stage.last_epoch / training.epochs
            planned.append(PlannedStage(index, stage.name, epochs, steps, begin, end))
    return planned


class StagedRun:
    """A built run with its plan: every stage can be entered, one after another, and measured."""

    def __init__(self, built: Built, plan: StagePlan, orders: Sequence[Order], stages: list[PlannedStage]) -> None:
        self.built, self.stages = built, stages
        self._plan, self._orders = plan, orders

    def memory(self) -> list[dict[str, int]]:
        """Bytes that each stage takes by part, with their `total`."""
        built, moments, found = self.built, dict[int, int](), []
        for stage in self.stages:
            self._enter(stage)
            trained = [parameter for parameter in built.model.parameters() if parameter.requires_grad]
            moments |= {id(parameter): ADAM_MOMENTS * parameter.nbytes for parameter in trained}
            activations = max(self._activations(stage, ctx) for ctx in self.ends(stage))
            evaluation = evaluation_size(
                built.project, built.settings, built.model, built.data, built.parts, self.ends(stage)[0]
            )
            found.append(
                memory_needed(built.model, trained, sum(moments.values()), built.data_size, activations, evaluation)
            )
        return found

    def fitting_memory(self) -> list[dict[str, int]]:
        """As `memory`; with training.micro_batches auto in as many parts as it takes to fit, which `built` then has."""
        size = max(self._plan.trainings[stage.index].batch_size for stage in self.stages)
        while True:
            more = more_parts(self.built.parts, size)
            may_cut = self.built.settings.training.micro_batches == "auto" and more is not None
            try:
                memory = self.memory()
                if not may_cut or all(is_room(self.built.device, parts) for parts in memory):
                    return memory
            except (RuntimeError, MemoryError) as error:
                if not (may_cut and is_out_of_memory(error)):
                    raise
            assert more is not None
            self.built = replace(self.built, parts=more)

    def precisions(self) -> dict[str, float]:
        """Seconds of a step in each precision that the GPU has, as the first stage begins; empty on the CPU."""
        built, stage = self.built, self.stages[0]
        if built.device.type != "cuda":
            return {}
        self._enter(stage)
        clip = self._plan.trainings[stage.index].grad_clip
        return precision_seconds(built, choices(built.device), self._orders[stage.index], self.ends(stage)[0], clip)

    def times(self, step_seconds: float | None) -> list[StageTime]:
        """What each stage takes, by a few steps at both of its ends, or by the `step_seconds` that are given."""
        timer = StepTimer(self.built, points=2 * len(self.stages))
        found = []
        for stage in self.stages:
            self._enter(stage)
            clip = self._plan.trainings[stage.index].grad_clip
            begin, end = (
                timer.time(self._orders[stage.index], ctx, clip)
                if step_seconds is None
                else StepTimes.given(step_seconds)
                for ctx in self.ends(stage)
            )
            found.append(StageTime(stage.name, stage.epochs, stage.steps_per_epoch, begin, end))
        return found

    def ends(self, stage: PlannedStage) -> tuple[Context, Context]:
        """Where in the run the first step of `stage` is, and one after its last."""
        on, epochs = self._plan.switches[stage.index], self.built.settings.training.epochs
        first, last = (
            Context(
                0, min(round(progress * epochs), epochs - 1), progress, stage.name, on.heads, on.parts,
                self.built.settings,
            ) for progress in (stage.begin, stage.end)
        )  # fmt: skip
        return first, last

    def _enter(self, stage: PlannedStage) -> None:
        project, model = self.built.project, self.built.model
        project.freeze(model, list(self._plan.switches[stage.index].frozen))
        with torch.no_grad():
            project.begin_stage(model, self.ends(stage)[0])

    def _activations(self, stage: PlannedStage, ctx: Context) -> int:
        built, training = self.built, self.built.settings.training
        samples = self._orders[stage.index].indices(0, 0)
        samples = samples[: max(1, len(samples) // built.parts)]
        return activation_size(built.project, built.model, built.data, samples, ctx, built.precision, training.seed)
