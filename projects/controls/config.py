"""The settings of a controls run."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from engines.contract.settings import Count, Data, NonNegative, Positive, RunConfig, Section, Training
from projects.controls.layout import HISTORY, LOOK_DEADZONE, WINDOW
from projects.controls.metrics import SCORE_WEIGHTS
from projects.controls.sending import Rules

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
    test_fraction: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the sessions that is looked at once, when the run has finished; spread over the types as validation."""
    split_seed: int = 42
    """Which sessions validate and which are for the test; the same seed gives the same split."""
    window: int = WINDOW
    """Frames that a prediction sees; 30, no other number works."""
    history_length: int = HISTORY
    """Past frames whose controls a feature row holds; 5, no other number works."""
    look_deadzone: Annotated[float, Field(ge=0, lt=1)] = LOOK_DEADZONE
    """Looking of up to this magnitude is none: not trained on, not judged. What is sent has a dead zone of its own."""
    history_dropout: Share = 0.3
    """Chance that one past frame's controls are hidden from a training window, in every row that shows them."""
    augmentation: Augmentation = Augmentation()
    pos_weight: Literal["neg_pos", "total_2pos"] = "neg_pos"
    """Weight of a control's positives: negatives / positives, which balances the two, or all / (2 positives)."""
    pos_weight_cap: Positive = 50.0
    """Largest such weight."""

    @model_validator(mode="after")
    def _leaves_some_to_train_on(self) -> ControlsData:
        if self.window != WINDOW:
            raise ValueError(f"window is {self.window}, expected {WINDOW}: an exported policy buffers as many frames")
        if self.history_length != HISTORY:
            raise ValueError(
                f"history_length is {self.history_length}, expected {HISTORY}: the 671 features of a row hold the "
                f"controls of {HISTORY} past frames"
            )
        if self.val_fraction + self.test_fraction >= 1:
            raise ValueError(
                f"val_fraction {self.val_fraction:g} and test_fraction {self.test_fraction:g} must leave sessions to "
                "train on: together under 1"
            )
        return self


PLAIN: dict[str, Any] = {"readout": "mean", "look_residual": 0.0, "cursor_residual": 0.0, "whiten": False}
"""What each option of the model is where nothing says so: as before there were options."""


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

    def exported(self) -> dict[str, Any]:
        """As an export holds it: options that are not used are not named, so one without any is as it always was."""
        return {key: value for key, value in self.model_dump().items() if PLAIN.get(key, ...) != value}


class ControlsLoss(Section):
    look: Literal["smooth_l1", "mse"] = "smooth_l1"
    """What an error of look costs: smooth L1, or its square throughout."""
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


class ControlsScoreWeights(Section):
    """Shares of the combined score, which early stopping and the best epoch go by; they need not sum to 1."""

    action_f1: NonNegative = SCORE_WEIGHTS["action_f1"]
    look: NonNegative = SCORE_WEIGHTS["look"]
    """Of 1 - the squared error of look."""
    hotbar: NonNegative = SCORE_WEIGHTS["hotbar"]
    cursor: NonNegative = SCORE_WEIGHTS["cursor"]
    """Of 1 - the squared error of the cursor."""
    inv: NonNegative = SCORE_WEIGHTS["inv"]
    idle: NonNegative = SCORE_WEIGHTS["idle"]

    @model_validator(mode="after")
    def _has_one(self) -> ControlsScoreWeights:
        if not any(self.model_dump().values()):
            raise ValueError("score_weights are all 0, so no epoch could be the best; expected one above 0")
        return self


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


Kind = Literal["pulse", "hold"]


class ControlKinds(Section):
    """How each on-off control is sent: on one frame of a press, or for as long as it is on."""

    move_forward: Kind = "hold"
    move_backward: Kind = "hold"
    strafe_left: Kind = "hold"
    strafe_right: Kind = "hold"
    sprint: Kind = "hold"
    sneak: Kind = "hold"
    jump: Kind = "pulse"
    attack: Kind = "pulse"
    use_item: Kind = "hold"
    drop_item: Kind = "pulse"
    swap_offhand: Kind = "pulse"
    open_inventory: Kind = "pulse"
    inv_left_click: Kind = "pulse"
    inv_right_click: Kind = "pulse"
    inv_shift_held: Kind = "hold"


class ControlsPostProcessing(Section):
    """What the exported policy does to its outputs in the game; the thresholds are tuned through it."""

    hysteresis_margin: Share = 0.05
    """Held keys turn on above threshold plus this, off below threshold minus this."""
    pulse_margin: Share | None = None
    """The same of pulses; a new run records 0. A run that does not say it is of a version that had one margin for all
    and tuned thresholds without it."""
    kinds: ControlKinds = ControlKinds()

    def exported(self) -> dict[str, Any]:
        """As an export holds it; one of a run of an earlier version is as it was then."""
        return self.model_dump(exclude={"pulse_margin", "kinds"} if self.pulse_margin is None else None)

    @property
    def rules(self) -> Rules:
        return Rules.of(self.hysteresis_margin, self.pulse_margin, self.kinds.model_dump())

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
    "post_processing": {"pulse_margin": 0.0},
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
    score_weights: ControlsScoreWeights = ControlsScoreWeights()
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
