"""The torch-free face of SIM."""

from __future__ import annotations

from engines.contract.spec import Column, Head, Spec, Task

SPEC = Spec(
    name="sim",
    title="Frames and telemetry through a frozen language model to risk, reason and action (SIM v0)",
    config="projects.sim.config:SimConfig",
    project="projects.sim.project:SimProject",
    columns=(
        Column("Ep", "epoch", "d"),
        Column("TrLoss", "train.loss"),
        Column("Risk", "train.risk"),
        Column("Reas", "train.reason", wide=True),
        Column("Act", "train.action"),
        Column("VlLoss", "validation.loss"),
        Column("HiRec", "validation.risk_high_recall"),
        Column("HiFN", "validation.risk_high_fn_rate", wide=True),
        Column("HiPrc", "validation.risk_high_precision", wide=True),
        Column("RiskF1", "validation.risk_f1"),
        Column("ActAcc", "validation.action_accuracy"),
        Column("ActF1", "validation.action_f1"),
        Column("Score", "score"),
        Column("ms", "validation.ms", ".1f"),
        Column("LR", "lr", ".1e"),
    ),
    heads=(
        Head(name="risk", title="Risk: none, low, med, high", parameters="heads.risk.*"),
        Head(name="reason", title="What the risk comes from", parameters="heads.reason.*"),
        Head(name="action", title="Six actions", parameters="heads.action.*"),
        Head(
            name="confidence",
            title="Whether risk and action are right (model.confidence)",
        ),
    ),
    aliases={
        "data.dataset_class_path": "data.dataset",
        "data.train_split_path": "data.train",
        "data.val_split_path": "data.validation",
        "model.llm_name_or_path": "model.llm",
        "model.vision_encoder_name": "model.vision",
        "model.use_cached_vis_feats": "model.cached",
        "model.F": "model.frames",
        "model.K": "model.tokens",
    },
    data_files="projects.sim.drives:files",
    tasks={
        "make": Task("projects.sim.demo.task:make", "make demo drives in the folder `out`"),
        "parse": Task("projects.sim.readers.task:parse", "turn the logs in `source` into drives in `out`"),
        "cache": Task("projects.sim.features:cache", "keep the features of a config's frames", needs="config"),
        "evaluate": Task("projects.sim.evaluate_run:evaluate", "score a run on the drives in `data`", needs="run"),
        "export": Task("projects.sim.export:export", "write the export of a run again", needs="run"),
        "play": Task("projects.sim.play:step_through", "step through a drive with the model", needs="run"),
    },
    reads="projects.sim.readers.kinds:why_not",
    recordings="either",
    stats="projects.sim.stats:tables",
    thresholds="projects.sim.thresholds:THRESHOLDS",
    demo="sim_demo.yaml",
)
