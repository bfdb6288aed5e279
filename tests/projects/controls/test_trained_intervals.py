"""Intervals of a short training: on real predictions, whose errors come in stretches, as synthetic scores' do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.contract.config import load_config
from engines.contract.events import EventWriter
from engines.runs import launch
from engines.runtime.listener import CommandListener
from engines.thresholds.bootstrap import certainty
from engines.thresholds.review import read_review
from engines.thresholds.search import exact_optimum
from engines.training import engine
from projects.controls.demo.session import make_session
from projects.controls.metrics import LEAST_SUPPORT
from projects.controls.recordings import write_recording
from projects.controls.thresholds import THRESHOLDS

CONFIG = """
project: controls
version: 2
data: {path: recordings, val_fraction: 0.667}
model: {d_model: 32, nhead: 2, num_layers: 1, dim_feedforward: 32, dropout: 0}
training: {epochs: 1, steps_per_epoch: 120, warmup_epochs: 0, lr: 3e-3, batch_size: 32}
launch: {device: cpu, threads: 1}
"""


@pytest.mark.behaviour("threshold-interval-holds-best")
def test_with_8_validation_sessions_they_hold_the_optimum_of_every_control_with_support(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    recordings.mkdir()
    for number in range(12):
        session = make_session(1, number, 0.5).recording
        write_recording(recordings / f"{session.name}.npz", session)
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    run = launch.prepare_training(config, [f"data.path={recordings}"], run_dir=tmp_path / "run")
    events = EventWriter(run.events, 1)
    with CommandListener(run, 1, events) as listener:
        engine.load(run, load_config(run.config), events, listener).train()
    review = read_review(run.review)
    assert review is not None
    judged = 0
    for head in THRESHOLDS.heads(review.arrays):
        if min(head.positives, head.negatives) < LEAST_SUPPORT:
            continue
        best, found = exact_optimum(head).threshold, certainty(head)
        assert found.interval is not None, head.name
        assert found.regret_set is not None, head.name
        assert found.interval.low <= best <= found.interval.high, head.name
        assert found.regret_set.low <= best <= found.regret_set.high, head.name
        judged += found.groups == 8
    assert judged >= 10
