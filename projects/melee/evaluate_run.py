"""`cockpit evaluate RUN --data DIR`: a run's best weights on every game of another store, as its epochs are judged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from engines.contract.rundir import RunDirectory
from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from engines.training.elsewhere import headline, judge
from engines.training.precision import choose_device
from engines.training.trained import open_run
from projects.melee.config import MeleeConfig
from projects.melee.project import Melee


class _Order(msgspec.Struct):
    run: Path
    data: Path


def evaluate(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Report the columns of the table and the rollouts beside constant velocity and persistence.

    Raises `UserError` for bad arguments, `DataError` for a store that cannot be read or has no game that is long
    enough, and for a run without a best checkpoint.
    """
    order = as_struct(arguments, _Order)
    trained = open_run(RunDirectory(order.run))
    cfg, project, device = trained.settings, Melee(), choose_device("auto")
    assert isinstance(cfg, MeleeConfig)
    split = project.other_games(cfg, order.data, device)
    games = len(project.validation.games)
    model = trained.load_into(project.build(cfg)).to(device)
    context.log(f"epoch {trained.state.epoch} of {trained.run.info.id} on {games} games in {order.data}")
    result = judge(
        trained, project, model, split, lambda done, total, unit: context.progress(int(done), int(total), unit)
    )
    note = (
        f"On {cfg.rollouts.windows} windows and {cfg.rollouts.starts} starts at most in {games} games in {order.data}."
    )
    if order.data.resolve() == Path(cfg.data.path).expanduser().resolve():
        note += " The run was trained on most of them: its scores there say nothing of new games."
    context.report({"Headline": headline(trained.spec, result, note), **result.tables})
