"""The end of a finished run: the best weights, their tables in report.json, and what the project delivers."""

from __future__ import annotations

from torch import nn

from engines.training import checkpoint
from engines.training.loop import Trainer
from engines.training.project import Cell, Table, TrainingLog


def stages_table(trainer: Trainer) -> Table:
    """A row for each stage that had an epoch: which these were, its best one, and the checkpoint that holds it."""
    rows: list[tuple[Cell, ...]] = []
    kept = trainer.run.stage_bests()
    for number, stage in enumerate(trainer.schedule.plan.stages, 1):
        epochs = [row for row in trainer.state.log if row["stage"] == stage.name]
        best = next((row for row in reversed(epochs) if row["best"]), None)
        if epochs:
            file = kept[number].name if number in kept else trainer.run.best.name
            span = f"{epochs[0]['epoch']}–{epochs[-1]['epoch']}"
            told = (best["epoch"], best["score"], file) if best else (None, None, "")
            rows.append((number, stage.name, span, *told))
    note = "`cockpit fork RUN --stage N` and `cockpit export RUN --stage N` begin with a stage's best checkpoint."
    return Table(("stage", "name", "epochs", "best epoch", "score", "checkpoint"), tuple(rows), note)


def finish(trainer: Trainer) -> bool:
    """Load the best weights, evaluate them, report and export, all on rank 0. False when a stop cut it short.

    Raises OSError where the report or an export cannot be written; the checkpoints are safe by then.
    """
    with trainer.work.whole_model() as model:
        return not trainer.work.ranks.first or _finish(trainer, model)


def _finish(trainer: Trainer, model: nn.Module) -> bool:
    run, project, settings, data, state = trainer.run, trainer.project, trainer.settings, trainer.data, trainer.state
    if run.best.is_file():
        project.load_trainable_state(model, checkpoint.load(run.best)["model"])
    result = trainer.evaluate(alone=model)
    if result is None:
        return False
    trainer.phases.enter("saving", "report")
    model.eval()
    project.report_progress = trainer.phases.progress  # type: ignore[method-assign]
    tables = {**result.tables, **project.report(settings, data, model, result)}
    if len(trainer.schedule.plan.stages) > 1:
        tables["stages"] = stages_table(trainer)
    trainer.records.write_report(tables)
    trainer.phases.enter("saving", "export")
    best = state.best_score if state.best_score is not None else float("nan")
    log = TrainingLog(tuple(state.log), state.best_epoch, best)
    trainer.room.when_possible(lambda: project.export(settings, run.export, model, data, result, log))
    return True
