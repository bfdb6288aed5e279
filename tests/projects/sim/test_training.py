"""The engine's own loop trains it: what a checkpoint holds, what stays frozen, and a run that goes on as one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engines.contract.events import EventWriter
from engines.contract.rundir import RunDirectory
from engines.runtime.listener import CommandListener
from engines.training import checkpoint
from engines.training.loop import Trainer
from projects.sim.drives import write_drive
from projects.sim.network import SimNetwork
from projects.sim.project import SimProject
from projects.sim.spec import SPEC
from tests.projects.sim.logs import random_drive
from tests.projects.sim.test_project import CPU, config


class Run:
    """A trainer of SIM in `folder` on random drives."""

    def __init__(self, folder: Path, data: Path, attempt: int = 1, **training: object) -> None:
        self.run = RunDirectory(folder)
        self.run.make()
        settings = {"epochs": 2, "batch_size": 16, "steps_per_epoch": 3, "seed": 3, **training}
        cfg = config(data, training=settings)
        events = EventWriter(self.run.events, attempt)
        self._listener = CommandListener(self.run, attempt, events)
        torch.manual_seed(3)
        self.project = SimProject()
        split = self.project.data(cfg, CPU)
        model = self.project.model(cfg, split)
        assert isinstance(model, SimNetwork)
        self.model = model
        self.trainer = Trainer(self.run, cfg, SPEC.heads, self.project, split, model, events, self._listener)

    def train(self) -> str:
        with self._listener:
            return self.trainer.train()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    for k in range(5):
        write_drive(tmp_path / "data" / f"d{k}.npz", random_drive(f"d{k}", 30, k))
    return tmp_path / "data"


def test_a_run_trains_its_own_parts_alone_and_saves_nothing_else(data: Path, tmp_path: Path) -> None:
    run = Run(tmp_path / "run", data)
    assert run.model.llm is not None
    frozen = {name: value.clone() for name, value in run.model.llm.state_dict().items()}
    before = {name: value.clone() for name, value in run.project.trainable_state(run.model).items()}
    assert run.train() == "finished"
    assert all(torch.equal(value, frozen[name]) for name, value in run.model.llm.state_dict().items())
    saved = checkpoint.load(run.run.last)
    assert set(saved["model"]) == set(before)
    assert run.run.best.is_file()
    statistics = {"telemetry_mean", "telemetry_std", "feature_mean", "feature_std"}
    for name, value in saved["model"].items():
        assert torch.equal(value, before[name]) == (name in statistics), name
    assert run.run.last.stat().st_size < 20 * sum(value.numel() for value in before.values())


def test_four_micro_batches_train_as_one_batch_does(data: Path, tmp_path: Path) -> None:
    runs = [Run(tmp_path / f"run{parts}", data, micro_batches=parts) for parts in (1, 4)]
    for run in runs:
        run.train()
    one, four = (run.project.trainable_state(run.model) for run in runs)
    for name, value in one.items():
        torch.testing.assert_close(four[name], value, rtol=1e-3, atol=1e-4, msg=name)


def test_a_stage_trains_its_head_and_no_other(data: Path, tmp_path: Path) -> None:
    stages = [{"name": "risk first", "heads": ["risk"]}]
    run = Run(tmp_path / "run", data, stages=stages)
    before = {name: value.clone() for name, value in run.project.trainable_state(run.model).items()}
    run.train()
    after = run.project.trainable_state(run.model)
    assert torch.equal(after["heads.action.weight"], before["heads.action.weight"])
    assert not torch.equal(after["heads.risk.weight"], before["heads.risk.weight"])
    assert not torch.equal(after["projector.weight"], before["projector.weight"])


def test_a_resumed_run_ends_as_one_that_was_never_stopped(data: Path, tmp_path: Path) -> None:
    whole, first = Run(tmp_path / "whole", data), Run(tmp_path / "parts", data, epochs=1, min_lr=1e-3)
    steady = Run(tmp_path / "steady", data, min_lr=1e-3)
    whole.train()
    first.train()
    steady.train()
    second = Run(tmp_path / "parts", data, attempt=2, min_lr=1e-3)
    content = checkpoint.load(first.run.last)
    content["state"]["live"]["epochs"] = 2
    second.trainer.restore(content)
    second.train()
    expected, found = steady.project.trainable_state(steady.model), second.project.trainable_state(second.model)
    assert all(torch.equal(found[name], value) for name, value in expected.items())
