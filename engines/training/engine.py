"""One attempt at a training run: load, resume, train, finish, and say how it ended."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import torch

from engines.contract import events as ev
from engines.contract import files
from engines.contract import spec as specs
from engines.contract.config import LoadedConfig, load_config
from engines.contract.errors import UserError
from engines.contract.rundir import RunDirectory
from engines.contract.state import RunReader
from engines.listener import CommandListener
from engines.training import checkpoint
from engines.training.finish import finish
from engines.training.loop import TooManyBadSteps, Trainer
from engines.training.precision import choose_device, seed_everything
from engines.training.project import Project

EXIT_CODES: dict[ev.EndReason, int] = {"finished": 0, "early-stopped": 0, "stopped": 3, "failed": 1}


class _Step:
    """The step count for the listener, before and after there is a trainer."""

    trainer: Trainer | None = None

    def __call__(self) -> int:
        return self.trainer.state.step if self.trainer else 0


def _load(run: RunDirectory, loaded: LoadedConfig, events: ev.EventWriter, listener: CommandListener) -> Trainer:
    """Data, model and optimizer, ready to train. Raises `UserError`."""
    settings = loaded.settings
    torch.set_num_threads(settings.launch.threads or torch.get_num_threads())
    device = choose_device(settings.launch.device)
    seed_everything(settings.training.seed)
    project: Project[Any] = specs.load(loaded.spec.project)()
    data = project.data(settings, device)
    for key, value in data.summary.items():
        print(f"data: {key} {value}")
    model = project.model(settings, data).to(device)
    print(f"model: {sum(p.numel() for p in model.parameters()):,} parameters on {device}", flush=True)
    heads = [head.name for head in loaded.spec.heads]
    return Trainer(run, settings, heads, project, data, model, events, listener)


def _resume(run: RunDirectory, trainer: Trainer) -> None:
    """Go on from the newest checkpoint, if there is one."""
    for folder in (run.checkpoints, run.path, run.export, run.review):
        files.remove_stale_temporaries(folder)
    if (path := checkpoint.resume_point(run)) is None:
        return
    trainer.restore(checkpoint.load(path))
    print(f"resumed from {path.name} at step {trainer.state.step}, epoch {trainer.state.epoch}", flush=True)


def _announce(loaded: LoadedConfig, trainer: Trainer, events: ev.EventWriter) -> None:
    live = trainer.state.live
    device = next(trainer.model.parameters()).device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
    events.write(
        ev.RunStarted(
            project=loaded.spec.name, device=name, epochs=live.epochs, steps_per_epoch=trainer.steps_per_epoch,
            columns=list(loaded.spec.columns), stages=trainer.plan.planned(live.epochs), patience=live.patience,
            resumed_step=trainer.state.step,
        )
    )  # fmt: skip


def _attempt(run: RunDirectory, events: ev.EventWriter, listener: CommandListener, step: _Step) -> ev.Ended:
    loaded = load_config(run.config)
    earlier = RunReader(run)
    earlier.poll()
    trainer = step.trainer = _load(run, loaded, events, listener)
    _resume(run, trainer)
    _announce(loaded, trainer, events)
    try:
        reason = trainer.train(earlier.history.edits())
        if reason != "stopped" and not finish(trainer):
            reason = "stopped"
    except TooManyBadSteps as error:
        return ev.Ended(reason="failed", step=trainer.state.step, detail=str(error))
    detail = "saved, resume goes on from here" if reason == "stopped" else ""
    return ev.Ended(reason=reason, step=trainer.state.step, detail=detail)


def run_attempt(run: RunDirectory, attempt: int) -> int:
    """Carry out one attempt and give the engine's exit code. Every end is on record, with a sentence."""
    events = ev.EventWriter(run.events, attempt)
    step = _Step()
    with CommandListener(run, attempt, events, step) as listener:
        events.write(ev.Phase(phase="loading"))
        try:
            ended = _attempt(run, events, listener, step)
            code = EXIT_CODES[ended.reason]
        except UserError as error:
            ended, code = ev.Ended(reason="failed", step=step(), detail=str(error)), error.exit_code
        except OSError as error:
            detail = f"{error.filename or run.path} cannot be used: {error.strerror or error}"
            ended, code = ev.Ended(reason="failed", step=step(), detail=detail), 1
        except Exception as error:  # a fault of ours or of a project: the traceback goes to the log
            traceback.print_exc()
            ended, code = ev.Ended(reason="failed", step=step(), detail=f"{type(error).__name__}: {error}"), 1
    if ended.reason == "failed":
        print(ended.detail, file=sys.stderr, flush=True)
    events.write(ended, durable=True)
    return code
