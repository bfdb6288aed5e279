"""The torch-free face of the agent project."""

from __future__ import annotations

from engines.contract.spec import Column, Head, Spec, Task
from projects.agent.layout import NEWEST

SPEC = Spec(
    name="agent",
    title="A game's world model, an agent cloned from recordings, and one trained in dreams",
    config="projects.agent.config:AgentConfig",
    project="projects.agent.project:Agent",
    edition=NEWEST,
    edition_shapes=True,
    columns=(
        Column("Ep", "epoch", "d"),
        Column("Dyn", "train.dynamics"),
        Column("Rew", "train.reward"),
        Column("BC", "train.bc"),
        Column("AUC", "validation.reward_auc"),
        Column("Chg", "validation.change_accuracy"),
        Column("KL", "train.kl"),
        Column("Dream", "validation.imagined_return", ".1f"),
        Column("Played", "validation.played_return", ".1f"),
        Column("Score", "score"),
        Column("LR", "lr", ".0e"),
        Column("R2", "validation.reward_r2", wide=True),
        Column("MovA", "validation.movement_accuracy", wide=True),
        Column("AblA", "validation.ability_accuracy", wide=True),
        Column("MovSelf", "validation.movement_self_fed", wide=True),
        Column("AblSelf", "validation.ability_self_fed", wide=True),
        Column("Gap", "validation.action_gap", ".4f", wide=True),
        Column("Entropy", "train.entropy", wide=True),
        Column("Value", "train.value", wide=True),
        Column("Policy", "train.policy", wide=True),
        Column("Deaths", "validation.played_deaths", wide=True),
        Column("DeathsDr", "validation.imagined_deaths", wide=True),
        Column("VlDyn", "validation.dynamics", wide=True),
        Column("VlRew", "validation.reward", wide=True),
        Column("VlBC", "validation.bc", wide=True),
        Column("1/RMS D", "train.dynamics.scale", ".1f", wide=True),
        Column("1/RMS R", "train.reward.scale", ".1f", wide=True),
        Column("1/RMS B", "train.bc.scale", ".1f", wide=True),
        Column("TrLoss", "train.loss", wide=True),
    ),
    heads=(
        Head(name="dynamics", title="Next latents: shortcut forcing", parameters="dynamics.*", scaled=True),
        Head(
            name="reward",
            title="Rewards from this frame on",
            parameters=("dynamics.agent*", "reward.*"),
            scaled=True,
        ),
        Head(
            name="bc",
            title="Actions from the next frame on, as in the recordings",
            parameters=("dynamics.agent*", "policy.*"),
            scaled=True,
        ),
        Head(name="value", title="Returns of dreams", parameters="value.*", scaled=True),
        Head(name="policy", title="Actions that do well in dreams (PMPO)", parameters="policy.*"),
    ),
    metrics=("kl", "entropy", "imagined", "gains"),
    tasks={
        "make": Task("projects.agent.demo.task:make", "make games of the arena"),
        "parse": Task("projects.agent.parse:parse", "turn the games in `source` into features and latents in `out`"),
        "export": Task("projects.agent.export:export", "write the weights of a run and their layout", needs="run"),
        "play": Task(
            "projects.agent.play:step_through", "look at a game and its dream, and at played ones", needs="run"
        ),
    },
    recordings="file",
    reads="projects.agent.league:reads",
    stats="projects.agent.stats:tables",
    proxies={"imagined_return": "played_return"},
    demo="agent_demo.yaml",
)
