"""The work of a training engine: load, resume, train, finish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import torch

from engines.basics import files
from engines.basics.errors import DataError
from engines.contract import events as ev
from engines.contract import spec as specs
from engines.contract.config import LoadedConfig, load_config
from engines.contract.rundir import RunDirectory, TrainLoss
from engines.contract.spec import Column, Spec
from engines.host.facts import device_name
from engines.runs import provenance
from engines.runs.saved import epoch_of, shards_of
from engines.runs.state import RunReader
from engines.runtime.attempt import Attempt
from engines.runtime.listener import CommandListener
from engines.runtime.progress import ProgressEvents, StopRequested
from engines.runtime.room import is_full
from engines.runtime.staging import staged
from engines.training import checkpoint
from engines.training import ranks as rk
from engines.training.finish import finish
from engines.training.loop import Trainer
from engines.training.out_of_memory import is_out_of_memory, sentence
from engines.training.precision import choose_device, numeric_flags, seed_everything
from engines.training.project import Project
from engines.training.saving import Diverged
from engines.writers.beside import WritersBeside


def load(
    run: RunDirectory, loaded: LoadedConfig, events: ev.EventWriter, listener: CommandListener,
    *, train_loss: TrainLoss = "pooled", edition: int | None = None,
) -> Trainer:  # fmt: skip
    """Data, model and optimizer, ready to train, by the newest `edition` where none is given. Raises `UserError`."""
    settings = loaded.settings
    threads = settings.launch.threads or torch.get_num_threads()
    torch.set_num_threads(max(1, threads // rk.local_count()))
    device = choose_device(rk.own_device(settings.launch.device))
    if device.type == "cuda" and settings.launch.share < 1:  # so that the one beside it is not out of memory instead
        torch.cuda.set_per_process_memory_fraction(settings.launch.share, device)
    ranks = rk.join(device)
    rk.check_batches(settings.training, ranks.count)
    seed_everything(settings.training.seed)
    project: Project[Any] = specs.load(loaded.spec.project)()
    project.edition = loaded.spec.edition if edition is None else edition
    project.data_progress = ProgressEvents(events, listener)  # type: ignore[method-assign]
    data = project.data(settings, device)
    for key, value in data.summary.items():
        print(f"data: {key} {value}")
    model = project.model(settings, data).to(device)
    ranks.make_equal(model)
    rk.take_own_random(ranks, settings.training.seed)
    print(f"model: {sum(p.numel() for p in model.parameters()):,} parameters on {full_name(device)}", flush=True)
    spec = loaded.spec
    return Trainer(
        run, settings, spec.heads, project, data, model, events, listener,
        metrics=spec.measured, train_loss=train_loss, ranks=ranks,
    )  # fmt: skip


def full_name(device: torch.device) -> str:
    """`cuda:0 (NVIDIA H100)`; of what is no GPU just its name."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)


def resume(run: RunDirectory, trainer: Trainer) -> None:
    """Go on from the newest checkpoint, if there is one."""
    ranks = trainer.work.ranks
    if ranks.first:
        for folder in (run.checkpoints, run.path, run.export, run.review):
            files.remove_stale_temporaries(folder)
    if (path := ranks.from_first(checkpoint.resume_point(run))) is None:
        return
    try:
        trainer.restore(trainer.checkpoints.read(path))
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split())[:200]
        raise DataError(
            f"{path} does not match the model and the settings of {run.config} ({type(error).__name__}: {reason}); "
            "undo the change in one of them."
        ) from None
    if not ranks.first:
        pass
    elif path == run.fork:
        _begin_fork(run, trainer)
    else:
        _name_best(run, trainer)
        _look_after_best(run, trainer)
    trainer.state.become(ranks.from_first(trainer.state))
    print(f"resumed from {path.name} at step {trainer.state.step}, epoch {trainer.state.epoch}", flush=True)


def _begin_fork(run: RunDirectory, trainer: Trainer) -> None:
    """Take the parent's checkpoint as the beginning of a run of its own.

    Where the parent has its best one no more, there is nothing to beat; of a replay of a fork that is known already.
    """
    info, state = run.info, trainer.state
    has_best = checkpoint.looks_whole(run.best) if info.fork_best is None else info.fork_best
    if not has_best:
        state.best_score, state.best_epoch = None, 0
        run.best.unlink(missing_ok=True)
    if has_best != info.fork_best:
        run.write_info(msgspec.structs.replace(info, fork_best=has_best))


def _name_best(run: RunDirectory, trainer: Trainer) -> None:
    """Call the last checkpoint the best where it is, and a kill came between its two names."""
    state = trainer.state
    ends_best = state.best_epoch == state.epoch > 0 == state.step_in_epoch and state.stage_epoch > 0
    whole = run.last.is_file() and not shards_of(run.last)  # a best one is saved whole
    if ends_best and whole and epoch_of(run.last) == state.epoch != epoch_of(run.best):
        files.replace_by_link(run.last, run.best)


