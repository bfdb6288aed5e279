"""What a run is mirrored to equals its own log; whatever becomes of a writer, the training stays as it is."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from cockpit.core.foreign.rows import Row
from cockpit.core.foreign.tensorboard import TensorBoardReader
from engines import writers
from engines.contract import commands as cmd
from engines.contract.rundir import RunInfo
from engines.contract.steps import read_series
from engines.runs.state import RunReader
from engines.writers import beside
from engines.writers.beside import WritersBeside
from engines.writers.tensorboard import crc32c
from tests.engines.conftest import PATIENCE, LiveRun, effective_table
from tests.engines.toy import ToyRun

FAKE_WANDB = """\
import json, os, signal, time
class Settings:
    def __init__(self, **settings): self.settings = settings
class Run:
    def __init__(self, options):
        self.summary, self.file = {}, open(os.environ["FAKE_WANDB"], "a")
        told = ("project", "id", "name", "resume", "dir")
        self.tell(init={key: options[key] for key in told}, config=options["config"])
    def tell(self, **what): print(json.dumps(what), file=self.file, flush=True)
    def define_metric(self, name, step_metric=None): self.tell(metric=name, axis=step_metric)
    def log(self, values):
        match os.environ.get("FAKE_FAULT"):
            case "raises": raise RuntimeError("the server says no")
            case "blocks": time.sleep(1000)
            case "is killed": os.kill(os.getpid(), signal.SIGKILL)
        self.tell(log=values)
    def finish(self, exit_code): self.tell(finish=exit_code, state=self.summary["state"])
