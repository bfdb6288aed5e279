"""Whether predicted probabilities are frequencies: positive-weighted sigmoids as they are, and with the weight undone.

Weighting positives by w moves the optimum of the cross-entropy from the frequency p to q = w·p / (w·p + 1 - p). Solved
for p this is the correction q / (q + w·(1 - q)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.training.reliability import Calibration, Reals, average
from projects.controls.layout import BINARY, CONTROL_NAMES
from projects.controls.masks import Bools
from projects.controls.metrics import Prediction, Truth


def undo_weight(raw: Reals, weights: Reals) -> Reals:
    """Probabilities (n, controls) with the positive weights (controls,) of the training undone."""
    negative = weights * (1 - raw)
    return np.divide(raw, raw + negative, out=np.zeros_like(raw), where=raw > 0)


def judged_buttons(prediction: Prediction, truth: Truth) -> tuple[Reals, Bools, Bools]:
    """The 15 on-off controls of n frames: probabilities, whether pressed, whether judged, (n, 15) each.

    Probabilities that are not numbers (of a model that has diverged) are not judged.
    """
    raw = np.concatenate([prediction.action, prediction.inv], axis=1).astype(np.float64)
    return raw, truth.targets[:, BINARY] > 0.5, truth.masks.binary & np.isfinite(raw)


@dataclass(frozen=True)
class ButtonCalibration:
    """One on-off control on the frames where it is judged: on which share it is pressed, how its positives weigh."""

    name: str
    weight: float
    frames: int
    pressed: float | None
    raw: Calibration
    corrected: Calibration


def calibration(raw: Reals, on: Bools, judged: Bools, weights: Reals) -> tuple[ButtonCalibration, ...]:
    """Every on-off control. raw, on, judged: (n, 15), as `judged_buttons` gives them. weights: (15,)."""
    fair = undo_weight(raw, weights)
    return tuple(
        ButtonCalibration(
            name=CONTROL_NAMES[column],
            weight=float(weights[k]),
            frames=int(judged[:, k].sum()),
            pressed=average(on[judged[:, k], k]),
            raw=Calibration.of(raw[judged[:, k], k], on[judged[:, k], k]),
            corrected=Calibration.of(fair[judged[:, k], k], on[judged[:, k], k]),
        )
        for k, column in enumerate(BINARY)
    )
