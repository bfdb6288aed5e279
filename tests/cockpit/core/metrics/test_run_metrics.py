"""A run's metrics as series: its steps, its epochs, what a resume superseded, its marks."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from cockpit.core.metrics.overlay import from_start
from cockpit.core.metrics.run_metrics import RunMetrics
from cockpit.core.plot.axis import extent
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.steps import StepWriter
from tests.support.fake_run import STEPS_PER_EPOCH, FakeRun, epoch


@pytest.fixture
def fake(tmp_path: Path) -> FakeRun:
    return FakeRun(tmp_path).begin().started()


def log(fake: FakeRun, attempt: int, steps: range, *heads: str) -> None:
    """Steps whose loss tells attempt and step, and whose heads tell their place."""
    rows = [[s, attempt, s // 10 + 1, 1e9 + s, attempt + s / 1000, *range(len(heads))] for s in steps]
    StepWriter(fake.run.steps, ["epoch", "time", "loss", *heads]).append(np.array(rows, dtype=np.float64))


def test_every_column_and_every_value_is_a_series(fake: FakeRun) -> None:
    log(fake, 1, range(20), "action", "look")
    fake.epochs(1, 2, best=2)
    metrics = RunMetrics(fake.run, "amber")
    assert metrics.poll()
    series = metrics.series()
    assert list(series)[:4] == ["score", "train.loss", "train.action", "validation.action_f1"]
    assert {"loss", "action", "look"} <= series.keys()
    assert not {"step", "attempt", "epoch", "time"} & series.keys()
    assert series["score"].value.tolist() == [0.1, 0.2]
    assert series["train.loss"].step.tolist() == [10, 20]
    assert series["loss"].value[-1] == 1.019
    assert series["look"].value.tolist() == [1.0] * 20
    assert series["loss"].time[3] == 1e9 + 3
    assert not metrics.poll()


def test_epochs_done_are_fractions_on_a_line_through_the_ends_of_epochs(fake: FakeRun) -> None:
    log(fake, 1, range(25))
    fake.epochs(1, 2)
    metrics = RunMetrics(fake.run, "amber")
    metrics.poll()
    done = metrics.series()["loss"].epoch
    assert done[[0, 5, 10, 20, 24]].tolist() == [0.0, 0.5, 1.0, 2.0, 2.4]  # ten steps an epoch, the third is running


@pytest.mark.behaviour("header-middle-csv-file")
def test_a_column_that_appears_later_begins_there(fake: FakeRun) -> None:
    log(fake, 1, range(3))
    metrics = RunMetrics(fake.run, "amber")
    metrics.poll()
    log(fake, 1, range(3, 5), "new")
    assert metrics.poll()
    new = metrics.series()["new"]
    assert (new.step.tolist(), new.value.tolist()) == ([3.0, 4.0], [0.0, 0.0])  # no NaN: nothing was measured before
    assert len(metrics.series()["loss"].value) == 5


@pytest.mark.parametrize("looks", [1, 2])
def test_what_a_resume_superseded_is_an_old_branch(fake: FakeRun, looks: int) -> None:
    metrics = RunMetrics(fake.run, "amber")
    log(fake, 1, range(20))
    fake.epochs(1, 2)
    if looks == 2:
        metrics.poll()
    fake.begin().started(resumed_step=10)
    log(fake, 2, range(10, 14))
    metrics.poll()
    series = metrics.series()
    assert series["loss"].value.tolist() == [1 + s / 1000 for s in range(10)] + [2 + s / 1000 for s in range(10, 14)]
    (branch,) = series["loss"].old
    assert branch[0].tolist() == list(range(10, 20))
    assert branch[1].tolist() == [1 + s / 1000 for s in range(10, 20)]
    (tail,) = series["train.loss"].old
    assert (tail[0].tolist(), tail[1].tolist()) == ([20.0], [0.5])
    assert series["train.loss"].step.tolist() == [10.0]


def test_not_measured_is_no_point_and_not_finite_is_kept(fake: FakeRun) -> None:
    broken, silent = epoch(2, loss=0.0), epoch(3)
    broken.train["loss"], broken.nonfinite = None, ["train.loss"]
    silent.train["loss"] = None
    fake.epochs(1).say(broken, silent)
    metrics = RunMetrics(fake.run, "amber")
    metrics.poll()
    np.testing.assert_array_equal(metrics.series()["train.loss"].value, [1.0, math.nan])


@pytest.mark.behaviour("run-keeps-id-over")
def test_marks(fake: FakeRun) -> None:
    def saved(step: int, *files: str) -> ev.Checkpoint:
        return ev.Checkpoint(step=step, epoch=step // 10, files=["last.pt", *files], size=1, seconds=0.1)

    edit = cmd.SetLrScale(attempt=1, scale=0.5)
    fake.epochs(1, best=1).say(
        saved(10, "best.pt", "epoch_001.pt"),
        ev.CommandAnswer(command=edit, state="seen", step=12),
        ev.CommandAnswer(command=edit, state="applied", step=13),
        saved(15),
        saved(17),
    )
    fake.begin().started(resumed_step=17)
    metrics = RunMetrics(fake.run, "amber")
    metrics.poll()
    told = [(mark.kind, mark.step, round(mark.epoch, 6)) for mark in metrics.marks()]
    assert told == [
        ("checkpoint", 10, 1.0), ("checkpoint", 17, 1.7), ("resume", 17, 1.7), ("edit", 13, 1.3), ("best", 10, 1.0),
    ]  # fmt: skip
    assert all(mark.time > 1e9 for mark in metrics.marks())


def test_damage_is_counted_and_harms_nothing(fake: FakeRun) -> None:
    fake.epochs(1)
    with fake.run.events.open("ab") as file:
        file.write(b"\xff garbage\n")
    fake.epochs(2)
    metrics = RunMetrics(fake.run, "amber")
    metrics.poll()
    assert metrics.problems() == ["1 bad line in events.jsonl, line 4"]
    assert metrics.series()["score"].value.tolist() == [0.1, 0.2]


def test_a_run_without_anything(tmp_path: Path) -> None:
    metrics = RunMetrics(FakeRun(tmp_path).run, "empty")
    metrics.poll()
    assert metrics.series() == {}
    assert list(metrics.marks()) == []


@pytest.mark.behaviour("fork-shows-parents-curve")
def test_a_fork_begins_with_its_parents_curves_faint(tmp_path: Path) -> None:
    """Of the parent up to the fork, of the grandparent up to the parent's: the rest of both is not of its family."""

    def run(name: str, first: int, *epochs: int, parent: str | None = None, loss: float) -> FakeRun:
        fake = FakeRun(tmp_path, name)
        start = first * STEPS_PER_EPOCH
        info = msgspec.structs.replace(fake.run.info, parent=parent, fork_step=start if parent else None)
        fake.run.write_info(info)
        fake.begin().started(resumed_step=start)
        fake.say(*(epoch(number, loss=loss) for number in epochs))
        steps = np.arange(start, epochs[-1] * STEPS_PER_EPOCH, dtype=float)
        records = np.stack([steps, np.ones_like(steps), np.full_like(steps, loss)], axis=1)
        StepWriter(fake.run.steps, ["grad_norm"]).append(records)
        return fake

    run("controls-1-oldest", 0, 1, 2, 3, loss=3.0)
    run("controls-2-parent", 1, 2, 3, parent="controls-1-oldest", loss=2.0)
    child = run("controls-3-child", 2, 3, 4, parent="controls-2-parent", loss=1.0)
    metrics = RunMetrics(child.run, "")
    assert metrics.poll()
    loss = metrics.series()["train.loss"]
    assert loss.step.tolist() == [30, 40]
    assert loss.before is not None
    assert (loss.before.step.tolist(), loss.before.value.tolist()) == ([10, 20], [3.0, 2.0])
    assert loss.before.epoch.tolist() == [1, 2]
    assert len(loss.before.time) == 2
    assert loss.old == ()
    assert extent([loss], "step") == (10, 40)
    assert extent([loss], "epoch") == (1, 4)
    norms = metrics.series()["grad_norm"]
    assert norms.step.tolist() == list(range(20, 40))
    assert norms.before is not None
    assert (norms.before.step.tolist(), norms.before.value.tolist()) == (list(range(20)), [3.0] * 10 + [2.0] * 10)
    moved = from_start(metrics.series())["train.loss"]
    assert moved.before is not None
    assert moved.before.time[0] == 0.0  # in a comparison too

    shutil.rmtree(tmp_path / "controls-2-parent")
    alone = RunMetrics(child.run, "")
    assert alone.poll()
    assert alone.problems() == []
    assert alone.series()["train.loss"].before is None
