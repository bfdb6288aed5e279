"""`cockpit replay`: equal bit for bit, or the first step that differs with what has changed since."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import Any

import pytest

from cockpit.cli import codes, replaying
from engines.compare import compare
from engines.contract.rundir import RunDirectory
from engines.runs import launch, provenance
from engines.training.project import Result, Split
from tests.cockpit.cli.conftest import Cockpit
from tests.engines.conftest import LiveRun, prepare_example
from tests.support.example_project import ExampleProject


@pytest.fixture
def seeded(
    cockpit: Cockpit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> LiveRun:
    """A run, ended, of the example project that takes its points' seed from a file."""
    example = ExampleProject(tmp_path_factory.mktemp("example"))
    run = prepare_example(
        example, monkeypatch, tmp_path, "training.epochs=1", "training.stages=[]", "training.steps_per_epoch=5",
        f"data.path={tmp_path / 'seed'}",
    )  # fmt: skip
    (tmp_path / "seed").write_text("1")
    spec, project = (importlib.import_module(f"spiral.{name}") for name in ("spec", "project"))
    reads = dataclasses.replace(spec.SPEC, data_files="engines.runs.fingerprint:below")
    monkeypatch.setattr(spec, "SPEC", reads)

    def data(self: Any, cfg: Any, device: Any) -> Split:
        return Split(project.Points(2048, seed=int(Path(cfg.data.path).read_text())), project.Points(64, seed=2))

    monkeypatch.setattr(project.Spiral, "data", data)

    def in_this_process(copy: RunDirectory) -> int:
        assert LiveRun(copy).here() == "finished"
        return codes.DONE

    def compared(module: str, arguments: list[str], *, doing: str) -> Any:
        return compare(*(RunDirectory(Path(path)) for path in arguments))

    monkeypatch.setattr(provenance, "_code", lambda project: "nobody edits it meanwhile")
    monkeypatch.setattr(replaying, "start_and_attend", in_this_process)
    monkeypatch.setattr(replaying, "ask_engine", compared)
    live = LiveRun(run)
    assert live.here() == "finished"
    return live


@pytest.mark.behaviour("data-code-versions-machine")
def test_a_replay_names_what_has_changed_before_it_starts_and_where_it_differs(
    seeded: LiveRun, cockpit: Cockpit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = seeded.run.info.id
    same = cockpit("replay", name)
    assert (same.returncode, same.stderr) == (codes.DONE, "")
    assert same.stdout.endswith(f" equals {name} bit for bit: 5 steps, 4 tensors\n")

    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    (tmp_path / "seed").write_text("3")
    causes = [
        "changed since then: NVIDIA_TF32_OVERRIDE: not set → 0",
        "changed since then: data: 1 of 1 files changed (seed)",
    ]
    other = cockpit("replay", name)
    assert other.returncode == codes.FAILED
    assert other.stderr.splitlines() == [f"cockpit: {cause}" for cause in causes]
    step, epoch, tensors, *told = other.stdout.splitlines()
    assert step.startswith("first differs at step 0, in ")
    assert epoch.startswith("first differs at epoch 1, in train.loss, ")
    assert tensors.startswith("4 of 4 tensors differ")
    assert told == causes
    _, sentences = launch.prepare_resume(seeded.run, ["training.epochs=2"])
    assert sentences == ["training.epochs: 1 → 2, applied", *causes]


def test_other_validation_data_is_a_difference_though_all_steps_are_equal(
    seeded: LiveRun, cockpit: Cockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    accuracy = importlib.import_module("spiral.project").Accuracy
    monkeypatch.setattr(accuracy, "result", lambda self: Result({"accuracy": 0.25}, 0.25))
    answer = cockpit("replay", seeded.run.info.id)
    assert answer.returncode == codes.FAILED
    assert answer.stdout.splitlines()[0] == "first differs at epoch 1, in validation.accuracy, score"


def test_a_difference_that_nothing_on_record_explains_says_so(
    seeded: LiveRun, cockpit: Cockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = importlib.import_module("spiral.project").Points
    monkeypatch.setattr(points, "batch", lambda self, indices, rng, ctx: {
        "xy": self.xy[indices] * 2, "side": self.side[indices].float(), "radius": self.radius[indices]
    })  # fmt: skip
    answer = cockpit("replay", seeded.run.info.id)
    assert (answer.returncode, answer.stderr) == (codes.FAILED, "")
    assert answer.stdout.splitlines()[-1] == "nothing recorded has changed since then"
