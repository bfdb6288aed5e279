"""The training loop: steer → batch → forward → backward → clip → finite check → step → log, on one screen."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from engines.contract import events as ev
from engines.contract.alerts import CHECKPOINT_FAILED
from engines.contract.events import CommandAnswer, EventWriter
from engines.contract.rundir import RunDirectory
from engines.contract.schedule import learning_rate
from engines.contract.settings import RunConfig
from engines.contract.spec import Head
from engines.runtime.listener import CommandListener
from engines.runtime.room import Room
from engines.training import checkpoint
from engines.training.evaluate import evaluate
from engines.training.gradients import gradient_norms
from engines.training.order import step_generator
from engines.training.phases import Phases
from engines.training.precision import Precision, random_state, random_state_kept, restore_random_state
from engines.training.project import Context, Project, Result, Split
from engines.training.records import EpochRecorder
from engines.training.stages import StagePlan
from engines.training.state import LiveSettings, TrainState
from engines.training.steering import Steering, edits_after
from engines.training.step import TrainStep, split_batch
from engines.training.step_log import StepLog


class Diverged(Exception):
    """Too many steps in a row were not finite, or a weight is not: no further step makes that good."""


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
    ) -> None:
        self.run, self.settings, self.project, self.data, self.model = run, settings, project, data, model
        self.training = training = settings.training
        self.heads = names = [head.name for head in heads]
        self.listener = listener
        self.room = Room(run, events, listener, lambda: (self.state.step, self.state.epoch))
        device = next(model.parameters()).device
        weights = settings.loss_weights.model_dump()
        live = LiveSettings({name: float(weights[name]) for name in names}, 1.0, training.epochs)
        self.state = TrainState(live)
        self.plan = StagePlan(training, heads)
        self.precision = Precision(training.amp, device)
        groups = project.param_groups(model, training.weight_decay)
        self.optimizer = torch.optim.AdamW(groups, lr=training.lr, fused=True)
        compiled: nn.Module = torch.compile(model) if training.compile else model  # type: ignore[assignment]
        self.step = TrainStep(
            project, compiled, self.optimizer, self.precision, names,
            grad_clip=training.grad_clip, micro_batches=training.micro_batches,
        )  # fmt: skip
        scaled = self.precision.scaler.is_enabled()
        self.step_log = StepLog(run, self.room, names, training.log_every, device, scaled=scaled)
        self.records = EpochRecorder(run, self.room)
        self.phases = Phases(self.room, lambda: self.state.step)
        self._saved = time.monotonic()
        self._saved_at: tuple[int, int] | None = None
        self._orders = self.plan.orders(project, settings, data)
        self.plan.rehearse(project, model)
        self._enter_stage()

    # -- the loop ------------------------------------------------------------------------------------------------

    def train(self, replay: Sequence[CommandAnswer] = ()) -> ev.EndReason:
        """Train to the end and say why it ended. Raises `Diverged`, or OSError where nothing can be written."""
        state = self.state
        steering = Steering(
            state, self.listener, self.phases, self.room, replay=edits_after(replay, state.step, state.epoch),
            weights_changed=self._weights_changed, save=partial(self.save, patient=False),
            evaluate=self._evaluate_on_demand, measure=self._measure_gradients,
            trained=lambda: self.plan.on(state).heads,
        )  # fmt: skip
        self.phases.enter("compiling" if self.training.compile else "training")
        self.records.begin_epoch()
        while not steering.at_boundary():
            if state.step_in_epoch == self.steps_per_epoch:
                if self._finish_epoch():
                    steering.at_epoch_end()
                continue
            begins = state.step_in_epoch == 0  # a patience set lower inside an epoch lets that be evaluated first
            if begins and (reason := self.plan.ending(state, early=steering.ends_early)) is not None:
                self._close(f"the run is {reason}")
                if self._saved_at != (state.step, state.epoch):  # the disk was full when the last epoch ended
                    self.save()
                return reason
            indices = self.order.indices(state.epoch, state.step_in_epoch)
            randomness = step_generator(self.training.seed, state.epoch, state.step_in_epoch)
            asked = time.perf_counter()
            batch = self.data.train.batch(indices, randomness)
            waited = time.perf_counter() - asked
            rate = self.learning_rate()
            ctx = self.context()
            row = self.step(batch, ctx, rate)
            with torch.no_grad():
                self.project.after_step(self.model, ctx)
            self.step_log.add(row, step=state.step, epoch=state.epoch + 1, lr=rate, data_wait=waited)
            state.step += 1
            state.step_in_epoch += 1
            if self.phases.current == "compiling":  # which the first step did
                self.phases.enter("training")
            self._once_in_a_while()
        self._close("the run is stopping")
        self.save()
        return "stopped"

    def _close(self, reason: str) -> None:
        self.room.when_possible(lambda: self.listener.close(reason))

    def _once_in_a_while(self) -> None:
        if self.step_log.due:
            self.flush()
        if time.monotonic() - self._saved > self.training.checkpoint_minutes * 60:
            self._save_or_warn()

    def flush(self) -> None:
        """Bring the logged steps over and look at them."""
        self.state.bad_steps = self.step_log.flush(self.state.bad_steps)
        if self.state.bad_steps >= self.training.max_bad_steps:
            raise Diverged(
                f"{self.state.bad_steps} steps in a row were not finite, up to step {self.state.step}; "
                f"the last good checkpoint is untouched: lower training.lr or look at the data, then resume{self._back}"
            )

    @property
    def _back(self) -> str:
        """Weights may be ruined, and saved, long before a step is infinite: then a resume fails too."""
        return f"; where that fails too, `cockpit fork {self.run.path.name} --epoch best` goes back to the best"

    # -- epochs --------------------------------------------------------------------------------------------------

    def _finish_epoch(self) -> bool:
        """Evaluate, decide what is best, record, move on, save. False when a stop cut the evaluation short."""
        state = self.state
        self.flush()
        result = self.evaluate()
        if result is None:
            return False
        rate = self.learning_rate(last=True)
        state.step_in_epoch = 0
        state.epoch += 1
        state.stage_epoch += 1
        best_before = state.best_score, state.best_epoch
        best = self._note_score(result.score)
        means = self.step.epoch_means()
        stage = self.plan.current(state).name
        state.log.append(self.records.end_epoch(state, stage, means, result, lr=rate, best=best))
        self.step.sums.zero_()
        if best:
            self.records.write_review(result, step=state.step, epoch=state.epoch)
        if not self.plan.is_last(state) and self.plan.stage_over(state):
            self._next_stage()
        keep = self.settings.output.keep_epochs
        saved = self._save_or_warn(best=best, keep=bool(keep) and state.epoch % keep == 0)
        if not saved and state.best_epoch == state.epoch:  # what best.pt still holds is what there is to beat
            state.best_score, state.best_epoch = best_before
        self.records.begin_epoch()
        return True

    def _note_score(self, score: float | None) -> bool:
        """Early stopping: whether this is the best score so far. Any number beats none, nothing else counts."""
        state = self.state
        best = score is not None and math.isfinite(score) and (state.best_score is None or score > state.best_score)
        if best:
            state.best_score, state.best_epoch, state.epochs_without_best = score, state.epoch, 0
        else:
            state.epochs_without_best += 1
        return best

    def evaluate(self) -> Result | None:
        """Validate with the loss weights in force; None when a stop came. Changes nothing of the training."""
        with self.phases.during("evaluating"), random_state_kept():
            return evaluate(
                self.project, self.settings, self.data, self.model, self.context(), self.state.live.weights,
                heads=self.heads, batch_size=self.training.batch_size,
                interrupted=lambda: self.listener.stop_requested,
            )  # fmt: skip

    def _evaluate_on_demand(self) -> bool:
        """False when a stop cut it short."""
        if (result := self.evaluate()) is None:
            return False
        self.records.write_validation(self.state, result, on_demand=True)
        return True

    def _measure_gradients(self) -> None:
        """On the batch of the next step; at an epoch's end on its last."""
        place = min(self.state.step_in_epoch, self.steps_per_epoch - 1)
        indices = self.order.indices(self.state.epoch, place)
        batch = self.data.train.batch(indices, step_generator(self.training.seed, self.state.epoch, place))
        norms, shared = gradient_norms(
            self.project, self.model, split_batch(batch, self.training.micro_batches)[0], self.context(),
            self.heads, self.precision,
        )  # fmt: skip
        finite, bad = ev.finite(norms)
        event = ev.GradientNorms(step=self.state.step, norms=finite, parameters=shared, nonfinite=bad)
        self.room.write(event)

    # -- stages and schedule -------------------------------------------------------------------------------------

    def _next_stage(self) -> None:
        self.plan.advance(self.state)
        if self.plan.current(self.state).restart_optimizer:
            self.optimizer.state.clear()
        self._enter_stage()
        stage = self.plan.current(self.state)
        text = f"stage {stage.name} begins: {', '.join(stage.heads or ['everything on'])}"
        self.room.write(ev.Alert(code="stage", level="info", text=text, step=self.state.step))

    def _enter_stage(self) -> None:
        """Turn on what the current stage trains, and take its data."""
        on = self.plan.on(self.state)
        self.project.freeze(self.model, list(on.frozen))
        self.step.set_active(on.heads)
        self._weights_changed()
        self.order = self._orders[self.state.stage]
        self.steps_per_epoch = self.training.steps_per_epoch or self.order.steps_per_pass

    def _weights_changed(self) -> None:
        self.step.set_weights(self.state.live.weights)

    def learning_rate(self, *, last: bool = False) -> float:
        """Rate of the next step (of the step just done, with `last`)."""
        state, size = self.state, 1 / self.steps_per_epoch
        position = state.epoch - state.schedule_epoch + (state.step_in_epoch - last) * size
        rate = learning_rate(
            position, step_size=size, total=self.plan.schedule_epochs(state), warmup=self.training.warmup_epochs,
            peak=self.plan.stages[state.schedule_stage].lr or self.training.lr, least=self.training.min_lr,
        )  # fmt: skip
        return rate * state.live.lr_scale

    def context(self) -> Context:
        state = self.state
        progress = (state.epoch + state.step_in_epoch / self.steps_per_epoch) / state.live.epochs
        stage, on = self.plan.current(state).name, self.plan.on(state)
        return Context(state.step, state.epoch, min(1.0, progress), stage, on.heads, on.parts)

    # -- checkpoints ---------------------------------------------------------------------------------------------

    def save(self, *, best: bool = False, keep: bool = False, patient: bool = True) -> None:
        """Write last.pt (and the others asked for); `patient` waits on a full disk until there is room.

        Raises OSError or `Diverged` with the older ones untouched.
        """
        self.flush()
        if not torch.stack([weight.isfinite().all() for weight in self.model.parameters()]).all():
            raise Diverged(
                f"the weights are not finite at step {self.state.step}; "
                f"the last good checkpoint is untouched: lower training.lr, then resume{self._back}"
            )
        self._saved = time.monotonic()
        state = self.state
        write = partial(
            checkpoint.save, self.run, self.content(), self.room,
            step=state.step, epoch=state.epoch, best=best, keep=keep,
        )  # fmt: skip
        with self.phases.during("saving"):
            self.room.when_possible(write) if patient else write()
        self._saved_at = state.step, state.epoch

    def content(self) -> dict[str, Any]:
        """Everything a checkpoint holds; `restore` puts it back."""
        return {
            "model": self.project.trainable_state(self.model),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.precision.scaler.state_dict(),
            "random": random_state(),
            "sums": self.step.sums,
            "state": self.state.dump(),
        }

    def _save_or_warn(self, *, best: bool = False, keep: bool = False) -> bool:
        """A full disk must not end the training: say so, keep the older checkpoint, go on. False when it was full."""
        try:
            self.save(best=best, keep=keep, patient=False)
            return True
        except OSError as error:
            what = f"no checkpoint at step {self.state.step}: {error.strerror or error}"
            text = f"{what}; the older one is kept, free some space"
            self.room.write(ev.Alert(code=CHECKPOINT_FAILED, level="error", text=text, step=self.state.step))
            return False

    def restore(self, content: dict[str, Any]) -> None:
        """Put everything a checkpoint holds back."""
        self.project.load_trainable_state(self.model, content["model"])
        self.state = TrainState.load(content["state"])
        groups = [{**group} for group in self.optimizer.param_groups]
        self.optimizer.load_state_dict(content["optimizer"])
        for group, own in zip(self.optimizer.param_groups, groups, strict=True):
            # the config's: a fork may have others than its checkpoint
            group.update({key: own[key] for key in ("weight_decay", "lr_scale") if key in own})
        if content["scaler"]:  # a fork may turn fp16 on
            self.precision.scaler.load_state_dict(content["scaler"])
        self._enter_stage()
        self.step.sums.copy_(content["sums"])
        restore_random_state(content["random"])
