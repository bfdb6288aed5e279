"""One pass over the validation windows: everything stays on the device until the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import nn

from engines.training.project import Batch, Context, Evaluation, Loss, Result
from projects.controls.layout import BINARY, CONTROL_NAMES, HOTBAR
from projects.controls.losses import Errors, PosWeights, head_losses, off_controls
from projects.controls.metrics import SCORING, Prediction, Scoring, Thresholds, Truth, score_controls
from projects.controls.predictions import Gathered
from projects.controls.report import score_tables
from projects.controls.sending import Rules


@dataclass(frozen=True, kw_only=True)
class ControlsResult(Result):
    """With what the scores were made of, for the report of the run. off: controls that the stage does not train."""

    prediction: Prediction
    truth: Truth
    off: frozenset[str] = frozenset()


class ControlsEvaluation(Evaluation):
    """Scores what the stage trains of the model, and keeps what a review of the thresholds needs.

    Args:
        weights: class weights of the losses.
        thresholds: from which probability on a control counts as pressed.
        sessions: (windows,) which session each validation window is from; windows are added in this order.
        sending: `sending_arrays`, where thresholds are tuned as they are sent.
        scoring: how the values become the score.
        errors: how errors of look and cursor count in the losses.
    """

    def __init__(
        self,
        weights: PosWeights,
        thresholds: Thresholds,
        sessions: NDArray[np.int64],
        sending: Mapping[str, NDArray[np.generic]],
        scoring: Scoring = SCORING,
        errors: Errors | None = None,
    ) -> None:
        self._weights = weights
        self._thresholds = thresholds
        self._sessions, self._sending = sessions, sending
        self._scoring = scoring
        self._errors = errors or Errors()
        self._gathered = Gathered()
        self.kept = self._gathered.parts
        self._off: frozenset[str] = frozenset()

    def add(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        outputs = model(batch["features"], batch["mask"])
        self._gathered.add(outputs, batch)
        self._off = off_controls(ctx)
        losses = head_losses(outputs, batch, self._weights, self._off, self._errors)
        return {name: loss for name, loss in losses.items() if name in ctx.heads}

    def result(self) -> ControlsResult:
        self._gathered.parts = self.kept or []
        prediction, truth = self._gathered.arrays()
        scores = score_controls(prediction, truth, self._thresholds, self._off, self._scoring)
        return ControlsResult(
            values=scores.values,
            score=scores.score,
            review={
                **review_arrays(prediction, truth, self._sessions, self._scoring.least),
                **self._sending,
                **self._weights.arrays(),
            },
            tables=score_tables(scores, self._weights.unsupported),
            prediction=prediction,
            truth=truth,
            off=self._off,
        )


def review_arrays(
    prediction: Prediction, truth: Truth, sessions: NDArray[np.int64], least: int = 1
) -> dict[str, NDArray[np.generic]]:
    """What choosing thresholds needs of n windows.

    names: (15,) controls. scores, targets, masks: (n, 15) probabilities, whether pressed, whether judged.
    idle: (n,). groups: (n,) session. hotbar_confidence, hotbar_correct, hotbar_mask: (n,) for the slot chosen.
    least_support: (), positives from which on a control counts in the totals; not there where one is enough.
    """
    targets, masks = truth.targets, truth.masks
    slot = targets[:, HOTBAR].argmax(1)
    return {
        "names": np.array([CONTROL_NAMES[column] for column in BINARY]),
        "scores": np.concatenate([prediction.action, prediction.inv], axis=1),
        "targets": targets[:, BINARY] > 0.5,
        "masks": masks.binary,
        "idle": masks.idle,
        "groups": sessions,
        "hotbar_confidence": prediction.hotbar.max(1),
        "hotbar_correct": prediction.hotbar.argmax(1) == slot,
        "hotbar_mask": masks.hotbar_changed,
        **({"least_support": np.array(least)} if least > 1 else {}),
    }


def sending_arrays(times: NDArray[np.float64], fps: float, rules: Rules | None) -> dict[str, NDArray[np.generic]]:
    """What a review holds beside that where thresholds are tuned as they are sent, by `rules`; n windows.

    times: (n,) seconds. fps: (), frames a second. margins: (15,) of the hysteresis. holds: (15,) which are held.
    """
    if rules is None:
        return {}
    return {"times": times, "fps": np.array(fps), "margins": rules.margins, "holds": rules.holds}
