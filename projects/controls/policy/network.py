"""The transformer of an exported policy, fed a row at a time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engines.basics.errors import DataError
from projects.controls.exported import ExportedConfig
from projects.controls.layout import (
    ACTION,
    CONTROL_SIZE,
    CURSOR,
    HISTORY,
    HISTORY_FEATURES,
    HOTBAR,
    INV,
    LOOK,
    WINDOW,
)
from projects.controls.masks import Floats
from projects.controls.model import ControlTransformer


@dataclass(frozen=True)
class Outputs:
    """The model's own answers for one frame.

    action: (12,) probabilities. look: (2,) in [-1, 1]. hotbar: (9,) probabilities. cursor: (2,) in [0, 1].
    inv: (3,) probabilities.
    """

    action: Floats
    look: Floats
    hotbar: Floats
    cursor: Floats
    inv: Floats

    @property
    def finite(self) -> bool:
        parts = (self.action, self.look, self.hotbar, self.cursor, self.inv)
        return all(bool(np.isfinite(part).all()) for part in parts)

    @classmethod
    def nothing(cls) -> Outputs:
        """Zeros, where the model was not asked."""
        return cls(*(np.zeros(len(columns), np.float32) for columns in (ACTION, LOOK, HOTBAR, CURSOR, INV)))


class PolicyNetwork:
    """Answers for the newest of the rows that were pushed, from the last 30 of them, padded on the left.

    A row is embedded once, when it comes: its place in the window is added later, so that the embedding stays right
    while the window moves on.
    """

    def __init__(self, model: ControlTransformer) -> None:
        self._model = model.eval().requires_grad_(False)
        self.reset()

    @classmethod
    def load(cls, config: ExportedConfig) -> PolicyNetwork:
        """The weights that `config` names. Raises `DataError` with a sentence."""
        state = _read_weights(config.policy, config.policy_sha256)
        with torch.device("meta"):  # sizes are checked against the weights before any memory is taken
            model = ControlTransformer(**config.model, dropout=0.0)
        if config.statistics is not None:
            state["feature_mean"], state["feature_std"] = map(torch.from_numpy, config.statistics)
        state.setdefault("feature_mean", torch.zeros(model.feature_mean.shape))
        state.setdefault("feature_std", torch.ones(model.feature_std.shape))
        try:
            model.load_state_dict(state, assign=True)
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:200]
            raise DataError(
                f"{config.policy}: does not fit the sizes in the config beside it ({reason}); export both again."
            ) from None
        return cls(model)

    def reset(self) -> None:
        """Forget all rows."""
        self._rows = torch.zeros(1, WINDOW, self._model.project.out_features)
        self._past = torch.zeros(1, HISTORY * CONTROL_SIZE)
        self._mask = torch.zeros(1, WINDOW, dtype=torch.bool)

    @torch.inference_mode()
    def push(self, row: Floats) -> None:
        """Add the features of a new frame, `row: (671,)`."""
        features = torch.from_numpy(row)
        embedded = self._model.embed(features)
        self._past = features[None, HISTORY_FEATURES]
        self._rows = torch.cat([self._rows[:, 1:], embedded[None, None]], dim=1)
        self._mask = torch.cat([self._mask[:, 1:], torch.ones(1, 1, dtype=torch.bool)], dim=1)

    @torch.inference_mode()
    def answer(self) -> Outputs:
        """What the model says of the newest row."""
        return outputs(self._model.read(self._rows, self._mask, self._past))


def outputs(heads: dict[str, Tensor]) -> Outputs:
    """The model's heads for a batch of one, as probabilities and values."""
    return Outputs(
        action=heads["action_logits"][0].sigmoid().numpy(),
        look=heads["look"][0].numpy(),
        hotbar=heads["hotbar_logits"][0].softmax(0).numpy(),
        cursor=heads["cursor"][0].numpy(),
        inv=heads["inv_click_logits"][0].sigmoid().numpy(),
    )


def _read_weights(path: Path, sha256: str | None) -> dict[str, Any]:
    """A state dict of float32 tensors. Raises `DataError` where the file is not that, or not the config's."""
    try:
        if sha256 is not None and hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
            raise DataError(
                f"{path}: is not the file that the config beside it belongs to (another sha256); make both again with "
                "`cockpit export RUN`."
            )
        state = torch.load(path, map_location="cpu", weights_only=True)
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path}: is missing beside its config; make it with `cockpit export RUN`.") from None
    except Exception as error:  # damaged bytes can mean anything to what reads them
        reason = str(error).splitlines()[0][:100] if str(error) else type(error).__name__
        raise DataError(f"{path}: is not a whole file of weights ({reason}); export it again.") from None
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise DataError(f"{path}: holds something else than named tensors; export it again.")
    bad = [name for name, value in state.items() if not value.isfinite().all()]
    if bad:
        raise DataError(f"{path}: {bad[0]} holds numbers that are not finite; export another epoch.")
    return {name: value.float() for name, value in state.items()}
