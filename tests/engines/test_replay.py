"""A replay does everything that was done to a run at the same steps and ends in the same weights, bit for bit."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engines.basics.errors import UserError
from engines.compare import compare
from engines.contract import commands as cmd
from engines.contract.events import CommandAnswer, Event, RunStarted
from engines.contract.steps import read_series
from engines.runs import launch
from engines.runs.fork import prepare_fork
from engines.runs.replay import again, interventions, prepare_replay
from engines.runs.state import RunReader
from engines.thresholds.review import read_review
from engines.training.project import Context, Result
from tests.engines.conftest import LiveRun, effective_table, tensors
from tests.engines.toy import ToyRun

SETTINGS = ("training.batch_size=16", "training.epochs=6", "training.stages=[]", "training.checkpoint_minutes=100")
EPOCH = 2048 // 16
NewRun = Callable[..., LiveRun]


def replayed(live: LiveRun) -> LiveRun:
    copy = LiveRun(prepare_replay(live.run))
    copy.here()
    return copy


def weights(live: LiveRun) -> dict[str, torch.Tensor]:
    return {place: tensor for place, tensor in tensors(live.run.last).items() if place.startswith("/model")}


def assert_same(one: LiveRun, other: LiveRun) -> None:
    ours, theirs = weights(one), weights(other)
    assert ours.keys() == theirs.keys()
    assert [place for place in ours if not torch.equal(ours[place], theirs[place])] == []
    assert effective_table(one.run) == effective_table(other.run)


@pytest.fixture
def steered(new_run: NewRun) -> LiveRun:
    """Edited, killed before a checkpoint held the last edit, resumed with another patience, edited, and stopped."""
    live = new_run(*SETTINGS)
    for command in (
        cmd.SetLossWeights(attempt=1, at_step=61, weights={"radius": 0.7}),
        cmd.SetLrScale(attempt=1, at_step=EPOCH, at_epoch=1, scale=0.5),  # after the epoch's evaluation
        cmd.Evaluate(attempt=1, at_step=150),
        cmd.SetLossWeights(attempt=1, at_step=300, weights={"side": 1.5}),
        cmd.SetLossWeights(attempt=1, at_step=310, weights={"radius": 9.0}),  # undone by the kill
    ):
        live.send(command)
    pause = cmd.Pause(attempt=1, at_step=320)
    live.send(pause)
    live.start()
    live.wait_answer(pause, "applied")
    live.wait_state("paused")
    with pytest.raises(UserError, match="is paused; replay it when it has ended"):
        prepare_replay(live.run)
    live.kill("engine")
    live.send(cmd.SetLossWeights(attempt=2, at_step=290, weights={"radius": 0.2}))
    stop = cmd.Stop(attempt=2, at_step=451)
    live.send(stop)
    assert live.resume_here("training.patience=3") == "stopped", live.log()
    return live


@pytest.mark.behaviour("started-form-weights-rate")
def test_a_replay_of_a_steered_run_ends_in_the_same_weights(steered: LiveRun) -> None:
    copy = replayed(steered)
    attempt = copy.run.newest_attempt()
    assert attempt is not None
    assert attempt.ended is not None
    assert (attempt.ended.reason, copy.run.info.replay_of) == ("stopped", steered.run.info.id)
    assert attempt.ended.error == ""  # no resume goes on from there
    assert torch.load(copy.run.last, weights_only=True)["state"]["step"] == 451
    assert_same(steered, copy)
    found = compare(steered.run, copy.run)
    assert (found["first_step"], found["different"], found["steps"]) == (None, [], [451, 451])
    with pytest.raises(UserError, match="is a replay"):
        launch.prepare_resume(copy.run)


def test_steps_that_a_killed_run_logged_after_its_last_checkpoint_are_no_difference(new_run: NewRun) -> None:
    live = new_run(*SETTINGS, "training.log_every=1", "training.steps_per_epoch=6")
    live.killed_here(9)
    assert read_series(live.run.steps, "loss")[0].tolist() == list(range(9))
    copy = replayed(live)
    found = compare(live.run, copy.run)
    assert (found["first_step"], found["different"], found["steps"]) == (None, [], [6, 6])


@pytest.mark.parametrize("beaten", [False, True])
def test_a_replay_of_a_fork_has_the_same_score_to_beat(
    new_run: NewRun, monkeypatch: pytest.MonkeyPatch, beaten: bool
) -> None:
    """The parent's best is of its first epoch; the fork's own best, if it has one, has taken its place since."""
    live = new_run(*SETTINGS, "training.steps_per_epoch=3", "training.epochs=1", "training.patience=2")
    scores = {0: 0.5, 1: 0.4, 2: 0.6 if beaten else 0.3}
    accuracy = importlib.import_module("spiral.project").Accuracy

    def add(self: Any, model: Any, batch: Any, ctx: Context) -> Any:
        self.score = scores.get(ctx.epoch, 0.1)
        return self.project.losses(model, batch, ctx)

    monkeypatch.setattr(accuracy, "add", add)
    monkeypatch.setattr(accuracy, "result", lambda self: Result({}, self.score, {"scores": np.zeros(1)}))
    assert live.here() == "finished"
    fork = LiveRun(prepare_fork(live.run, ["training.epochs=9"])[0])
    assert fork.here() == "early-stopped"
    marks = [row["best"] for row in effective_table(fork.run)]
    assert marks == ([False, True, False, False] if beaten else [False, False])
    copy = replayed(fork)
    assert_same(fork, copy)
    for name in ("best.pt", "last.pt"):
        ours, theirs = (tensors(run.checkpoints / name) for run in (fork.run, copy.run))
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[place], theirs[place]) for place in ours)
    review = read_review(copy.run.review)
    assert review is not None
    assert review.about.epoch == (3 if beaten else 1)


def test_edits_at_one_step_come_in_the_order_of_their_boundaries() -> None:
    """One after an evaluation is undone by a resume from before it; what is edited then at that step holds."""
    late = cmd.SetLossWeights(attempt=1, weights={"radius": 1.0})
    newer = cmd.SetLossWeights(attempt=2, weights={"radius": 2.0})

    def begun(attempt: int, step: int) -> RunStarted:
        return RunStarted(
            attempt=attempt, project="spiral", device="cpu", epochs=6, steps_per_epoch=EPOCH, columns=[], stages=[],
            resumed_step=step, resumed_epoch=0,
        )  # fmt: skip

    events: list[Event] = [
        begun(1, 0), CommandAnswer(attempt=1, command=late, state="applied", step=EPOCH, epoch=1),
        begun(2, EPOCH), CommandAnswer(attempt=2, command=newer, state="applied", step=EPOCH, epoch=0),
    ]  # fmt: skip
    assert [answer.command for answer in interventions(events)] == [newer]


def toy_run(folder: Path, edit: cmd.Command) -> tuple[float, CommandAnswer]:
    """Validation loss of the first epoch, and the answer to the edit."""
    toy = ToyRun(folder, epochs=2)
    launch.send(toy.run, edit)
    assert toy.train() == "finished"
    history = RunReader(toy.run)
    history.poll()
    loss = effective_table(toy.run)[0]["validation"]["loss"]
    return loss, next(answer for answer in history.history.answers if answer.state == "applied")


@pytest.mark.parametrize("epochs_done", [0, 1])
def test_an_edit_at_the_end_of_an_epoch_comes_back_on_its_side_of_the_evaluation(
    tmp_path: Path, epochs_done: int
) -> None:
    """Before the evaluation it weighs the epoch's validation loss, after it only the next one's; both at one step."""
    edit = cmd.SetLossWeights(attempt=1, at_step=8, at_epoch=epochs_done, weights={"rare": 3.0})
    loss, answer = toy_run(tmp_path / "original", edit)
    assert (answer.step, answer.epoch) == (8, epochs_done)
    assert toy_run(tmp_path / "replay", again(answer))[0] == loss
    other = cmd.SetLossWeights(attempt=1, at_step=8, at_epoch=1 - epochs_done, weights={"rare": 3.0})
    assert toy_run(tmp_path / "other", other)[0] != loss


def test_a_difference_is_named_by_its_first_step(tmp_path: Path) -> None:
    one, other = ToyRun(tmp_path / "one", epochs=2), ToyRun(tmp_path / "other", epochs=2)
    launch.send(other.run, cmd.SetLrScale(attempt=1, at_step=11, scale=0.5))
    assert [one.train(), other.train()] == ["finished", "finished"]
    found = compare(one.run, other.run)
    assert (found["first_step"], found["columns"]) == (11, ["lr"])
    assert len(found["different"]) == found["tensors"] == 4


def test_a_run_without_a_checkpoint_is_not_replayed(new_run: NewRun) -> None:
    with pytest.raises(UserError, match="no checkpoint"):
        prepare_replay(new_run(*SETTINGS).run)
