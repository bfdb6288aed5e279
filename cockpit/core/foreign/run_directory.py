"""A run's directory among the logs: the metrics that the charts show of it."""

from __future__ import annotations

from pathlib import Path

from cockpit.core.metrics.run_metrics import RunMetrics
from engines.contract.rundir import RunDirectory


class RunSource(RunMetrics):
    """Follows one run. Metrics of steps go by their column, those of epochs by `train.loss`, `score`."""

    kind = "run's directory"

    def __init__(self, path: Path) -> None:
        super().__init__(RunDirectory(path), str(path))
        self.path = path
