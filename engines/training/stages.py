"""The stages of a run: which one is on, how long it lasts, when the run ends."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from engines.basics.errors import DataError, UserError, nearest
from engines.contract.events import EndReason, StageInfo
from engines.contract.settings import RunConfig, Stage, Training
from engines.contract.spec import Head
from engines.training.order import Order
from engines.training.project import Project, Split
from engines.training.samples import Ranges, Samples
from engines.training.state import TrainState

WHOLE = Stage(name="train")
"""The one stage of a run that names none."""


@dataclass(frozen=True)
class Switches:
    """What a stage trains.

    heads: loss terms that are on. parts: for those on in part only, the parts that are. frozen: patterns of the
    parameters without a gradient, the stage's own and those of the heads that are off.
    """

    heads: frozenset[str]
    parts: Mapping[str, frozenset[str]]
    frozen: tuple[str, ...]


class StagePlan:
    """The stages of a config, or one with everything on. Raises `UserError` for heads there are not."""

    def __init__(self, training: Training, heads: Sequence[Head]) -> None:
        self.stages = training.stages or [WHOLE]
        self.switches = [_switches(stage, heads) for stage in self.stages]
        self.trainings = [_training(stage, training) for stage in self.stages]
        """The run's settings as each stage has them."""
        self._training, self._heads = training, heads

    def current(self, state: TrainState) -> Stage:
        return self.stages[state.stage]

    def on(self, state: TrainState) -> Switches:
        """What the current stage trains."""
        return self.switches[state.stage]

    def rehearse(self, project: Project[Any], model: nn.Module) -> None:
        """Freeze as every stage will, the first one last, so that a bad pattern is found before the first step.

        What the `model` was made without a gradient (a pretrained part, a teacher) stays so in all of them, and what a
        head that is on names too is left to it.
        """
        names = [name for name, _ in model.named_parameters()]
        never = tuple(name for name, parameter in model.named_parameters() if not parameter.requires_grad)
        for place, (stage, switches) in enumerate(zip(self.stages, self.switches, strict=True)):
            kept = [pattern for head in self._heads if head.name in switches.heads for pattern in head.patterns]
            off = switches.frozen[len(stage.frozen) :]
            frozen = [name for pattern in off for name in _apart(pattern, kept, names)]
            self.switches[place] = replace(switches, frozen=(*stage.frozen, *frozen, *never))
        for stage, switches in reversed(list(zip(self.stages, self.switches, strict=True))):
            try:
                project.freeze(model, list(switches.frozen))
            except UserError as error:
                raise UserError(f"training.stages, stage {stage.name!r}: {error}") from None

    def orders(self, project: Project[Any], settings: RunConfig, data: Split) -> list[Order]:
        """The order of each stage's samples. Raises `DataError` for a stage without any."""
        orders = []
        for place, stage in enumerate(self.stages):
            chosen: Samples = range(len(data.train))
            if stage.data is not None:
                chosen = project.select(settings, data, stage.data)
            samples = Ranges.of(chosen)
            if not len(samples):
                filtered = f"the data filter {stage.data!r} of stage {stage.name!r}"
                raise DataError(
                    f"{filtered if stage.data else settings.data.path} leaves no training samples; choose other data."
                )
            own = settings.model_copy(update={"training": self.trainings[place]})
            orders.append(project.order(own, data, samples))
        return orders

    def patience(self, state: TrainState) -> int:
        return state.live.patience or self.current(state).patience or self._training.patience

    def is_last(self, state: TrainState) -> bool:
        return state.stage == len(self.stages) - 1

    def evaluates(self, state: TrainState, *, early: bool) -> bool:
        """Whether the epoch that was trained, and is not counted yet, is evaluated; `early`: the run is to end here.

        Where the stage, the run or the patience may end with it, it always is.
        """
        epoch, length = state.epoch + 1, self.current(state).epochs
        ends = epoch >= state.live.epochs or (length is not None and state.stage_epoch + 1 >= length)
        last_chance = state.epochs_without_best + 1 >= self.patience(state)
        return epoch % self._training.evaluate_every == 0 or ends or last_chance or early

    def evaluations(self, epochs: int) -> int:
        """How many of so many epochs are evaluated if none ends early."""
        every = self._training.evaluate_every
        return epochs // every + len({info.last_epoch for info in self.planned(epochs) if info.last_epoch % every})

    def stage_over(self, state: TrainState) -> bool:
        """Whether the current stage has had its epochs or its patience."""
        epochs = self.current(state).epochs
        return (epochs is not None and state.stage_epoch >= epochs) or self._out_of_patience(state)

    def ending(self, state: TrainState, *, early: bool = False) -> EndReason | None:
        """Why the run is over, None while it is not; `early`: the user wants it to end here.

        It goes one epoch further where the last one was not evaluated, as when its patience is set lower just then.
        """
        if not state.evaluated:
            return None
        if self.is_last(state) and self._out_of_patience(state) and state.epoch < state.live.epochs:
            return "early-stopped"
        over = state.epoch >= state.live.epochs or (self.is_last(state) and self.stage_over(state))
        return "finished" if over else "early-stopped" if early else None

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
        state.stage_epoch, state.stage_over = 0, False
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
            infos.append(StageInfo(stage.name, first, last, stage.patience or self._training.patience))
            first = last + 1
        return infos

    def _out_of_patience(self, state: TrainState) -> bool:
        return state.epochs_without_best >= self.patience(state)


def _training(stage: Stage, training: Training) -> Training:
    own = {key: getattr(stage, key) for key in ("batch_size", "steps_per_epoch", "grad_clip", "lr")}
    return training.model_copy(update={key: value for key, value in own.items() if value is not None})


def _switches(stage: Stage, heads: Sequence[Head]) -> Switches:
    """What `stage.heads` turns on; a head named beside parts of it is on as a whole."""
    names = [head.name for head in heads]
    chosen = names if stage.heads is None else stage.heads
    parts = {head.name: frozenset(part for part in head.parts if f"{head.name}.{part}" in chosen) for head in heads}
    known = [*names, *(f"{head.name}.{part}" for head in heads for part in head.parts)]
    for name in chosen:
        if name not in known:
            raise UserError(
                f"training.stages, stage {stage.name!r}: there is no head {name!r}{nearest(name, known)}; "
                f"the heads are {', '.join(names)}{_example(heads)}."
            )
    on = frozenset(head.name for head in heads if head.name in chosen or parts[head.name])
    kept = [pattern for head in heads if head.name in on for pattern in head.patterns]
    off = (pattern for head in heads if head.name not in on for pattern in head.patterns if pattern not in kept)
    return Switches(
        heads=on,
        parts={name: parts[name] for name in names if name in on and name not in chosen},
        frozen=(*stage.frozen, *dict.fromkeys(off)),
    )


def _apart(pattern: str, kept: Sequence[str], names: Sequence[str]) -> list[str]:
    """What `pattern` freezes beside what the `kept` ones match: itself where they match nothing of it, else names."""
    matched = fnmatch.filter(names, pattern)
    left = [name for name in matched if not any(fnmatch.fnmatchcase(name, each) for each in kept)]
    return [pattern] if left == matched else left


def _example(heads: Sequence[Head]) -> str:
    """How parts are named, where there are any."""
    divided = [head for head in heads if head.parts]
    if not divided:
        return ""
    names = ", ".join(head.name for head in divided)
    return f"; a part of {names} is named as in {divided[0].name}.{divided[0].parts[0]}"
