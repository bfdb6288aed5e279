"""A run beside the baselines that it has to beat, in one table that says where it does not."""

from __future__ import annotations

import math
from collections.abc import Mapping

from engines.training.project import Cell, Table

LOSES = "better than the run in"
STRONGEST = "skill over the strongest"
WORSE = "✗ worse than"
"""The last row: in each column where the run loses, the baseline that is best there."""
Values = Mapping[str, float | None]


def comparison(
    run: Values,
    baselines: Mapping[str, Values],
    perfect: Mapping[str, float | None],
    *,
    bounds: Mapping[str, Values] | None = None,
    title: str = "predictor",
    note: str = "",
) -> Table:
    """A row each for the run, the baselines and the bounds, then one for the run's skill over each baseline.

    The last two rows are the skill over each column's strongest baseline, and a mark in every column where that one is
    better than the run.

    perfect: the metrics, which are the columns, and the value of each that is without error (1 for an accuracy, 0 for
    an error); None where there is no such value: more is better then. bounds: what nobody can beat, such as a ceiling
    read in hindsight: shown, and compared with nothing. A value that is missing or not finite is compared with nothing.

    Skill is 1 - e(run) / e(baseline), with e the distance from the perfect value: the share of the baseline's error
    that the run removes.
    """
    rows: list[tuple[Cell, ...]] = []
    for name, values in {"this run": run, **baselines, **(bounds or {})}.items():
        lost = ", ".join(_lost(run, values, perfect)) if name in baselines else ""
        rows.append((name, *(values.get(metric) for metric in perfect), lost))
    for name, values in baselines.items():
        if all(value is None for value in values.values()):  # one that could not be made
            continue
        skills = (skill(run.get(metric), values.get(metric), best) for metric, best in perfect.items())
        rows.append((f"skill over {name}", *skills, ""))
    strongest = {metric: _strongest(baselines, metric, best) for metric, best in perfect.items()}
    values = {metric: baselines[name].get(metric) for metric, name in strongest.items() if name is not None}
    skills = (skill(run.get(metric), values.get(metric), best) for metric, best in perfect.items())
    lost_in = _lost(run, values, perfect)
    rows.append((STRONGEST, *skills, ""))
    rows.append((WORSE, *(f"✗ {strongest[metric]}" if metric in lost_in else "" for metric in perfect), ""))
    said = (
        "Skill: the share of a baseline's error that this run removes, 1 at best, below 0 where the run is worse. "
        f"{WORSE}: the strongest baseline, where the run loses to it."
    )
    return Table((title, *perfect, LOSES), tuple(rows), f"{note} {said}".strip())


def skill(run: float | None, baseline: float | None, perfect: float | None) -> float | None:
    """The share of the baseline's error that the run removes; None where that cannot be said."""
    errors = _errors(run, baseline, perfect)
    if perfect is None or errors is None or errors[1] == 0:
        return None
    return 1 - errors[0] / errors[1]


def _strongest(baselines: Mapping[str, Values], metric: str, perfect: float | None) -> str | None:
    """The baseline that is best in `metric`, the first of equal ones; None where none has a value."""
    found: str | None = None
    for name, values in baselines.items():
        if _errors(values.get(metric), values.get(metric), perfect) is None:
            continue
        if found is None or metric in _lost(baselines[found], values, {metric: perfect}):
            found = name
    return found


def _lost(run: Values, baseline: Values, perfect: Mapping[str, float | None]) -> list[str]:
    """The metrics in which the baseline is better."""
    pairs = {metric: _errors(run.get(metric), baseline.get(metric), best) for metric, best in perfect.items()}
    return [metric for metric, errors in pairs.items() if errors is not None and errors[0] > errors[1]]


def _errors(run: float | None, baseline: float | None, perfect: float | None) -> tuple[float, float] | None:
    """How far both are from perfect; of what has no such value, how little they are."""
    if run is None or baseline is None or not (math.isfinite(run) and math.isfinite(baseline)):
        return None
    return (-run, -baseline) if perfect is None else (abs(perfect - run), abs(perfect - baseline))
