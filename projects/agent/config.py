"""The settings of an agent run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from engines.contract.settings import Count, Data, NonNegative, Positive, RunConfig, Section, Stage, Training
from projects.agent.layout import DEATH_REWARD, REFRACTORY

Share = Annotated[float, Field(ge=0, le=1)]
ShareButAll = Annotated[float, Field(ge=0, lt=1)]
InnerShare = Annotated[float, Field(gt=0, lt=1)]
Span = Annotated[float, Field(gt=0, le=50)]
SIZES = {"tiny": (256, 6, 4), "small": (512, 12, 8), "medium": (768, 18, 12), "large": (512, 24, 8)}
"""Width, layers and heads of the dynamics by the names that the original gives them."""


class AgentData(Data):
    frames: Annotated[int, Field(ge=2)] = 32
    """T, frames of a training window."""
    stride: Count = 16
    """Frames from the start of one window to that of the next."""
    validation: list[str] = []
    """Games that validate, by name; drawn by split_seed where none is named."""
    test: list[str] = []
    """Games that neither training nor validation sees."""
    val_fraction: InnerShare = 0.2
    """Share of the games that validate, where none is named."""
    split_seed: int = 42
    """Which games validate; the same seed gives the same split."""
    relevant: InnerShare = 0.5
    """Share of the draws that come from windows with an event; the others come from all windows."""


class AgentModel(Section):
    size: Literal["tiny", "small", "medium", "large", "own"] = "tiny"
    """Width, layers and heads of the original's sizes, or your own ones below."""
    width: Count = 96
    """Width of the dynamics (size: own)."""
    layers: Count = 4
    """Layers of the dynamics (size: own)."""
    heads: Count = 4
    """Attention heads (size: own)."""
    kv_heads: Count | None = None
    """Heads of keys and values, shared by groups of attention heads; half of the heads where absent."""
    time_every: Count = 4
    """Every so many layers one attends over time, the others within a frame."""
    registers: Count = 8
    """Register tokens a frame."""
    patch: Count = 1
    """Cells of a latent, in height and width, that one token holds."""
    context: Count = 32
    """Frames that streaming attends to."""
    agent_layers: Count = 2
    """Blocks of the agent token."""
    hidden: Count = 256
    """Width of the heads' MLPs."""
    offsets: Count = 8
    """L: how many frames ahead are predicted: rewards of frames 0 to L from this one, actions of 1 to L."""
    joint: Literal["none", "162", "171"] = "none"
    """The policy over movement and abilities apart, or over 18 × 9 or 19 × 9 pairs as in the original."""
    reward_range: Span = 3.0
    """Reward bins span symexp of ± this."""
    value_range: Span = 10.0
    """Value bins span symexp of ± this: a death every 20 frames is worth -10 / (1 - discount ** 20)."""
    bins: Annotated[int, Field(ge=3)] = 255
    """Bins of reward and value."""
    twohot: Literal["symexp", "symlog"] = "symexp"
    """Two-hot between bins in raw units, or in symlog units as in the original (biased where outcomes are mixed)."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Width, layers and heads."""
        return (self.width, self.layers, self.heads) if self.size == "own" else SIZES[self.size]


class AgentLossWeights(Section):
    dynamics: NonNegative = 1.0
    reward: NonNegative = 1.0
    bc: NonNegative = 1.0
    """Behavioural cloning."""
    value: NonNegative = 1.0
    policy: NonNegative = 1.0
    """PMPO with the KL to the cloned policy."""


class Objective(Section):
    finest: Annotated[int, Field(ge=2, le=256)] = 8
    """k_max: the smallest step of the shortcut is 1 / this, a power of two."""
    shortcut_share: Share = 0.25
    """Share of the batch whose steps are compared with two half steps."""
    independent: ShareButAll = 0.3
    """Share of the examples whose frames do not see each other."""
    masked_halves: bool = True
    """Dynamics learn from the draws over all windows alone and cloning from those with an event, as in the paper."""
    normalise: bool = True
    """Divide the gradient of each loss by its running root mean square."""
    looked_back: Share = 0.0
    """Share of the frames that have the noise of `imagination.noise` in training, as the past has in dreams."""
    history_dropout: ShareButAll = 0.0
    """Chance that a training frame's own action is hidden from the model."""

    @model_validator(mode="after")
    def _is_a_power(self) -> Objective:
        if self.finest & (self.finest - 1):
            raise ValueError(f"finest {self.finest} must be a power of two, such as 8")
        return self


class Imagination(Section):
    horizon: Count = 15
    """Frames that are dreamed."""
    context: Count = 8
    """True frames before them."""
    steps: Count = 4
    """Passes that make one frame: a power of two, objective.finest at most."""
    noise: ShareButAll = 0.1
    """Noise on the frames that a dream looks back at."""
    discount: InnerShare = 0.997
    lam: Share = 0.95
    """λ of the returns."""
    alpha: Share = 0.5
    """Weight of the actions with an advantage; 1 - alpha is that of those without."""
    beta: NonNegative = 0.3
    """Weight of the KL to the cloned policy."""


