"""Scores as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engines.training.comparison import comparison
from engines.training.project import Table
from projects.controls.layout import ACTION
from projects.controls.metrics import SCREEN_PIXELS, Scores

HEAD_VALUES = {
    "action_f1": "action F1, mean over the controls that count",
    "action_change_f1": "action F1 on frames where the control changes",
    "look_mse": "look squared error",
    "look_direction_yaw": "look yaw direction accuracy",
    "look_direction_pitch": "look pitch direction accuracy",
    "hotbar_accuracy": "hotbar top-1 accuracy",
    "cursor_mse": "cursor squared error",
    "cursor_pixels": "cursor error in pixels",
    "inv_f1": "inventory F1, mean over the controls that count",
    "inv_change_f1": "inventory F1 on frames where the control changes",
    "idle_accuracy": "idle accuracy",
}
PERFECT = {"score": 1.0, **{key: 0.0 if key.endswith(("_mse", "_pixels")) else 1.0 for key in HEAD_VALUES}}
"""The value of each metric that is without error."""
CEILING = "ceiling"
_LOOK_CEILING = (
    "The ceiling's look is the best for any frame, not given that the frame is judged (that it turns), which models "
    "learn: theirs may be better."
)
IDLE_GOAL = 0.95
_NO_SUPPORT = "empty: nothing to judge it by; its share of the score goes to the other heads"


def never_pressed(names: Sequence[str]) -> str:
    """What to say of controls without a positive in the training data."""
    return (
        f"Pressed on no training frame where it is judged: {', '.join(names)}; expected at least one, so this cannot "
        "be learned (class weight 1)."
    )


def counted(scores: Scores) -> str:
    """How many controls count in the means, and which do not, as a sentence."""
    heads = (("action", scores.controls[: len(ACTION)]), ("inventory", scores.controls[len(ACTION) :]))
    parts = [f"{sum(scores.counts(c) for c in some)} of {len(some)} {name} controls" for name, some in heads]
    few = [f"{c.name} ({c.support})" for c in scores.controls if not scores.counts(c)]
    without = f" Left out: {', '.join(few)}." if few else ""
    least = scores.scoring.least
    return (
        f"F1 is the mean over {' and '.join(parts)}, those with {least} positives or more (change F1: frames on which "
        f"the control goes on): from fewer it may be chance.{without}"
    )


def _goal(idle_accuracy: float | None) -> str | None:
    """Whether the goal of the source document is met; None where nothing is idle."""
    return None if idle_accuracy is None else "yes" if idle_accuracy > IDLE_GOAL else "no"


def heads_table(columns: Mapping[str, Scores], note: str) -> Table:
    """The score and every head's value, one column a set of predictions, and whether the idle goal is met."""
    screen = "×".join(f"{side:.0f}" for side in SCREEN_PIXELS)
    several = list(columns.values())
    return Table(
        columns=("metric", *columns),
        rows=(
            ("combined score", *(one.score for one in several)),
            *((HEAD_VALUES[key], *(one.values[key] for one in several)) for key in several[0].values),
            (f"idle accuracy above {IDLE_GOAL:g} (the goal)", *(_goal(one.values["idle_accuracy"]) for one in several)),
        ),
        note=f"Pixels of a {screen} screen; {_NO_SUPPORT}. {note}",
    )


def score_tables(scores: Scores, unsupported: Sequence[str]) -> dict[str, Table]:
    """`heads` and `controls`, of one set of predictions; `unsupported` names controls that could not be learned."""
    return {
        "heads": heads_table({"value": scores}, counted(scores)),
        "controls": Table(
            columns=(
                "control",
                "threshold",
                "support",
                "frames",
                "counts",
                "precision",
                "recall",
                "changes",
                "change F1",
                "F1",
            ),
            rows=tuple(
                (
                    c.name,
                    c.threshold,
                    c.support,
                    c.frames,
                    "yes" if scores.counts(c) else "no",
                    c.precision,
                    c.recall,
                    c.changes,
                    c.change_f1,
                    c.f1,
                )
                for c in scores.controls
            ),
            note=" ".join([counted(scores), *([never_pressed(unsupported)] if unsupported else [])]),
        ),
    }


def baseline_table(run: Scores, others: Mapping[str, Scores], note: str) -> Table:
    """The run beside its baselines, and beside the ceiling where there is one."""
    values = {name: {"score": scores.score, **scores.values} for name, scores in others.items()}
    bounds = {name: values.pop(name) for name in (CEILING,) if name in values}
    said = f"{note} {_LOOK_CEILING}" if bounds else note
    return comparison({"score": run.score, **run.values}, values, PERFECT, bounds=bounds, note=said)


def comparison_table(rows: Mapping[str, Scores], note: str, title: str = "predictor") -> Table:
    """Several sets of scores, one a row: combined score and every head's value."""
    return Table(
        columns=(title, "score", *HEAD_VALUES),
        rows=tuple((name, scores.score, *(scores.values[key] for key in HEAD_VALUES)) for name, scores in rows.items()),
        note=note,
    )
