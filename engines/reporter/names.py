"""Metrics that a program names as it likes: which of them are of validation, and the table that shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engines.contract.metric_names import is_validation
from engines.contract.spec import Column
from engines.contract.steps import FIXED

PLACES = ("epoch", "time")
"""Columns of step records that say where a step stands, behind `step` and `attempt`; no metric may be called so."""


def column_name(name: str) -> str:
    """The column of a metric in step records."""
    return f"{name}_" if name in (*FIXED, *PLACES) else name


def split_values(values: Mapping[str, float]) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """Values of training and of validation."""
    return (
        {name: value for name, value in values.items() if not is_validation(name)},
        {name: value for name, value in values.items() if is_validation(name)},
    )


def table_columns(names: Iterable[str], *, score: bool = False) -> list[Column]:
    """A column for every metric, behind the epoch."""
    metrics = [
        Column(name, f"{'validation' if is_validation(name) else 'train'}.{name}", ".4f")
        for name in names
        if name != "lr"
    ]
    rate = [Column("lr", "lr", ".1e")] if "lr" in names else []
    return [Column("Ep", "epoch", "d"), *metrics, *([Column("Score", "score")] if score else []), *rate]
