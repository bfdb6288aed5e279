"""The engine's own loop trains it: what a checkpoint holds, what stays frozen, and a run that goes on as one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
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

    def __init__(self, folder: Path, data: Path | dict[str, str], attempt: int = 1, **training: object) -> None:
        self.run = RunDirectory(folder)
        self.run.make()
        settings = {"epochs": 2, "batch_size": 16, "steps_per_epoch": 3, "seed": 3, **training}
        said = data if isinstance(data, dict) else {"path": str(data)}
        cfg = config(Path(said["path"]), data=said, training=settings)
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


def test_weights_far_below_one_train_as_ones_do_with_one_and_four_micro_batches(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    samples: dict[str, Any] = {
        "telemetry": random.normal(size=(40, 8)).astype(np.float32), "vis_feats": random.normal(size=(40, 4, 6)),
        "risk_id": random.integers(0, 4, 40), "action_id": random.integers(0, 6, 40),
    }  # fmt: skip
    trained = []
    for name, weight, parts in (("whole", 1.0, 1), ("light", 0.001, 1), ("parts", 0.001, 4)):
        np.savez(tmp_path / "data" / f"{name}.npz", **samples, weight=np.full(40, weight))
        data = {"path": str(tmp_path / "data"), "train": f"{name}.npz", "validation": f"{name}.npz"}
        run = Run(tmp_path / name, data=data, micro_batches=parts)
        run.train()
        trained.append(run.project.trainable_state(run.model))
    for other in trained[1:]:
        for name, value in trained[0].items():
            torch.testing.assert_close(other[name], value, rtol=1e-3, atol=1e-4, msg=name)


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
    first = Run(tmp_path / "parts", data, epochs=1, min_lr=1e-3)
    steady = Run(tmp_path / "steady", data, min_lr=1e-3)
    first.train()
    steady.train()
    second = Run(tmp_path / "parts", data, attempt=2, min_lr=1e-3)
    content = checkpoint.load(first.run.last)
    content["state"]["live"]["epochs"] = 2
    second.trainer.restore(content)
    second.train()
    expected, found = steady.project.trainable_state(steady.model), second.project.trainable_state(second.model)
    assert all(torch.equal(found[name], value) for name, value in expected.items())
