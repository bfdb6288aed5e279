"""Which metrics share a chart: training and validation of the same thing, whatever a log calls them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeVar

Role = Literal[
    "logged", "train", "validation", "test", "score",
    "run-1", "run-2", "run-3", "run-4", "run-5", "run-6", "run-7", "run-8",
]  # fmt: skip
RUN_ROLES: tuple[Role, ...] = ("run-1", "run-2", "run-3", "run-4", "run-5", "run-6", "run-7", "run-8")
"""Of the logs in one chart, where it shows several."""
BAND = "-band"
"""Ends the style of what lies around the line of a role."""
Chart = TypeVar("Chart")
WORDS: dict[str, Role] = {
    "train": "train", "training": "train", "val": "validation", "valid": "validation", "validation": "validation",
    "eval": "validation", "test": "test",
}  # fmt: skip
LEADING = ("score", "loss")
"""Charts that are looked at first of all, wherever a log begins to tell them."""
_PREFIX = re.compile(r"([A-Za-z]+)[./_ ](.+)", re.DOTALL)
_SUFFIX = re.compile(r"(.+)[./]([A-Za-z]+)", re.DOTALL)


def chart_and_role(name: str) -> tuple[str, Role]:
    """`train.loss`, `val_loss_epoch`, `loss/test` → `loss` and the role; `loss`, `train_loss_step`: `logged`.

    `score` is its own role: it is amber wherever it is drawn.
    """
    if (found := _PREFIX.fullmatch(name)) and (role := WORDS.get(found[1].lower())):
        chart = found[2].removesuffix("_epoch")
        return (chart, role) if not chart.endswith("_step") else (chart.removesuffix("_step"), "logged")
    if (found := _SUFFIX.fullmatch(name)) and (role := WORDS.get(found[2].lower())):
        return found[1], role
    return name, "score" if name == "score" else "logged"


def grouped(names: Iterable[str]) -> dict[str, list[tuple[Role, str]]]:
    """Charts by name, each with the (role, name) of its metrics.

    Charts with a common beginning (`gpu/…`) stand together; else they come in the order in which they first appeared,
    behind those that are `LEADING`.
    """
    charts: dict[str, list[tuple[Role, str]]] = {name: [] for name in LEADING}
    for name in names:
        chart, role = chart_and_role(name)
        charts.setdefault(chart, []).append((role, name))
    return in_families({chart: members for chart, members in charts.items() if members})


def in_families(charts: Mapping[str, Chart]) -> dict[str, Chart]:
    """The charts with those of one family beside each other, else in their order."""
    families: dict[str, int] = {}
    for chart in charts:
        families.setdefault(family(chart), len(families))
    return dict(sorted(charts.items(), key=lambda item: families[family(item[0])]))


def family(chart: str) -> str:
    """`gpu` of `gpu/power` and `gpu.memory`; a chart without one is its own."""
    return re.split(r"[./]", chart, maxsplit=1)[0]