def _look_after_best(run: RunDirectory, trainer: Trainer) -> None:
    """What best.pt no longer holds is nothing to beat: without this the run would deliver other weights as its best."""
    state = trainer.state
    if not state.best_epoch or checkpoint.looks_whole(run.best):
        return
    epoch, fate = state.best_epoch, "it was restored from the kept checkpoint"
    kept = checkpoint.kept(run, epoch)
    if run.best.exists():
        run.best.rename(run.best.with_suffix(".pt.damaged"))
    if checkpoint.looks_whole(kept):
        files.replace_by_link(kept, run.best)
    else:
        fate = "the next epoch sets a new best"
        state.best_score, state.best_epoch = None, 0
    text = f"best.pt, of epoch {epoch}, was missing or damaged: {fate}"
    trainer.room.write(ev.Alert(code="best-lost", level="warning", text=text, step=state.step))


def _columns(spec: Spec, trainer: Trainer) -> list[Column]:
    """The project's columns, and the stage behind the first where a run has several."""
    columns = list(spec.columns)
    names = [stage.name for stage in trainer.schedule.plan.stages]
    if len(names) > 1:
        columns.insert(1, Column("Stage", "stage", f"{max(map(len, names))}s"))
    return columns


def _announce(loaded: LoadedConfig, trainer: Trainer, parent: str) -> None:
    """What is to be trained, from where. parent: of a fork that begins with its parent's checkpoint."""
    live, schedule = trainer.state.live, trainer.schedule
    device = device_name(str(next(trainer.model.parameters()).device))
    trainer.room.write(
        ev.RunStarted(
            project=loaded.spec.name, device=device, epochs=live.epochs, steps_per_epoch=schedule.steps_per_epoch,
            columns=_columns(loaded.spec, trainer), stages=schedule.plan.planned(live.epochs),
            patience=schedule.plan.patience(trainer.state), resumed_step=trainer.state.step,
            resumed_epoch=trainer.state.epoch, parent=parent, best_score=trainer.state.best_score,
            best_epoch=trainer.state.best_epoch, world_size=trainer.work.ranks.count,
        )
    )  # fmt: skip


def train(attempt: Attempt) -> ev.Ended:
    """Train as the run directory says, from wherever its checkpoints stand. Raises `UserError`."""
    try:
        return _train(attempt)
    except StopRequested:
        return ev.Ended(reason="stopped", step=attempt.listener.step(), detail="stopped while loading")
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        error.add_note("while loading")  # where no other note came before
        raise DataError(sentence(error)) from None
    finally:
        rk.leave()


def _train(attempt: Attempt) -> ev.Ended:
    run, events, listener = attempt.run, attempt.events, attempt.listener
    loaded = load_config(run.config)
    made_with = provenance.current(loaded)
    progress = ProgressEvents(events, listener)
    loaded = replace(loaded, settings=staged(loaded.settings, progress, progress.check))
    earlier = RunReader(run)
    earlier.poll()
    info = run.info
    trainer = load(run, loaded, events, listener, train_loss=info.train_loss, edition=info.edition)
    made_with.facts |= numeric_flags()
    ranks = trainer.work.ranks
    if ranks.first:
        provenance.record(run, events.attempt, made_with)
    listener.step = lambda: trainer.state.step
    forks = checkpoint.resume_point(run) == run.fork
    resume(run, trainer)
    _announce(loaded, trainer, info.parent or "" if forks else "")
    edits = ranks.from_first(earlier.history.edits())
    if not ranks.first:
        return _to_the_end(trainer, edits)
    with WritersBeside(run, loaded.settings.output.writers, events) as writers:
        ended = _to_the_end(trainer, edits)
        writers.reason = ended.reason
    return ended


def _to_the_end(trainer: Trainer, edits: Sequence[ev.CommandAnswer]) -> ev.Ended:
    try:
        reason = trainer.train(edits)
        if reason != "stopped" and not finish(trainer):
            reason = "stopped"
    except Diverged as error:
        return ev.Ended(reason="failed", step=trainer.state.step, detail=str(error))
    except RuntimeError as error:
        error.add_note(f"while {trainer.phases.current}")
        raise
    except OSError as error:
        if not (is_full(error) and trainer.listener.signalled):
            raise
        detail = "disk full: progress since the last checkpoint is lost; free some space, then resume"
        return ev.Ended(reason="stopped", step=trainer.state.step, detail=detail)
    resumable = reason == "stopped" and not trainer.run.info.why_no_resume
    detail = f"saved at step {trainer.state.step:,}; r resumes" if resumable else ""
    return ev.Ended(reason=reason, step=trainer.state.step, detail=detail)
