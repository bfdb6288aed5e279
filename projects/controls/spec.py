"""The torch-free face of the controls project."""

from __future__ import annotations

from engines.contract.spec import Column, Head, Spec, Task
from projects.controls.editions import NEWEST
from projects.controls.layout import ACTION, CONTROL_NAMES, INV

SPEC = Spec(
    name="controls",
    title="Body pose and game state to 28 game controls (ControlTransformer v2)",
    config="projects.controls.config:ControlsConfig",
    project="projects.controls.project:ControlsProject",
    # Act to Inv are unweighted training losses; Idle and VlF1 are validation accuracy and F1, not losses
    columns=(
        Column("Ep", "epoch", "d"),
        Column("TrLoss", "train.loss"),
        Column("Act", "train.action"),
        Column("Look", "train.look"),
        Column("Hbar", "train.hotbar"),
        Column("Curs", "train.cursor"),
        Column("Inv", "train.inv"),
        Column("Idle", "validation.idle_accuracy"),
        Column("VlLoss", "validation.loss"),
        Column("VlF1", "validation.action_f1"),
        Column("Score", "score"),
        Column("LR", "lr", ".1e"),
    ),
    heads=(
        Head(
            name="action",
            title="12 on-off actions",
            parameters="action.*",
            parts=tuple(CONTROL_NAMES[column] for column in ACTION),
        ),
        Head(name="look", title="Yaw and pitch", parameters="look.*"),
        Head(name="hotbar", title="Hotbar slot", parameters="hotbar.*"),
        Head(name="cursor", title="Cursor position", parameters="cursor.*"),
        Head(
            name="inv",
            title="Inventory clicks",
            parameters="inv.*",
            parts=tuple(CONTROL_NAMES[column] for column in INV),
        ),
        Head(name="idle", title="Idle penalty"),
    ),
    aliases={
        "training.learning_rate": "training.lr",
        "training.max_epochs": "training.epochs",
        "training.early_stop_patience": "training.patience",
        "training.gradient_clip": "training.grad_clip",
        "training.action_history_dropout": "data.history_dropout",
    },
    data_files="projects.controls.recordings:files",
    tasks={
        "make": Task("projects.controls.demo.task:make", "make demo sessions in the folder `out`"),
        "parse": Task("projects.controls.importers.task:parse", "turn the logs in `source` into recordings in `out`"),
        "export": Task("projects.controls.export_run:export", "write the export of a run again", needs="run"),
        "evaluate": Task(
            "projects.controls.evaluate_run:evaluate", "score a run on the recordings in the folder `data`", needs="run"
        ),
        "play": Task("projects.controls.play:step_through", "step through a session with the policy", needs="run"),
    },
    reads="projects.controls.importers.kinds:why_not",
    stats="projects.controls.stats:tables",
    thresholds="projects.controls.thresholds:THRESHOLDS",
    edition=NEWEST,
    demo="controls_demo.yaml",
    demo_first=True,
)
