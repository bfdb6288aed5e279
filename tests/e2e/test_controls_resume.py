"""The controls project, killed twice and resumed, with live edits: bit for bit the run that nothing happened to."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engines.contract import commands as cmd
from engines.runs import launch
from tests.e2e.conftest import ROOT
from tests.engines.conftest import LiveRun, effective_table, tensors

SETTINGS = (
    "training.epochs=2",
    "training.steps_per_epoch=20",
    "training.batch_size=16",
    "training.checkpoint_minutes=0.005",
    "model.dropout=0.2",
    "launch.threads=1",
)


def edits() -> list[cmd.Command]:
    return [
        cmd.SetLossWeights(attempt=1, at_step=7, weights={"look": 0.8, "hotbar": 0.0}),
        cmd.SetLrScale(attempt=1, at_step=12, scale=0.7),
    ]


@pytest.mark.behaviour("learning-rate-early-stopping")
def test_killed_twice_equals_uninterrupted(demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path))
    config = ROOT / "configs" / "controls_demo.yaml"

    def new_run() -> LiveRun:
        live = LiveRun(launch.prepare_training(config, [f"data.path={demo_data}", *SETTINGS]))
        for edit in edits():
            live.send(edit)
        return live

    straight, killed = new_run(), new_run()
    for live, last in ((straight, 1), (killed, 3)):  # at the end, without the report that a finished run makes
        live.send(cmd.Stop(attempt=last, at_step=39, when="after_epoch"))
    for attempt, (step, victim) in enumerate([(15, "engine"), (31, "supervisor")], start=1):
        pause = cmd.Pause(attempt=attempt, at_step=step)
        killed.send(pause)
        killed.start() if attempt == 1 else killed.resume()
        killed.wait_answer(pause, "applied")
        killed.kill(victim)
    assert killed.resume_here() == straight.here() == "stopped", killed.log() + straight.log()
    ours, theirs = tensors(killed.run.last), tensors(straight.run.last)
    assert ours.keys() == theirs.keys()
    assert [place for place in ours if not torch.equal(ours[place], theirs[place])] == []
    assert effective_table(killed.run) == effective_table(straight.run)
