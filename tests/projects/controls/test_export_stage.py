"""A stage that is over is exported from its own best checkpoint and review, beside the run's export."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from engines.runs import launch
from engines.runtime.attempt import carry_out
from engines.training.engine import train
from projects.controls import export_run
from projects.controls.export_run import export
from projects.controls.recordings import write_recording
from tests.projects.controls.sessions import random_session
from tests.projects.controls.task_context import Listener

CONFIG = """
project: controls
data: {path: recordings}
model: {d_model: 16, nhead: 2, num_layers: 1, dim_feedforward: 16}
training: {epochs: 2, steps_per_epoch: 3, batch_size: 8, warmup_epochs: 0}
launch: {device: cpu, threads: 1}
"""


def test_a_stage_is_exported_beside_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_run, "export_graph", lambda model: b"a graph")
    for k in range(3):
        write_recording(tmp_path / "recordings" / f"s{k}.npz", random_session(f"s{k}", 60 + k, k))
    (tmp_path / "config.yaml").write_text(CONFIG)
    settings = [
        f"data.path={tmp_path / 'recordings'}",
        'training.stages=[{"name": "one", "epochs": 1}, {"name": "two", "begin": "best"}]',
    ]
    run = launch.prepare_training(tmp_path / "config.yaml", settings, run_dir=tmp_path / "run")
    assert carry_out(run, 1, train) == 0
    whole = {file.name: file.read_bytes() for file in run.export.iterdir()}
    export({"run": str(run.path), "stage": 1}, Listener())
    assert {file.name: file.read_bytes() for file in run.export.iterdir() if file.is_file()} == whole
    policy = torch.load(run.export / "stage_1" / "control_policy_v2.pt", weights_only=True)
    best = torch.load(run.stage_best(1), weights_only=True)
    assert all(torch.equal(policy[name], value) for name, value in best["model"].items())
    assert best["state"]["epoch"] == 1
    log = json.loads((run.export / "stage_1" / "training_log_v2.json").read_text())
    assert log["best_epoch"] == 1
