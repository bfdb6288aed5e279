"""The settings of a controls run."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from engines.contract.settings import Count, Data, NonNegative, Positive, RunConfig, Section, Training
from projects.controls.layout import WINDOW

Share = Annotated[float, Field(ge=0, le=1)]
InnerShare = Annotated[float, Field(gt=0, lt=1)]
Dropout = Annotated[float, Field(ge=0, lt=1)]


class Augmentation(Section):
    """What is done to training windows, never to validation ones; 0 turns a part off."""

    crop: Annotated[float, Field(ge=0, lt=0.5)] = 0.1
    """Largest share of a window's frames that is cut off at each end; the target is the last frame left."""
    warp: Annotated[float, Field(ge=0, lt=0.5)] = 0.2
    """Windows run at 1 - warp to 1 + warp times their speed."""
    noise: NonNegative = 0.005
    """Standard deviation of the noise on the coordinates, in their own unit (metres)."""

    @property
    def on(self) -> bool:
        return bool(self.crop or self.warp or self.noise)


class ControlsData(Data):
    val_fraction: InnerShare = 0.2
    """Share of the sessions of each type that validate; at least one session in all."""
    split_seed: int = 42
    """Which sessions validate; the same seed gives the same split."""
    history_dropout: Share = 0.3
    """Chance that one past frame's controls are hidden from a training window, in every row that shows them."""
    augmentation: Augmentation = Augmentation()
    pos_weight: Literal["neg_pos", "total_2pos"] = "neg_pos"
    """Weight of a control's positives: negatives / positives, which balances the two, or all / (2 positives)."""
    pos_weight_cap: Positive = 50.0
    """Largest such weight."""


class ControlsModel(Section):
    d_model: Count = 256
    """Width of the transformer."""
    nhead: Count = 8
    """Attention heads; must divide d_model."""
    num_layers: Count = 6
    """Encoder layers."""
    dim_feedforward: Count = 512
    """Width of the feed-forward part of a layer."""
    dropout: Dropout = 0.3
    """Dropout in the encoder and in the heads."""
    max_seq_len: Annotated[int, Field(ge=WINDOW)] = WINDOW
    """Longest window the model can take."""
    readout: Literal["mean", "filter"] = "mean"
    """What the heads see: a weighted mean of all rows, or the newest and a learned filter over the embedded ones."""
    look_residual: Share = 0.0
    """Share of the newest past look that is not hidden from which the answer starts."""
    cursor_residual: Share = 0.0
    """The same of the cursor. At 1 the model may copy itself in the game, below that its errors shrink."""
    whiten: bool = False
    """Coordinates are decorrelated, not only standardised."""

    @model_validator(mode="after")
    def _heads_fit(self) -> ControlsModel:
        if self.d_model % self.nhead:
            raise ValueError(f"d_model {self.d_model} must be a multiple of nhead {self.nhead}")
        return self


class ControlsLoss(Section):
    look_beta: Positive = 1.0
    """Errors of look count by themselves from here on, below it by their square (smooth L1)."""
    cursor_beta: Positive | None = None
    """The same of the cursor; all of them by their square where absent."""
    look_rest: Share = 0.0
    """Weight of the frames that do not look around in the loss of look; at 0 what is said there is left to chance."""


class ControlsLossWeights(Section):
    action: NonNegative = 1.0
    """The 12 on-off actions."""
    look: NonNegative = 0.5
    """Yaw and pitch, on frames that look around."""
    hotbar: NonNegative = 0.3
    """The slot, on frames that choose one."""
    cursor: NonNegative = 0.5
    """Cursor position, while a screen is open."""
    inv: NonNegative = 0.3
    """Inventory clicks, while a screen is open."""
    idle: NonNegative = 0.3
    """Penalty on action probabilities while the player does nothing."""


class ControlsTraining(Training):
    beta2: Annotated[float, Field(ge=0, lt=1)] = 0.999
    """How slowly AdamW forgets the size of gradients."""


class ControlsThresholds(Section):
    """From which probability on a control counts as pressed while training; the export searches its own."""

    action: InnerShare = 0.5
    inv: InnerShare = 0.5
    hotbar_min_confidence: Share = 0.3
    """Used by the exported policy where validation has no hotbar change to choose it by."""
    search: Literal["exact", "grid"] = "exact"
    """How the export searches: over all distinct scores, or over the 17 values .10, .15 … .90, for comparison."""


class ControlsPostProcessing(Section):
    """What the exported policy does to its outputs in the game; training does not use it."""

    hysteresis_margin: Share = 0.05
    """Turn on above threshold plus this, off below threshold minus this."""
    look_deadzone: Share = 0.08
    """Looking slower than this is no looking."""
    look_ema_alpha: Share = 0.35
    """Weight of the newest look value in its moving average."""
    look_rate_limit: Positive = 0.3
    """Largest change of look a frame."""
    cursor_ema_alpha: Share = 0.5
    """Weight of the newest cursor position in its moving average."""


class ControlsReport(Section):
    trees: bool = False
    """Boosted trees among the baselines: the strongest, and minutes of work. Needs scikit-learn (extra `trees`)."""


VERSION_2: dict[str, Any] = {
    "data": {"history_dropout": 0.1, "pos_weight_cap": 2.0},
    "model": {"readout": "filter", "cursor_residual": 0.8, "whiten": True},
    "loss": {"look_beta": 0.1, "cursor_beta": 0.02, "look_rest": 0.1},
    "loss_weights": {"look": 2.0, "cursor": 8.0, "idle": 0.1},
    "training": {"beta2": 0.99},
}
"""Defaults of `version: 2` that are not those of version 1."""


class ControlsConfig(RunConfig):
    project: Literal["controls"] = "controls"
    version: Literal[1, 2] = 1
    """What the settings are that a config leaves out. 2: as measured best. 1: as they were before there was a version,
    so that older configs, and the runs and exports made with them, stay what they were."""
    data: ControlsData
    model: ControlsModel = ControlsModel()
    loss: ControlsLoss = ControlsLoss()
    loss_weights: ControlsLossWeights = ControlsLossWeights()
    training: ControlsTraining = ControlsTraining()
    thresholds: ControlsThresholds = ControlsThresholds()
    report: ControlsReport = ControlsReport()
    post_processing: ControlsPostProcessing = ControlsPostProcessing()

    @model_validator(mode="before")
    @classmethod
    def _of_its_version(cls, tree: Any) -> Any:
        return _filled(tree, VERSION_2) if isinstance(tree, dict) and tree.get("version") == 2 else tree


def _filled(tree: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """`tree` with the `defaults` it leaves out, sections inside sections too."""
    filled = dict(tree)
    for key, default in defaults.items():
        own = filled.setdefault(key, copy.deepcopy(default))
        if isinstance(default, dict) and isinstance(own, dict):
            filled[key] = _filled(own, default)
    return filled
