"""The settings of a melee run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from engines.contract.settings import Count, Data, NonNegative, RunConfig, Section

Share = Annotated[float, Field(ge=0, le=1)]
InnerShare = Annotated[float, Field(gt=0, lt=1)]


Part = Literal["stay", "reset", "ground", "by_action"]


class MeleeData(Data):
    K: Count = 16
    """Frames that a prediction sees; of a model that carries its state, frames of a training sequence."""
    state_age_as_embed: bool = True
    """The age of an action as an embedding instead of a number; the view `fighter` always embeds it."""
    projectiles: Annotated[int, Field(ge=0, le=8)] = 2
    """Nearest projectiles that each fighter sees; with 0 the columns are those of the original."""
    validation: list[str] = []
    """Games that validate, by name; drawn by split_seed where none is named."""
    test: list[str] = []
    """Games that neither training nor validation sees."""
    val_fraction: InnerShare = 0.2
    """Share of the games that validate, where none is named."""
    split_seed: int = 42
    """Which games validate; the same seed gives the same split."""


class MeleeModel(Section):
    architecture: Literal["mamba", "mlp"] = "mamba"
    """Mamba-2, or an MLP over the last K frames."""
    view: Literal["fighter", "joint"] = "fighter"
    """A row per fighter with shared weights, or both fighters in one row as in the original layout."""
    d_model: Count = 192
    """Width."""
    n_layers: Count = 2
    """Blocks."""
    chunk_size: Count = 64
    """Frames that the scan of Mamba-2 handles at a time; any number gives the same answer."""
    carry: bool = True
    """Mamba-2 keeps its state from frame to frame, with a loss at every position; else K frames are read again."""
    plain_blocks: Annotated[int, Field(ge=0)] = 1
    """MLP blocks after the ones of Mamba-2."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the inputs that training hides."""
    kinematic: bool = True
    """Positions move by the predicted speeds through a learned gate, plus a residual; the view `fighter` alone."""
    jumps: Annotated[int, Field(ge=7, le=8)] = 8
    """Values that the jumps left can have: 8 as in the original's checkpoints, 7 as in slippi-ai's."""
    without: list[Part] = []
    """Parts of the view `fighter` that are left out, to see what each is worth (`projects.melee.views.PARTS`)."""

    @model_validator(mode="after")
    def _can_be_built(self) -> MeleeModel:
        if self.architecture == "mamba" and self.d_model % 32:
            raise ValueError(
                f"d_model {self.d_model} must be a multiple of 32 for mamba, whose heads are 64 of twice that"
            )
        if self.without and self.view != "fighter":
            raise ValueError("without names parts of the view fighter, and view is joint")
        return self


class MeleeLossWeights(Section):
    continuous: NonNegative = 1.0
    """Changes of percent, position and shield."""
    velocity: NonNegative = 0.5
    """Changes of the five speeds."""
    dynamics: NonNegative = 0.5
    """Hitlag, stocks, combo."""
    binary: NonNegative = 0.5
    """Facing, invulnerable, on the ground."""
    action: NonNegative = 2.0
    jumps: NonNegative = 0.5
    l_cancel: NonNegative = 0.3
    hurtbox: NonNegative = 0.3
    ground: NonNegative = 0.3
    last_attack: NonNegative = 0.3
    age: NonNegative = 0.1
    """The age of the action on frames where the action stays."""
    hit: NonNegative = 1.0
    """Whether percent rises."""


class SelfForcing(Section):
    """A share of each batch's rows is predicted again from the model's own frames."""

    begins: list[Share] = [0.4, 0.7]
    """Shares of the run from which on there are two, then three passes; empty: never."""
    every: Count = 4
    """Of the rows of a batch, one in so many is predicted again."""

    @model_validator(mode="after")
    def _at_most_three(self) -> SelfForcing:
        if len(self.begins) > 2 or sorted(self.begins) != self.begins:
            raise ValueError(f"begins has at most two shares, the smaller one first, got {self.begins}")
        return self


class Objective(Section):
    regression: Literal["smooth_l1", "mse"] = "smooth_l1"
    """Errors of numbers: smooth L1 in game units, or squares of scaled ones as in the original."""
    unimix: Share = 0.01
    """Share of the uniform distribution in every class probability."""
    change_weight: Annotated[float, Field(ge=1)] = 1.0
    """Weight of the action loss on frames where the action changes."""
    context_noise: NonNegative = 0.0
    """Standard deviation of noise on the frames that a prediction sees, in scaled units; training alone."""
    self_forcing: SelfForcing = SelfForcing()


class Rollouts(Section):
    """The rollouts of each evaluation, from fixed starts."""

    starts: Count = 24
    """Starts in all, over the games that validate."""
    windows: Count = 256
    """Fixed windows that are judged one frame ahead."""


class MeleeConfig(RunConfig):
    project: Literal["melee"] = "melee"
    data: MeleeData
    model: MeleeModel = MeleeModel()
    loss_weights: MeleeLossWeights = MeleeLossWeights()
    objective: Objective = Objective()
    rollouts: Rollouts = Rollouts()

    @model_validator(mode="after")
    def _has_positions(self) -> MeleeConfig:
        if self.data.K < 2 and self.model.architecture == "mamba" and self.model.carry:
            raise ValueError("data.K is 1, but a model that carries its state trains on sequences of at least 2 frames")
        return self
