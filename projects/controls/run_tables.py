"""The tables of a finished run, as people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from engines.training.project import Cell, Table
from engines.training.reliability import Bin
from projects.controls.calibration import ButtonCalibration
from projects.controls.metrics import Scores
from projects.controls.report import HEAD_VALUES, comparison_table
from projects.controls.self_fed import MOST_FRAMES, MOST_SESSIONS
from projects.controls.sending import Rules

LONG_PRESS = 0.5
"""Seconds beyond which a press is no tap."""
MOSTLY = 0.5
"""Share of a pulse's presses that is long where the player holds it."""


def not_made(error: Exception) -> Table:
    """In place of what needs data that has gone, which must not cost the run its end."""
    return Table(("predictor",), (), note=f"Not made: {error}")


def change_table(predictors: Mapping[str, Scores]) -> Table:
    """F1 of each on-off control on the frames where it changes, one column a predictor."""
    known = {name: scores for name, scores in predictors.items() if scores.controls}
    by_control = zip(*(scores.controls for scores in known.values()), strict=True)
    return Table(
        columns=("control", "changes", *known),
        rows=tuple((same[0].name, same[0].changes, *(one.change_f1 for one in same)) for same in by_control),
        note="Changes: judged frames that differ from the frame before. To repeat the last controls scores 0 on them, "
        "however good it looks on all frames. Empty: the control is never pressed.",
    )


def session_table(sessions: Mapping[str, Scores], windows: Sequence[int], pooled: Scores) -> Table:
    """A row a session, then all windows pooled, then mean and standard deviation over the sessions."""
    by_session = comparison_table(sessions, "", "session")
    rows = [(row[0], count, *row[1:]) for row, count in zip(by_session.rows, windows, strict=True)]
    (together,) = comparison_table({"pooled": pooled}, "").rows
    values = [row[1:] for row in by_session.rows]
    return Table(
        columns=("session", "windows", *by_session.columns[1:]),
        rows=(
            *rows,
            (together[0], sum(windows), *together[1:]),
            ("mean over sessions", None, *(mean for mean, _ in _spread(values))),
            ("standard deviation", None, *(deviation for _, deviation in _spread(values))),
        ),
        note="Pooled: all windows at once, as in every other table. Windows of a session are alike, so how far the "
        "sessions lie apart says more about new ones than the number of windows.",
    )


def sent_table(raw: Scores, sent: Scores, rules: Rules, presses: Sequence[NDArray[np.float64]]) -> Table:
    """A row a control: as it is on at its threshold, as it is sent, and how long the player's presses are."""
    rows: list[tuple[Cell, ...]] = []
    held = []
    for k, (on, out) in enumerate(zip(raw.controls, sent.controls, strict=True)):
        pairs = ((on.precision, out.precision), (on.recall, out.recall), (on.f1, out.f1))
        seconds = presses[k]
        long = float(seconds[seconds > LONG_PRESS].sum() / seconds.sum()) if seconds.sum() else None
        kind = "hold" if rules.holds[k] else "pulse"
        rows.append((on.name, kind, on.threshold, on.support, long, *(value for pair in pairs for value in pair)))
        if kind == "pulse" and long is not None and long > MOSTLY:
            held.append(f"{on.name} ({long:.0%} of it in presses of over {LONG_PRESS:g} s)")
    note = (
        "At the tuned thresholds. On: probability ≥ threshold. Sent: what the policy's rules leave of it; of a pulse "
        f"one frame a press. Long: share of the player's presses, in time, that last over {LONG_PRESS:g} s."
    )
    if held:
        note += (
            f" Pulses that the player holds: {', '.join(held)}; post_processing.kinds.{held[0].split()[0]}=hold in the "
            "config of a run lets its policy hold it."
        )
    return Table(
        columns=(
            "control", "kind", "threshold", "support", "long", "precision", "precision, sent", "recall", "recall, sent",
            "F1", "F1, sent",
        ),
        rows=tuple(rows),
        note=note,
    )  # fmt: skip


