"""The torch-free face of the melee project."""

from __future__ import annotations

from engines.contract.spec import Column, Head, Spec, Task

SPEC = Spec(
    name="melee",
    title="World model of a platform fighter, from replays to play",
    config="projects.melee.config:MeleeConfig",
    project="projects.melee.project:Melee",
    columns=(
        Column("Ep", "epoch", "d"),
        Column("TrLoss", "train.loss"),
        Column("Pos", "train.continuous"),
        Column("Vel", "train.velocity"),
        Column("Act", "train.action"),
        Column("VlLoss", "validation.loss"),
        Column("ActA", "validation.action_accuracy"),
        Column("ChgA", "validation.change_accuracy"),
        Column("Pos10", "validation.position_10"),
        Column("Score", "score"),
        Column("LR", "lr", ".1e"),
    ),
    heads=(
        Head(name="continuous", title="Changes of percent, position and shield"),
        Head(name="velocity", title="Changes of the speeds"),
        Head(name="dynamics", title="Hitlag, stocks, combo"),
        Head(name="binary", title="Facing, invulnerable, on the ground"),
        Head(name="action", title="Action"),
        Head(name="jumps", title="Jumps left"),
        Head(name="l_cancel", title="L-cancel"),
        Head(name="hurtbox", title="Hurtbox"),
        Head(name="ground", title="What it stands on"),
        Head(name="last_attack", title="Last attack that hit"),
        Head(name="age", title="Age of the action"),
        Head(name="hit", title="Whether percent rises"),
    ),
    tasks={
        "make": Task("projects.melee.demo.task:make", "make games of a simulated fight"),
        "parse": Task("projects.melee.parse:parse", "read replays into a store"),
        "export": Task("projects.melee.export:export", "write the weights of a run and their layout", needs="run"),
        "evaluate": Task("projects.melee.evaluate_run:evaluate", "score a run on the games in `data`", needs="run"),
        "rollout": Task("projects.melee.rollouts:rollout", "roll a trained model out beside baselines", needs="run"),
        "play": Task("projects.melee.play:play", "play in the model's world", needs="run"),
    },
    recordings="either",
    reads="projects.melee.sources:reads",
    stats="projects.melee.stats:tables",
    counts={"games": "projects.melee.project:samples_in_games"},
    demo="melee_demo.yaml",
)
