"""`cockpit evaluate RUN --data DIR`: a run's best weights on every drive of another folder, as in its report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from engines.basics.errors import DataError
from engines.contract.rundir import RunDirectory
from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from engines.training.elsewhere import headline, judge
from engines.training.precision import choose_device
from engines.training.trained import open_run
from projects.sim.config import SimConfig
from projects.sim.project import SimProject


class _Order(msgspec.Struct):
    run: Path
    data: Path


def evaluate(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Report the columns of the table, classes and confusions, and the baselines that are fitted on the run's own data.

    Raises `UserError` for bad arguments, `DataError` for drives that cannot be read, for a run without a best
    checkpoint or whose own data has gone, and for one that was trained on samples of a dataset class.
    """
    order = as_struct(arguments, _Order)
    trained = open_run(RunDirectory(order.run))
    cfg, project, device = trained.settings, SimProject(), choose_device("auto")
    assert isinstance(cfg, SimConfig)
    if cfg.data.train is not None:
        raise DataError(
            f"{trained.run.info.id} was trained on samples of a dataset, and only drives are scored "
            "like this; name the new samples as data.validation of a training."
        )
    own = project.data(cfg, device)  # class weights and baselines are of the run's training windows
    model = trained.load_into(project.model(cfg, own)).to(device)
    split = project.other_drives(cfg, order.data, device)
    context.log(
        f"epoch {trained.state.epoch} of {trained.run.info.id} on {len(split.validation)} windows in {order.data}"
    )
    result = judge(
        trained, project, model, split, lambda done, total, unit: context.progress(int(done), int(total), unit)
    )
    note = f"On every labelled window of the drives in {order.data}."
    if order.data.resolve() == Path(cfg.data.path).expanduser().resolve():
        note += " The run was trained on most of them: its scores there say nothing of new drives."
    tables = project.report(cfg, split, model, result)
    context.report({"headline": headline(trained.spec, result, note), **result.tables, **tables})