def gap_table(pairs: Mapping[str, tuple[Scores, Scores]], windows: int) -> Table:
    """Teacher-forced and self-fed scores and their difference, one row a metric; `pairs` by thresholds or predictor."""
    rows: list[tuple[Cell, ...]] = []
    for name, title in {"score": "combined score", **HEAD_VALUES}.items():
        row: list[Cell] = [title]
        for pair in pairs.values():
            forced, fed = (one.score if name == "score" else one.values[name] for one in pair)
            row += [forced, fed, None if forced is None or fed is None else forced - fed]
        rows.append(tuple(row))
    heads = (f"{which}, {thresholds}" for thresholds in pairs for which in ("teacher-forced", "self-fed", "gap"))
    return Table(
        columns=("metric", *heads),
        rows=tuple(rows),
        note="Teacher-forced: the history holds the player's recorded controls, as in every other table. Self-fed: it "
        "holds the predictor's own decisions at these thresholds, as in the game; pose and state stay as recorded. "
        "Gap: the first minus the second. Window-linear: the baseline at its own thresholds, which sees the same. On "
        f"the same {windows} windows, the first {MOST_FRAMES} at most of each of the first {MOST_SESSIONS} sessions.",
    )


def leak_table(predictors: Mapping[str, Mapping[str, Scores]], flagged: str) -> Table:
    """A row a predictor and way to show it the state; of the values, those that the leaking columns are effects of.

    flagged: which of all columns were found to leak, as a sentence.
    """
    keys = ("action_f1", "action_change_f1", "hotbar_accuracy", "idle_accuracy")
    given_away = ("sprint", "sneak", "use_item")
    rows = []
    for predictor, variants in predictors.items():
        for shown, scores in variants.items():
            f1 = {control.name: control.f1 for control in scores.controls}
            values = (scores.values[key] for key in keys)
            rows.append((predictor, shown, scores.score, *values, *(f1[name] for name in given_away)))
    return Table(
        columns=("predictor", "state", "score", *keys, *(f"{name} F1" for name in given_away)),
        rows=tuple(rows),
        note=f"{flagged} Here sprinting, sneaking, is_using_item and hotbar_slot are of the frame before (lagged, as "
        "trained), of the same frame (as recorded), or zero (dropped). A predictor that gains as recorded reads the "
        "label off the state; one that loses when they are dropped leans on the past. This run was not trained again: "
        "what it has learned of lagged state may fail on other state. The regressions were, so theirs is what the "
        "state gives away.",
    )


def calibration_table(controls: Sequence[ButtonCalibration]) -> Table:
    """A row a control, raw and corrected side by side, and the mean over the judged controls."""
    heads = (f"{which} {value}" for value in ("mean", "Brier", "ECE") for which in ("raw", "corrected"))
    rows: list[tuple[Cell, ...]] = []
    for c in controls:
        pairs = ((c.raw.mean, c.corrected.mean), (c.raw.brier, c.corrected.brier), (c.raw.ece, c.corrected.ece))
        rows.append((c.name, c.weight, c.frames, c.pressed, *(value for pair in pairs for value in pair)))
    return Table(
        columns=("control", "weight", "frames", "pressed", *heads),
        rows=(*rows, ("mean over controls", None, None, *(mean for mean, _ in _spread([row[3:] for row in rows])))),
        note="Raw: the sigmoid q, trained with positives weighing w. Corrected: q / (q + w·(1 - q)), the frequency "
        "that it estimates. Pressed: share of the frames, a calibrated mean. Thresholds are for raw values.",
    )


def reliability_table(raw: Sequence[Bin], corrected: Sequence[Bin]) -> Table:
    """Ten bins of probability over all judged on-off controls; in each, predicted and observed frequency."""
    return Table(
        columns=(
            "probability", "raw frames", "raw predicted", "raw pressed", "corrected frames", "corrected predicted",
            "corrected pressed",
        ),
        rows=tuple(
            (f"{one.low:.1f} to {one.low + 0.1:.1f}", one.count, one.predicted, one.observed, other.count,
             other.predicted, other.observed)
            for one, other in zip(raw, corrected, strict=True)
        ),
        note="All on-off controls together. Calibrated: predicted equals pressed in every bin.",
    )  # fmt: skip


def _spread(rows: Sequence[Sequence[Cell]]) -> list[tuple[float | None, float | None]]:
    """Mean and standard deviation (of a sample) of each column over the numbers in it."""
    columns = ([value for value in column if isinstance(value, int | float)] for column in zip(*rows, strict=True))
    return [
        (float(np.mean(column)) if column else None, float(np.std(column, ddof=1)) if len(column) > 1 else None)
        for column in columns
    ]
