"""The parts of a check that can be measured another way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from engines.check import check
from engines.checking.memory import activation_size, free_memory, size_of
from engines.training.precision import Precision
from engines.training.project import Context, Loss, Project, Split
from tests.support.example_project import ExampleProject

CTX = Context(step=0, epoch=0, progress=0.0, stage="train", heads=frozenset({"a"}))
WIDTH, SAMPLES = 1024, 16


class Ones:
    """Samples of one number each."""

    def __len__(self) -> int:
        return SAMPLES

    def batch(self, indices: Tensor, rng: np.random.Generator | None, ctx: Context | None = None) -> dict[str, Tensor]:
        return {"x": torch.ones(len(indices), 1)}


class Squares(Project[Any]):
    def data(self, cfg: Any, device: torch.device) -> Split:
        raise NotImplementedError

    def model(self, cfg: Any, data: Split) -> nn.Module:
        raise NotImplementedError

    def evaluation(self, cfg: Any, data: Split) -> Any:
        raise NotImplementedError

    def losses(self, model: nn.Module, batch: dict[str, Tensor], ctx: Context) -> dict[str, Loss]:
        return {"a": Loss(model(batch["x"]).square().sum(), torch.tensor(1))}


def test_activations_are_counted_once_and_parameters_not_at_all() -> None:
    model = nn.Sequential(nn.Linear(1, WIDTH), nn.Sigmoid(), nn.Tanh())
    precision = Precision("off", torch.device("cpu"))
    kept = activation_size(Squares(), model, Split(Ones(), Ones()), torch.arange(SAMPLES), CTX, precision, seed=0)
    # a linear layer keeps its input, sigmoid and tanh keep what they gave; the square keeps what the tanh kept already
    assert kept == SAMPLES * 4 + 2 * SAMPLES * WIDTH * 4


@pytest.fixture
def example_config(example: ExampleProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.syspath_prepend(str(example.folder))
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    return example.config


def test_a_check_adds_up_what_a_run_takes(example_config: Path, tmp_path: Path) -> None:
    wanted = ["output.keep_epochs=2", "training.steps_per_epoch=7", "launch.device=cpu", "cost.on_finish=[echo, a b]"]
    found = check(example_config, wanted)
    weights = 2 * 32 + 32 + 32 * 2 + 2
    assert (found["faults"], found["exit_code"], found["device"]) == ([], 0, "cpu")
    assert found["parameters"] == {"total": weights, "trainable": weights}
    assert found["steps"] == {"per_epoch": 7, "epochs": 6, "total": 42, "evaluations": 6}
    memory, disk = found["memory"], found["disk"]
    assert (memory["model"], memory["gradients"], memory["optimizer"]) == (4 * weights, 4 * weights, 8 * weights)
    assert memory["total"] == sum(memory[part] for part in ("model", "gradients", "optimizer", "activations", "data"))
    assert disk["checkpoints"] == 3 + 6 // 2
    assert disk["needed"] == disk["checkpoints"] * disk["checkpoint"] == 6 * 3 * 4 * weights
    assert disk["path"] == str(tmp_path)
    assert not (tmp_path / "runs").exists()
    time, per_step = found["time"], found["time"]["per_step"]
    assert time["measured"] == "steps"
    assert (time["low"], time["high"]) == (42 * per_step["low"], 42 * per_step["high"] * 2)
    assert found["cost"] is None
    assert found["on_finish"] == "echo 'a b'"


def test_faults_of_disk_and_memory_are_found(
    example_config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("engines.checking.memory.free_memory", lambda device: 10_000)
    found = check(example_config, [f"output.dir={tmp_path}", "output.keep_epochs=1", "training.epochs=1000000000000"])
    (tmp_path / "mine").write_text("")
    occupied = check(example_config, [f"output.dir={tmp_path}"])
    assert found["exit_code"] == occupied["exit_code"] == 1
    memory, disk = found["faults"]
    assert memory.endswith(" kB are free; lower training.batch_size, or raise training.micro_batches.")
    assert f"are free at {tmp_path}; free some, or choose another output.dir or COCKPIT_RUNS." in disk
    assert f"The output directory {tmp_path} is occupied" in occupied["faults"][-1]


def test_faults_of_the_config_and_its_stages_end_the_search(example_config: Path) -> None:
    faulty = check(example_config, ["training.epohcs=3", "model.width=wide"])
    assert (len(faulty["faults"]), faulty["exit_code"]) == (2, 2)
    stage = check(example_config, ["training.stages.0.heads=[sides]"])
    assert stage["exit_code"] == 2
    assert "no head is called 'sides' (did you mean 'side'?)" in stage["faults"][0]


def test_sizes_are_in_bytes() -> None:
    assert size_of([torch.zeros(3, 2), torch.zeros(5, dtype=torch.int64)]) == 24 + 40


def test_files_that_the_kernel_keeps_in_memory_count_as_free(tmp_path: Path) -> None:
    """A container that has read its data set is full of pages that are given up as soon as anybody asks."""
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("900000\n")
    (tmp_path / "memory.stat").write_text("anon 600000\ninactive_file 300000\n")
    assert free_memory(torch.device("cpu"), tmp_path) == 400_000
