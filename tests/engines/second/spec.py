"""An agent that imitates, then values, then does both against a prior of itself."""

from engines.contract.spec import Column, Head, Spec

SPEC = Spec(
    name="second",
    title="Second project",
    config="tests.engines.second.config:SecondConfig",
    project="tests.engines.second.project:Second",
    columns=(
        Column("Ep", "epoch", "d"),
        Column("Loss", "train.loss"),
        Column("KL", "train.kl", ".4f"),
        Column("Scale", "train.value.scale"),
        Column("Score", "score"),
    ),
    heads=(
        Head(name="policy", title="Action", parameters=("policy.*", "trunk.*")),
        Head(name="value", title="Return", parameters=("value.*", "trunk.*"), scaled=True),
    ),
    metrics=("kl", "entropy"),
    data_files=None,
)
