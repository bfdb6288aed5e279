"""The training loop: steer → batch → forward → backward → clip → finite check → step → log, on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from engines.contract.events import Alert, CommandAnswer, EndReason, EventWriter
from engines.contract.rundir import RunDirectory, TrainLoss
from engines.contract.settings import RunConfig, Training
from engines.contract.spec import Head
from engines.runtime.listener import CommandListener
from engines.runtime.room import Room
from engines.training import gradients
from engines.training.agreement import Agreement
from engines.training.batches import Batches
from engines.training.clock import Clock, span
from engines.training.evaluate import Evaluator
from engines.training.graph import CudaCapture, StepGraph, why_not
from engines.training.out_of_memory import Fit
from engines.training.pace import Pace
from engines.training.phases import Phases
from engines.training.precision import Precision
from engines.training.project import Project, Result, Split
from engines.training.ranks import ALONE, Ranks, Together
from engines.training.records import EpochRecorder
from engines.training.saving import Checkpoints, Diverged
from engines.training.schedule import Schedule
from engines.training.stages import StagePlan
from engines.training.state import LiveSettings, TrainState
from engines.training.steering import Steering, edits_after
from engines.training.step import TrainStep
from engines.training.step_log import StepLog
from engines.training.sums import EpochSums
from engines.training.work import Work

if TYPE_CHECKING:
    from engines.training.sharding import Sharding


class Trainer:
    """Trains one model from wherever its state stands to its end, a stop, or too many bad steps."""

    def __init__(
        self,
        run: RunDirectory,
        settings: RunConfig,
        heads: Sequence[Head],
        project: Project[Any],
        data: Split,
        model: nn.Module,
        events: EventWriter,
        listener: CommandListener,
        *,
        metrics: Sequence[str] = (),
        train_loss: TrainLoss = "pooled",
        ranks: Ranks = ALONE,
    ) -> None:
        self.run, self.settings, self.project, self.data, self.model = run, settings, project, data, model
        self.training, self.listener, self.train_loss = settings.training, listener, train_loss
        names = [head.name for head in heads]
        weights = settings.loss_weights.model_dump()
        live = LiveSettings({name: float(weights[name]) for name in names}, 1.0, self.training.epochs)
        self.state = state = TrainState(live, micro_batches=first_parts(self.training))
        self.room = Room(run, events, listener, lambda: (state.step, state.epoch))
        self.room.writes = ranks.first
        self.phases = Phases(self.room, lambda: state.step)
        device = next(model.parameters()).device
        precision = Precision(self.training.amp, device)
        sharding = divide(project, model, settings, precision, ranks)
        self.work = Work(
            run, settings, names, project, data, model, listener, self.room, state, self.phases, ranks, sharding
        )
        self.fit = Fit(self.work)
        self.step = make_step(self.work, precision, metrics, self.fit)
        self.clock = Clock(device)
        scaled = precision.scaler.is_enabled()
        columns = [*names, *metrics]
        self.sums = EpochSums(columns, names)
        self.step_log = StepLog(run, self.room, columns, self.sums, self.training.log_every, scaled=scaled)
        self.records = EpochRecorder(run, self.room)
        self.schedule = Schedule(self.work, StagePlan(self.training, heads))
        self.evaluate = Evaluator(self.work, self.schedule, self.fit)
        self.batches = Batches(self.work, self.schedule)
        self.measure_gradients = partial(gradients.measure, self.work, self.batches, precision)
        self.checkpoints = Checkpoints(self.work, self.step, self.sums, self.flush)
        self.agreement = Agreement(
            ranks, listener, state, self._between_epochs, lambda: self.checkpoints.due,
            Pace(run, events.attempt, ranks, device),
        )  # fmt: skip
        self._fresh = True
        self._enter_stage()

    def train(self, replay: Sequence[CommandAnswer] = ()) -> EndReason:
        """Train to the end and say why it ended. Raises `Diverged`, or OSError where nothing can be written."""
        with self.batches, self.checkpoints:
            try:
                return self._train(replay)
            except (RuntimeError, MemoryError) as error:  # a full device is reported with what the run did
                error.add_note(f"while {self.phases.current}")
                raise

    def _train(self, replay: Sequence[CommandAnswer]) -> EndReason:
        state, schedule = self.state, self.schedule
        steering = self._steering(edits_after(replay, state.step, state.epoch))
        self.phases.enter("compiling" if self.training.compile else "training")
        if state.stage_over:
            self._next_stage()
        elif self._fresh:
            self._begin_stage()
        self.records.begin_epoch()
        while not steering.at_boundary():
            if schedule.epoch_is_trained:
                if self._finish_epoch(early=steering.wants_end):
                    steering.at_epoch_end()
                continue
            begins = state.step_in_epoch == 0  # a patience set lower inside an epoch lets that be evaluated first
            if begins and (reason := schedule.plan.ending(state, early=steering.ends_early)) is not None:
                self._close(f"the run is {reason}")
                self.checkpoints.complete()  # the disk may have been full when an epoch ended
                return reason
            self.one_step()
            if self.phases.current == "compiling":  # which the first step did
                self.phases.enter("training")
            if self.step_log.due:
                self.flush()
            self.checkpoints.look()
            if self.agreement.save_is_due:
                self.checkpoints.save_in_background()
        self._close("the run is stopping")
        self.checkpoints.save()
        return "stopped"

    def one_step(self) -> Tensor:
        """Gather the next batch, step on it and log it; its row, on the device. Not at the end of an epoch."""
        state = self.state
        asked = self.clock.now()
        with span("data"):
            batch, ctx = self.batches.next()
        waited = asked, self.clock.now()
        rate = self.schedule.rate()
        row = self.step(batch, ctx, rate)
        with torch.no_grad():
            self.project.after_step(self.model, ctx)
        self.step_log.add(row, step=state.step, epoch=state.epoch + 1, lr=rate, data_wait=waited)
        state.step += 1
        state.step_in_epoch += 1
        return row

    def restore(self, content: dict[str, Any]) -> None:
        """Go on from what a checkpoint holds."""
        self.checkpoints.restore(content)
        self._enter_stage()
        self._fresh = False

    def flush(self) -> None:
        """Bring the logged steps over and look at them. Raises `Diverged`."""
        state = self.state
        state.bad_steps = self.step_log.flush(state.bad_steps)
        if state.bad_steps >= self.training.max_bad_steps:
            what = f"{state.bad_steps} steps in a row were not finite, up to step {state.step}"
            raise Diverged(what, "lower training.lr or check the data", self.run.path.name)

    def _steering(self, replay: Sequence[CommandAnswer]) -> Steering:
        return Steering(
            self.state, self.listener, self.phases, self.room, self.agreement, replay=replay,
            weights_changed=self._weights_changed, save=self.checkpoints.try_save,
            evaluate=self._evaluate_on_demand, measure=self.measure_gradients,
            trained=lambda: self.schedule.plan.on(self.state).heads,
        )  # fmt: skip

    def _between_epochs(self) -> bool:
        return self.state.step_in_epoch == 0 or self.schedule.epoch_is_trained

    def _close(self, reason: str) -> None:
        self.room.when_possible(lambda: self.listener.close(reason))

    def _finish_epoch(self, *, early: bool) -> bool:
        """Evaluate, decide what is best, record, move on, save. False when a stop cut the evaluation short."""
        state, plan = self.state, self.schedule.plan
        self.flush()
        evaluated = plan.evaluates(state, early=early)
        result = self.evaluate() if evaluated else Result(values={}, score=None)
        if result is None:
            return False
        state.evaluated = evaluated
        rate = self.schedule.rate(last=True)
        state.step_in_epoch = 0
        state.epoch += 1
        state.stage_epoch += 1
        best = state.note_score(result.score)
        means, stage = self.sums.means(state.live.weights, self.train_loss), plan.current(state).name
        state.log.append(self.records.end_epoch(state, stage, means, result, lr=rate, best=best))
        self.sums.clear()
        if best:
            self.records.write_review(result, step=state.step, epoch=state.epoch)
            if result.tables:
                self.records.write_report(result.tables)
        state.stage_over = not plan.is_last(state) and plan.stage_over(state)
        self.checkpoints.end_epoch(best=best)
        if state.stage_over:
            self._next_stage()
        self.records.begin_epoch()
        return True

    def _evaluate_on_demand(self) -> bool:
        """False when a stop cut it short."""
        self.batches.settle()
        if (result := self.evaluate()) is None:
            return False
        self.records.write_validation(self.state, result, on_demand=True)
        return True

    def _next_stage(self) -> None:
        """Go from a stage that is over, and saved, to the next one: a resume from that save does it again."""
        plan = self.schedule.plan
        best = self.work.ranks.from_first(self.checkpoints.keep_best() if self.work.ranks.first else None)
        plan.advance(self.state)
        stage = plan.current(self.state)
        if stage.begin == "best":
            self.checkpoints.go_back(best)
        if stage.restart_optimizer:
            self.step.optimizer.state.clear()
        self._enter_stage()
        self._begin_stage()
        if self.training.compile:
            self.phases.enter("compiling", stage.name)
        text = f"stage {stage.name} begins: {', '.join(stage.heads or ['everything on'])}"
        self.room.write(Alert(code="stage", level="info", text=text, step=self.state.step))

    def _begin_stage(self) -> None:
        with torch.no_grad():
            self.project.begin_stage(self.model, self.schedule.context())

    def _enter_stage(self) -> None:
        """Turn on what the current stage trains, and take its data."""
        on = self.schedule.plan.on(self.state)
        self.project.freeze(self.model, list(on.frozen))
        self.step.enter_stage(on.heads, self.schedule.plan.trainings[self.state.stage].grad_clip)
        self._weights_changed()
        self.schedule.enter()

    def _weights_changed(self) -> None:
        self.step.set_weights(self.state.live.weights)


def first_parts(training: Training) -> int:
    """Micro-batches that a training begins with."""
    return 1 if training.micro_batches == "auto" else training.micro_batches


def divide(
    project: Project[Any], model: nn.Module, settings: RunConfig, precision: Precision, ranks: Ranks
) -> Sharding | None:
    """Let the ranks hold the model together, where that is asked for and there are several."""
    if settings.launch.strategy != "fsdp2" or not isinstance(ranks, Together):
        return None
    from engines.training.sharding import Sharding

    blocks = project.blocks(model)
    print(f"fsdp2: the model is divided among {ranks.count} ranks, in {len(blocks)} blocks and the rest", flush=True)
    return Sharding(model, blocks, precision, ranks)


def make_step(work: Work, precision: Precision, metrics: Sequence[str], fit: Fit) -> TrainStep:
    """The step of a run, with the project's optimizer."""
    project, training = work.project, work.settings.training
    optimizer = project.optimizer(project.param_groups(work.model, training.weight_decay), work.settings)
    graph = None
    if training.graph:
        device = next(work.model.parameters()).device
        alone = "" if work.ranks.alone else "several ranks add up their gradients within each step"
        if reason := alone or why_not(project, optimizer, precision, training, device):
            print(f"training.graph is off: {reason}", flush=True)
        else:
            graph = StepGraph(CudaCapture(device))
    return TrainStep(
        project, work.model, optimizer, precision, work.heads, metrics=metrics,
        parts=lambda: work.state.micro_batches, compiled=training.compile, fit=fit, graph=graph, ranks=work.ranks,
        sharding=work.sharding,
    )  # fmt: skip
