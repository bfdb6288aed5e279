"""Stops, early stops and pauses of a live training: when each takes effect, and what is evaluated and saved before."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from engines.contract import commands as cmd
from engines.training import steering
from tests.engines.conftest import PATIENCE, wait_for
from tests.engines.toy import ToyEvaluation, ToyProject, ToyRun, events_of, final_answers, send


@pytest.mark.behaviour("stop-heard-every-phase", "save-stop-asked-acknowledged")
def test_pause_holds_and_still_answers(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, epochs=1)
    send(toy, cmd.Pause(attempt=1, at_step=3))
    trained = threading.Thread(target=toy.trainer.train)
    toy.listener._hear()
    toy.listener._thread.start()
    trained.start()
    wait_for("the pause", lambda: any(event["phase"] == "paused" for event in events_of(toy, "phase")))
    edit, save, go_on = (
        cmd.SetLossWeights(attempt=1, weights={"rare": 2.0}), cmd.SaveCheckpoint(attempt=1), cmd.Continue(attempt=1),
    )  # fmt: skip
    send(toy, edit, save)
    wait_for("the answers", lambda: len(final_answers(toy)) == 3)
    assert toy.trainer.state.step == 3
    assert toy.run.last.is_file()
    send(toy, go_on)
    trained.join(PATIENCE)
    assert not trained.is_alive()
    assert toy.trainer.state.step == 8
    assert final_answers(toy)[edit.id] == [("applied", 3, "")]
    assert final_answers(toy)[go_on.id] == [("applied", 3, "")]


def test_stop_after_the_epoch_evaluates_first(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path)
    stop = cmd.Stop(attempt=1, at_step=3, when="after_epoch")
    send(toy, stop)
    assert toy.train() == "stopped"
    assert [event["epoch"] for event in events_of(toy, "epoch")] == [1]
    assert final_answers(toy)[stop.id] == [("applied", 3, "")]


@pytest.mark.behaviour("stop-heard-every-phase", "save-stop-asked-acknowledged")
def test_stop_during_evaluation_leaves_it_pending(tmp_path: Path) -> None:
    """The stop arrives while the validation runs; the epoch is neither counted nor lost."""

    class Slow(ToyProject):
        def evaluation(self, cfg: Any, data: Any) -> ToyEvaluation:
            send(toy, stop)
            wait_for("the stop to be heard", lambda: toy.listener.stop_requested)
            return super().evaluation(cfg, data)

    stop = cmd.Stop(attempt=1)
    toy = ToyRun(tmp_path, Slow())
    assert toy.train() == "stopped"
    assert events_of(toy, "epoch") == []
    assert toy.trainer.state.step == toy.trainer.state.step_in_epoch == 8
    assert toy.run.last.is_file()
    assert final_answers(toy)[stop.id] == [("applied", 8, "")]


def test_a_stop_after_the_epoch_does_not_weaken_the_sooner_one(tmp_path: Path) -> None:
    """Both at one boundary. The sooner one already cuts evaluations short, so nothing else may be waited for."""

    class Impatient(ToyProject):
        def evaluation(self, cfg: Any, data: Any) -> ToyEvaluation:
            raise AssertionError("the run went on to the end of its epoch")

    toy = ToyRun(tmp_path, Impatient())
    sooner, later = cmd.Stop(attempt=1), cmd.Stop(attempt=1, when="after_epoch")
    send(toy, sooner, later)
    assert toy.train() == "stopped"
    assert toy.trainer.state.step == 0
    assert final_answers(toy) == {sooner.id: [("applied", 0, "")], later.id: [("applied", 0, "")]}


def test_an_evaluation_that_a_stop_cuts_short_is_not_called_done(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path)
    evaluate, stop = cmd.Evaluate(attempt=1), cmd.Stop(attempt=1)
    send(toy, evaluate, stop)
    assert toy.train() == "stopped"
    assert final_answers(toy)[evaluate.id] == [("refused", 0, "the run is stopping")]
    assert toy.run.val_metrics.read_bytes() == b""


def test_early_stopping_counts_from_minus_infinity_and_says_so(tmp_path: Path) -> None:
    """A score that never moves from -5 is best once, then patience runs out."""

    class Stuck(ToyProject):
        forced_score = -5.0

    toy = ToyRun(tmp_path, Stuck(), epochs=10, patience=2)
    assert toy.train() == "early-stopped"
    assert [event["best"] for event in events_of(toy, "epoch")] == [True, False, False]
    assert toy.run.best.is_file()


@pytest.mark.behaviour("epoch-begun-finished-evaluated")
def test_a_patience_set_lower_inside_an_epoch_has_that_evaluated_first(tmp_path: Path) -> None:
    """Hours of it would be thrown away, and it may be the best."""

    class Late(ToyProject):
        scores = iter([1.0, 0.5, 2.0, 0.5, 0.5])

        def evaluation(self, cfg: Any, data: Any) -> Any:
            self.forced_score = next(self.scores)
            return super().evaluation(cfg, data)

    toy = ToyRun(tmp_path, Late(), epochs=9)
    send(toy, cmd.SetPatience(attempt=1, at_step=19, patience=1))  # the third epoch is from step 16 to 24
    assert toy.train() == "early-stopped"
    assert (toy.trainer.state.epoch, toy.trainer.state.best_epoch, toy.trainer.state.step_in_epoch) == (4, 3, 0)


def test_a_run_stopped_early_finishes_its_epoch_and_counts_as_early_stopped(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path)
    early, again = cmd.StopEarly(attempt=1, at_step=11), cmd.StopEarly(attempt=1, at_step=12)
    send(toy, early, again)
    assert toy.train() == "early-stopped"
    assert [event["epoch"] for event in events_of(toy, "epoch")] == [1, 2]
    assert toy.trainer.state.step == 16
    assert toy.run.best.is_file()
    assert {*map(tuple, final_answers(toy)[early.id])} == {("applied", 11, "")}


def test_a_stop_after_the_step_is_sooner_than_an_early_stop(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path)
    send(toy, cmd.StopEarly(attempt=1, at_step=3), cmd.Stop(attempt=1, at_step=5), cmd.StopEarly(attempt=1, at_step=5))
    assert toy.train() == "stopped"
    assert toy.trainer.state.step == 5


def test_an_early_stop_ends_a_pause(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, epochs=2)
    send(toy, cmd.Pause(attempt=1, at_step=3), cmd.StopEarly(attempt=1, at_step=3))
    assert toy.train() == "early-stopped"
    assert toy.trainer.state.epoch == 1


@pytest.mark.behaviour("pauses-out-of-rates")
def test_a_pause_is_no_part_of_its_epochs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that only a pause moves: by an hour."""
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    toy = ToyRun(tmp_path, epochs=1)
    monkeypatch.setattr(toy.listener, "wait", lambda seconds: clock.__setitem__(0, clock[0] + 3600))
    send(toy, cmd.Pause(attempt=1, at_step=3))
    holding = steering.Steering._holding
    monkeypatch.setattr(steering.Steering, "_holding", lambda it: holding(it) and clock[0] < 3600)
    assert toy.train() == "finished"
    assert clock == [3600.0]
    assert [event["seconds"] for event in events_of(toy, "epoch")] == [0.0]
