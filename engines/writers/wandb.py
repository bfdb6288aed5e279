"""Weights & Biases: one run of theirs for a run of ours, whatever number of attempts it has.

Its own variables hold: WANDB_MODE=offline needs no account and writes to `wandb/` in the run; WANDB_PROJECT,
WANDB_ENTITY. The axis is our step, a metric of its own: theirs may not go back, as ours does after a resume.
"""

from __future__ import annotations

import os
from typing import Any

from engines.writers.writer import Beginning, Values

WELL = ("finished", "early-stopped", "stopped")


class WandbWriter:
    def start(self, beginning: Beginning) -> None:
        import wandb

        info = beginning.info
        self._run: Any = wandb.init(
            project=os.environ.get("WANDB_PROJECT") or info.project, id=info.id, name=info.label or info.id,
            notes=info.notes or None, config=dict(beginning.config), dir=str(beginning.run.path), resume="allow",
            settings=wandb.Settings(console="off", disable_git=True, disable_code=True),
        )  # fmt: skip
        self._run.define_metric("step")
        self._run.define_metric("*", step_metric="step")

    def log(self, step: int, time: float, values: Values) -> None:
        self._run.log({"step": step, "time": time, **values})

    def flush(self) -> None:
        """It sends what it has by itself."""

    def close(self, reason: str) -> None:
        self._run.summary["state"] = reason
        self._run.finish(exit_code=0 if reason in WELL else 1)