class Played(Section):
    """What each evaluation looks at."""

    windows: Count = 512
    """Validation windows that are judged, evenly spread."""
    episodes: Annotated[int, Field(ge=0)] = 48
    """Episodes that are played in the arena, where the data is the arena's."""
    frames: Count = 200
    """Frames of an episode."""
    self_fed: Count = 32
    """Validation windows on which the policy sees its own past actions."""


class PartRates(Section):
    """Factors on the learning rate."""

    trunk: NonNegative = 1.0
    """The dynamics without the agent token."""
    agent: NonNegative = 1.0
    """The agent token and its blocks."""
    heads: NonNegative = 1.0


class AgentTraining(Training):
    epochs: Count = 30
    """Epochs to train, over all stages."""
    lr: Positive = 1e-4
    """Peak learning rate."""
    weight_decay: NonNegative = 0.01
    """AdamW weight decay; norms, biases and embeddings get none."""
    warmup_epochs: NonNegative = 0.5
    """Epochs of linear warm-up; the first step's rate is above zero."""


class AgentConfig(RunConfig):
    project: Literal["agent"] = "agent"
    data: AgentData
    model: AgentModel = AgentModel()
    loss_weights: AgentLossWeights = AgentLossWeights()
    objective: Objective = Objective()
    imagination: Imagination = Imagination()
    played: Played = Played()
    rates: dict[str, PartRates] = {}
    """By stage: factors on the learning rate of a part, 1 for all that are not named."""
    training: AgentTraining = AgentTraining()

    @model_validator(mode="after")
    def _fits(self) -> AgentConfig:
        stages = [stage.name for stage in self.training.stages]
        for name in self.rates:
            if name not in stages:
                known = ", ".join(stages) or "none"
                raise ValueError(f"rates: no stage of training.stages is called {name!r}; there are {known}")
        if fault := next(_faults(self), ""):
            raise ValueError(fault)
        return self


def _faults(cfg: AgentConfig) -> Iterator[str]:
    """What settings that are fine each by itself cannot do together, a sentence for each."""
    frames, model, objective, dream = cfg.data.frames, cfg.model, cfg.objective, cfg.imagination
    for name, most in (("data.frames", frames), ("model.context", model.context)):
        if dream.context > most:
            yield f"imagination.context {dream.context} must be at most {name} {most}"
    if model.offsets >= frames:
        yield f"model.offsets {model.offsets} must be below data.frames {frames}: no window shows what is so far ahead"
    if dream.steps & (dream.steps - 1) or dream.steps > objective.finest:
        yield f"imagination.steps {dream.steps} must be a power of two, at most objective.finest {objective.finest}"
    if (1 - dream.noise) * objective.finest < 1:
        yield (
            f"imagination.noise {dream.noise} leaves nothing to look back at: 1 / objective.finest {objective.finest} "
            "is the lowest level above noise"
        )
    if (most_reward := math.expm1(model.reward_range)) < -DEATH_REWARD:
        yield (
            f"model.reward_range {model.reward_range} ends at rewards of ±{most_reward:.1f}, but a death is "
            f"{DEATH_REWARD:g}; set it to {math.log1p(-DEATH_REWARD):.1f} or more"
        )
    worst = DEATH_REWARD / (1 - dream.discount**REFRACTORY)
    if (most_value := math.expm1(model.value_range)) < -worst:
        yield (
            f"model.value_range {model.value_range} ends at returns of ±{most_value:.0f}, but deaths as often as they "
            f"can be are worth {worst:.0f} at imagination.discount {dream.discount}; set it higher"
        )
    learned: set[str] = set()
    for stage in cfg.training.stages or [Stage(name="all heads at once")]:
        heads = set(stage.heads or AgentLossWeights.model_fields)
        yield from _stage_faults(cfg, stage, heads, learned)
        learned |= heads


def _stage_faults(cfg: AgentConfig, stage: Stage, heads: set[str], learned: set[str]) -> Iterator[str]:
    """What a stage with these `heads` cannot do after others have `learned`."""
    finest, share = cfg.objective.finest, cfg.objective.shortcut_share
    rows = stage.batch_size or cfg.training.batch_size
    if "dynamics" in heads and cfg.imagination.steps < finest and not round(share * rows):
        yield (
            f"objective.shortcut_share {share} of a batch of {rows} is no row, so no step is trained but 1 / {finest}; "
            f"set it higher, or imagination.steps to {finest}"
        )
    missing = [head for head in ("dynamics", "reward", "bc") if head not in heads | learned]
    if heads & {"value", "policy"} and missing:
        yield (
            f"training.stages: {stage.name!r} learns in dreams, but neither it nor an earlier stage trains "
            f"{', '.join(missing)}; see configs/agent_demo.yaml"
        )
    if "policy" in heads and "value" not in heads | learned:
        yield f"training.stages: {stage.name!r} trains the policy without a value; add value to its heads"
