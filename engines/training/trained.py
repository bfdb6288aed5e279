"""A run opened for a task such as an export, a rollout or play: be it in training, stopped or done."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from engines.basics.errors import DataError
from engines.contract import spec as specs
from engines.contract.config import load_config
from engines.contract.rundir import RunDirectory
from engines.contract.spec import Spec
from engines.thresholds.review import Review, read_review
from engines.training import checkpoint
from engines.training.project import Project, TrainingLog
from engines.training.state import TrainState

MATCH_TRIES = 25
MATCH_SECONDS = 0.2
_VALUES = "validation."


@dataclass(frozen=True)
class Trained:
    """A run at its best checkpoint.

    settings: its config. weights: what `Project.trainable_state` gave. state: where the run stood. log: every epoch up
    to now, later ones too. values: the validation values of the best epoch, by the names that its evaluation gave.
    """

    run: RunDirectory
    spec: Spec
    settings: Any
    weights: Mapping[str, Tensor]
    state: TrainState
    log: TrainingLog
    values: Mapping[str, float | None]

    def load_into(self, model: nn.Module) -> nn.Module:
        """`model` with the weights, in eval mode and without gradients. Raises `DataError` where they do not fit."""
        project: Project[Any] = specs.load(self.spec.project)()
        try:
            project.load_trainable_state(model, dict(self.weights))
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:200]
            raise DataError(f"{self.run.best} does not match the model of {self.run.config} ({reason}).") from None
        return model.eval().requires_grad_(False)


def open_run(run: RunDirectory) -> Trained:
    """The run in the directory `run`; its data is not read.

    Raises `UserError` for a config that is wrong, `DataError` for what is no training, and where there is no best
    checkpoint yet or it is damaged.
    """
    info = run.info
    if info.kind != "training" or info.foreign:
        raise DataError(f"{info.foreign or f'{info.id} is a {info.kind}'}; expected a training run of an engine.")
    loaded = load_config(run.config)
    if not run.best.is_file():
        raise DataError(
            f"{run.path} has no {run.best.name} yet: it is written after the first scored epoch; try again then."
        )
    content = checkpoint.load(run.best)
    best = TrainState.load(content["state"])
    newest = best
    with contextlib.suppress(DataError):  # without last.pt the best one's log is what is known
        if run.last.is_file():
            newest = TrainState.load(checkpoint.load(run.last, joined=False)["state"])
    rows = newest.log if newest.epoch >= best.epoch else best.log
    chosen = best.log[-1]
    return Trained(
        run=run,
        spec=loaded.spec,
        settings=loaded.settings,
        weights=content["model"],
        state=best,
        log=TrainingLog(tuple(rows), best.epoch, float(chosen["score"])),
        values={key.removeprefix(_VALUES): value for key, value in chosen.items() if key.startswith(_VALUES)},
    )


def open_reviewed(run: RunDirectory, check: Callable[[], None]) -> tuple[Trained, Review]:
    """The run and the review arrays of the same step.

    A run in training writes its review just before its best.pt, so a pair that does not match is read again; `check`
    is called meanwhile and may raise. Raises as `open_run` does, and `DataError` where no pair comes to match.
    """
    for _ in range(MATCH_TRIES):
        trained, review = open_run(run), read_review(run.review)
        if review is None:
            raise DataError(f"{run.review} has no review; the next best epoch of a resumed run writes one.")
        step, reviewed = trained.state.step, review.about.step
        if reviewed == step:
            return trained, review
        check()
        time.sleep(MATCH_SECONDS)
    raise DataError(
        f"The review in {run.review} is of step {reviewed} and {run.best.name} of step {step}: "
        "the disk was full when the newer one was saved; resume the run until its next best."
    )


def serialised(state: Mapping[str, Tensor]) -> bytes:
    """A plain state dict on the CPU, readable with `torch.load(…, weights_only=True)`."""
    buffer = io.BytesIO()
    torch.save({name: tensor.detach().cpu() for name, tensor in state.items()}, buffer)
    return buffer.getvalue()