def init(**options): return Run(options)
"""


@pytest.fixture(autouse=True)
def _time_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "END_SECONDS", PATIENCE)


@pytest.fixture
def fake_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that writes down what it is told; gives the file it writes to."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "wandb.py").write_text(FAKE_WANDB)
    paths = [str(tmp_path / "packages"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", ":".join(paths))
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    monkeypatch.setenv("FAKE_WANDB", str(tmp_path / "told.jsonl"))
    return tmp_path / "told.jsonl"


def toy_run(folder: Path, *names: str) -> ToyRun:
    """A toy training with these writers beside it, at its end."""
    toy = ToyRun(folder)
    toy.run.config.write_text("project: toy\ntraining: {log_every: 10}\n")
    toy.run.write_info(RunInfo(id="toy-20261127-201400-amber", project="toy", label="mirrored"))
    with WritersBeside(toy.run, names, toy.events) as mirrored:
        mirrored.reason = toy.train()
    return toy


def alerts(toy: ToyRun) -> list[str]:
    reader = RunReader(toy.run)
    reader.poll()
    return [alert.text for alert in reader.history.alerts]


def weights(toy: ToyRun) -> dict[str, torch.Tensor]:
    return dict(toy.model.state_dict())


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("raises", "the writer wandb failed: RuntimeError: the server says no (more in logs/wandb.log)"),
        ("is killed", "the writer wandb was killed by signal 9"),
    ],
)
def test_a_failing_writer_is_told_of_once_and_harms_nothing(
    tmp_path: Path, fake_wandb: Path, monkeypatch: pytest.MonkeyPatch, fault: str, told: str
) -> None:
    monkeypatch.setenv("FAKE_FAULT", fault)
    alone, mirrored = toy_run(tmp_path / "alone"), toy_run(tmp_path / "mirrored", "wandb", "tensorboard")
    (text,) = alerts(mirrored)
    assert text.startswith(told)
    assert alerts(alone) == []
    for name, tensor in weights(alone).items():
        assert torch.equal(tensor, weights(mirrored)[name])
    assert len(scalars(mirrored.run.path)) > 3  # the other writer is not harmed either


def test_a_writer_that_hangs_is_ended(tmp_path: Path, fake_wandb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "END_SECONDS", 1.0)
    monkeypatch.setenv("FAKE_FAULT", "blocks")
    assert alerts(toy_run(tmp_path, "wandb")) == [
        "the writer wandb was stopped: it was still writing 1 s after the end"
    ]


def test_a_missing_package_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(writers.PACKAGES, "wandb", "no_such_package")
    command = f"{shlex.quote(sys.executable)} -m pip install 'cockpit[wandb]'"
    sentence = f"output.writers: wandb needs the package no_such_package, which is not installed: {command}."
    assert writers.why_not("wandb") == sentence
    assert writers.why_not("tensorboard") == ""
    assert alerts(toy_run(tmp_path / "run", "wandb")) == [sentence]


def test_wandb_is_told_every_epoch_under_the_runs_own_id(tmp_path: Path, fake_wandb: Path) -> None:
    toy = toy_run(tmp_path / "run", "wandb")
    assert alerts(toy) == []
    told = [json.loads(line) for line in fake_wandb.read_text().splitlines()]
    assert told[0]["init"] == {
        "project": "toy", "id": "toy-20261127-201400-amber", "name": "mirrored", "resume": "allow",
        "dir": str(toy.run.path),
    }  # fmt: skip
    assert told[0]["config"] == {"project": "toy", "training": {"log_every": 10}}
    assert {"metric": "*", "axis": "step"} in told
    assert told[-1] == {"finish": 0, "state": "finished"}
    logged = [line["log"] for line in told if "log" in line]
    epochs = [row for row in logged if "epoch" in row]
    table = effective_table(toy.run)
    assert [row["step"] for row in epochs] == [row["step"] for row in table]
    assert [row["validation/negative_error"] for row in epochs] == [
        row["validation"]["negative_error"] for row in table
    ]
    assert [row["score"] for row in epochs] == [row["score"] for row in table]
    steps, losses = read_series(toy.run.steps, "loss")
    of_steps = {row["step"]: row["step/loss"] for row in logged if "step/loss" in row}
    assert of_steps == {step + 1: loss for step, loss in zip(steps, losses, strict=True) if (step + 1) % 10 == 0}


def scalars(run: Path) -> list[Row]:
    """Every row of every event file, in the order of their attempts."""
    rows = []
    for file in sorted(run.glob("tensorboard/*"), key=lambda file: file.name.rpartition("-")[2]):
        reader = TensorBoardReader(file)
        while (news := reader.poll()) is not None:
            rows += news.rows
        assert reader.problems() == []
    return rows


def test_tensorboard_files_equal_the_table_over_a_resume(new_run: Callable[..., LiveRun]) -> None:
    live = new_run("training.epochs=3", "training.stages=[]", "training.batch_size=16", "output.writers=[tensorboard]")
    live.send(cmd.Stop(attempt=1, at_step=200))
    assert live.here() == "stopped", live.log()
    first = scalars(live.run.path)
    assert live.resume_here() == "finished", live.log()
    rows = scalars(live.run.path)
    assert len(list(live.run.path.glob("tensorboard/*"))) == 2
    assert rows[: len(first)] == first
    assert all(row.step > 200 for row in rows[len(first) :])
    epochs = [row for row in rows if "epoch" in row.values]
    for row, of_table in zip(epochs, effective_table(live.run), strict=True):
        wanted = {f"train/{k}": v for k, v in of_table["train"].items()}
        wanted |= {f"validation/{k}": v for k, v in of_table["validation"].items()} | {"score": of_table["score"]}
        assert row.step == of_table["step"]
        assert {key: row.values[key] for key in wanted} == {key: float(np.float32(v)) for key, v in wanted.items()}
    steps, losses = read_series(live.run.steps, "loss")
    wanted_steps = {step + 1: float(np.float32(loss)) for step, loss in zip(steps, losses, strict=True)}
    thinned = {row.step: row.values["step/loss"] for row in rows if "step/loss" in row.values}
    assert thinned == {step: loss for step, loss in wanted_steps.items() if step % 10 == 0}


def test_the_checksum_is_that_of_rfc_3720() -> None:
    """Its examples in B.4: 32 bytes of zeros, of ones, and counting up."""
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


def test_wandb_offline_writes_into_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    toy = toy_run(tmp_path / "run", "wandb")
    assert alerts(toy) == []
    assert list(toy.run.path.glob("wandb/offline-run-*/*.wandb"))
