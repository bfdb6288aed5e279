"""The end of a finished run: the best weights, their tables in report.json, and what the project delivers."""

from __future__ import annotations

from engines.training import checkpoint
from engines.training.loop import Trainer
from engines.training.project import TrainingLog


def finish(trainer: Trainer) -> bool:
    """Load the best weights, evaluate them, report and export. False when a stop cut it short.

    Raises OSError where the report or an export cannot be written; the checkpoints are safe by then.
    """
    run, project, settings, data, state = trainer.run, trainer.project, trainer.settings, trainer.data, trainer.state
    if run.best.is_file():
        project.load_trainable_state(trainer.model, checkpoint.load(run.best)["model"])
    result = trainer.evaluate()
    if result is None:
        return False
    trainer.phases.enter("saving", "report and export")
    trainer.model.eval()
    trainer.records.write_report({**result.tables, **project.report(settings, data, trainer.model, result)})
    best = state.best_score if state.best_score is not None else float("nan")
    log = TrainingLog(tuple(state.log), state.best_epoch, best)
    trainer.room.when_possible(lambda: project.export(settings, run.export, trainer.model, data, result, log))
    return True
