"""The melee project, killed in the middle of a group and resumed: bit for bit the run that nothing happened to."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engines.contract import commands as cmd
from engines.runs import launch
from projects.melee.demo.task import make
from projects.melee.store import Store
from tests.e2e.conftest import ROOT
from tests.engines.conftest import LiveRun, effective_table, tensors
from tests.projects.controls.task_context import Listener

SETTINGS = (
    "model.d_model=32",
    "model.dropout=0.2",
    "objective.context_noise=0.01",
    "objective.self_forcing.begins=[0.2,0.6]",
    "training.epochs=2",
    "training.steps_per_epoch=15",
    "training.warmup_epochs=0",
    "training.batch_size=8",
    "training.checkpoint_minutes=0.002",
    "rollouts.starts=2",
    "rollouts.windows=8",
    "launch.threads=1",
)


def test_killed_in_a_group_equals_uninterrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path))
    make({"out": str(tmp_path / "games"), "games": 5, "minutes": 1}, Listener())
    store = Store(tmp_path / "games")
    assert len(store.shards) == 5
    assert sum(store.rows[:4]) > 8192, "more than one block in the group"

    def new_run() -> LiveRun:
        given = [f"data.path={store.path}", 'data.validation=["demo_004"]', *SETTINGS]
        live = LiveRun(launch.prepare_training(ROOT / "configs" / "melee_demo.yaml", given))
        live.send(cmd.SetLossWeights(attempt=1, at_step=4, weights={"hit": 0.5, "jumps": 0.0}))
        return live

    straight, killed = new_run(), new_run()
    pause = cmd.Pause(attempt=1, at_step=10)
    killed.send(pause)
    killed.start()
    killed.wait_answer(pause, "applied")
    killed.kill("engine")
    assert torch.load(killed.run.last, weights_only=True)["state"]["step"] in range(1, 11), "inside of the first epoch"
    for live, last in ((straight, 1), (killed, 2)):
        live.send(cmd.Stop(attempt=last, at_step=29, when="after_epoch"))
    assert killed.resume_here() == straight.here() == "stopped", killed.log() + straight.log()
    ours, theirs = tensors(killed.run.last), tensors(straight.run.last)
    assert ours.keys() == theirs.keys()
    assert [place for place in ours if not torch.equal(ours[place], theirs[place])] == []
    assert effective_table(killed.run) == effective_table(straight.run)
