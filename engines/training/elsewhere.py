"""A trained model judged on other data than its run's, by its project's own evaluation: for tasks called `evaluate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from engines.contract.spec import Spec
from engines.training.evaluate import evaluate
from engines.training.project import Context, Project, Result, Split, Table
from engines.training.trained import Trained

VALIDATION = "validation."


def judge(
    trained: Trained,
    project: Project[Any],
    model: nn.Module,
    split: Split,
    progress: Callable[[float, float, str], None],
) -> Result:
    """What an evaluation finds of `model` on `split.validation`, with the losses by the weights of the config.

    project: its `data` has been asked for. progress: hears how far what comes after the samples is, and may raise.
    Leaves the model in eval mode.
    """
    cfg, heads = trained.settings, [head.name for head in trained.spec.heads]
    ctx = Context(trained.state.step, trained.state.epoch, 1.0, "", frozenset(heads), cfg=cfg)
    result = evaluate(
        project, cfg, split, model, ctx, cfg.loss_weights.model_dump(),
        heads=heads, interrupted=lambda: False, progress=progress,
    )  # fmt: skip
    assert result is not None
    model.eval()
    return result


def headline(spec: Spec, result: Result, note: str) -> Table:
    """The score and the validation columns of the epoch table, a row each."""
    rows = [("score", result.score)]
    for column in spec.columns:
        if column.source.startswith(VALIDATION):
            name = column.source.removeprefix(VALIDATION)
            rows.append((name, result.values.get(name)))
    return Table(("metric", "value"), tuple(rows), note)
