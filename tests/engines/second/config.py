"""Its settings."""

from engines.contract.settings import Data, RunConfig, Section


class LossWeights(Section):
    policy: float = 1.0
    value: float = 0.5


class SecondConfig(RunConfig):
    data: Data = Data(path=".")
    model: Section = Section()
    loss_weights: LossWeights = LossWeights()
