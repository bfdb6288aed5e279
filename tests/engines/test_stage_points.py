"""Forks and replays of a run whose stages begin with the best, and the commands that name a stage."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engines.basics.errors import DataError, UserError
from engines.runs.fork import fork_points, forkable, prepare_fork
from engines.runs.replay import prepare_replay
from engines.runs.saved import read_saved
from engines.runs.stages import best_of_stage
from engines.training.project import Context, Result
from tests.engines.conftest import LiveRun, effective_table, prepare_example, tensors
from tests.support.command import called
from tests.support.example_project import ExampleProject
from tests.support.here import engines_here

STAGES = '[{"name": "a", "epochs": 3}, {"name": "b", "epochs": 2, "begin": "best"}, {"name": "c", "begin": "best"}]'
SETTINGS = (
    "training.steps_per_epoch=3", "training.epochs=7", "output.keep_epochs=1", "training.patience=100",
    f"training.stages={STAGES}",
)  # fmt: skip
SCORES = [0.2, 0.8, 0.3, 0.7, 0.6, 0.4, 0.5]
"""The best of the three stages are the epochs 2, 4 and 7."""


@pytest.fixture(scope="module")
def parent(example: ExampleProject, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRun]:
    with pytest.MonkeyPatch.context() as patch:
        run = prepare_example(example, patch, tmp_path_factory.mktemp("stages"), *SETTINGS)
        accuracy = importlib.import_module("spiral.project").Accuracy

        def add(self: Any, model: Any, batch: Any, ctx: Context) -> Any:
            self.score = SCORES[min(ctx.epoch, 6)]
            return self.project.losses(model, batch, ctx)

        patch.setattr(accuracy, "add", add)
        patch.setattr(accuracy, "result", lambda self: Result({}, self.score))
        live = LiveRun(run)
        assert live.here() == "finished", live.log()
        yield live


def assert_same_end(one: LiveRun, other: LiveRun, *, after: int = 0) -> None:
    ours, theirs = tensors(one.run.last), tensors(other.run.last)
    assert ours.keys() == theirs.keys()
    assert [place for place in ours if not torch.equal(ours[place], theirs[place])] == []
    assert [row for row in effective_table(one.run) if row["epoch"] > after] == effective_table(other.run)


def test_each_stages_best_is_a_point_to_fork_from(parent: LiveRun) -> None:
    points = {name: point for point in fork_points(parent.run, forkable(parent.run)) for name in point.names}
    assert {name: point.epoch for name, point in points.items() if name.startswith("stage_")} == {
        "stage_1_best.pt": 2, "stage_2_best.pt": 4,
    }  # fmt: skip
    assert points["stage_1_best.pt"] is points["epoch_002.pt"]
    assert points["stage_1_best.pt"].score == 0.8


def test_a_stage_is_named_by_name_or_number(parent: LiveRun) -> None:
    run = parent.run
    assert best_of_stage(run, "a") == best_of_stage(run, "1") == (1, run.stage_best(1))
    assert best_of_stage(run, "b") == (2, run.stage_best(2))
    assert best_of_stage(run, "c") == (3, run.best)
    with pytest.raises(UserError, match=r"has no stage 'd'; its stages are 1 a, 2 b, 3 c"):
        best_of_stage(run, "d")


def test_a_stage_without_a_scored_epoch_has_no_best(new_run: Any) -> None:
    live = new_run(*SETTINGS[:1], f"training.stages={STAGES}", "training.epochs=1")
    assert live.here() == "finished", live.log()
    assert best_of_stage(live.run, "a") == (1, live.run.best)
    with pytest.raises(DataError, match="has no best checkpoint of stage 2: it has no scored epoch yet"):
        best_of_stage(live.run, "b")
    plain = new_run("training.stages=[]")
    with pytest.raises(UserError, match="has no stages; omit --stage"):
        best_of_stage(plain.run, "a")


@pytest.mark.parametrize("epoch", [2, 3, 4])
def test_a_fork_begins_its_stages_as_its_parent_did(parent: LiveRun, epoch: int) -> None:
    """Inside a stage, at the end of one, and from a later stage's best; best.pt of the parent is newer than all."""
    fork = LiveRun(prepare_fork(parent.run, checkpoint=str(epoch))[0])
    assert fork.here() == "finished", fork.log()
    assert_same_end(parent, fork, after=epoch)
    assert read_saved(fork.run.stage_best(1)).epoch == 2
    copy = LiveRun(prepare_replay(fork.run))
    assert copy.here() == "finished", copy.log()
    assert_same_end(fork, copy)


def test_a_replay_begins_its_stages_as_the_run_did(parent: LiveRun) -> None:
    copy = LiveRun(prepare_replay(parent.run))
    assert copy.here() == "finished", copy.log()
    assert_same_end(parent, copy)


def test_a_command_forks_the_best_of_a_stage(parent: LiveRun) -> None:
    runs = parent.run.path.parent
    before = set(runs.iterdir())
    with engines_here():
        answer = called("fork", parent.run.info.id, "--stage", "b", "--set", "training.epochs=5")
    assert answer.returncode == 0, answer.stderr
    [fork] = set(runs.iterdir()) - before
    assert read_saved(fork / "checkpoints" / "fork.pt").epoch == 4
    wrong = called("fork", parent.run.info.id, "--stage", "b", "--epoch", "best")
    assert wrong.returncode == 2
    assert "not allowed with argument --stage" in wrong.stderr


def test_the_report_says_what_became_of_each_stage(parent: LiveRun) -> None:
    answer = called("report", parent.run.info.id, "--json")
    assert json.loads(answer.stdout)["stages"]["rows"] == [
        [1, "a", "1–3", 2, 0.8, "stage_1_best.pt"],
        [2, "b", "4–5", 4, 0.7, "stage_2_best.pt"],
        [3, "c", "6–7", 7, 0.5, "best.pt"],
    ]


def test_old_state_stands_in_no_stage_that_is_over(parent: LiveRun) -> None:
    """A checkpoint of an earlier version has advanced its counters before it was saved."""
    from engines.training.state import TrainState

    state = torch.load(parent.run.last, weights_only=True)["state"]
    del state["stage_over"]
    assert TrainState.load(state).stage_over is False


def test_the_export_of_a_stage_gets_its_files(parent: LiveRun, tmp_path: Path) -> None:
    run = parent.run.at_stage(1)
    assert (run.best, run.export) == (parent.run.stage_best(1), parent.run.export / "stage_1")
    assert run.last == parent.run.last
