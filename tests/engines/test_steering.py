"""Commands: each answered once, applied at a step boundary or refused with a reason, in every phase."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from engines.contract import commands as cmd
from engines.contract.events import CommandAnswer
from engines.contract.rundir import Attempt, ProcessMark
from engines.contract.steps import StepWriter, read_series
from engines.runs.state import RunReader
from engines.training import checkpoint
from engines.training.finish import finish
from engines.training.steering import edits_after
from tests.engines.conftest import LiveRun
from tests.engines.toy import ToyEvaluation, ToyProject, ToyRun, events_of, final_answers, send

REFUSED: list[tuple[cmd.Command, str]] = [
    (cmd.SetLossWeights(attempt=1, weights={"rair": 1.0}), "there is no head 'rair' (did you mean 'rare'?)"),
    (cmd.SetLossWeights(attempt=1, weights={"rare": -1.0}), "must be a finite number of 0 or more, got -1.0"),
    (cmd.SetLossWeights(attempt=1, weights={"rare": 1e300}), "must be a finite number of 0 or more, got 1e+300"),
    (cmd.SetLossWeights(attempt=1, weights={"all": 0.0, "rare": 0.0}), "with every weight at 0, nothing would be"),
    (cmd.SetLrScale(attempt=1, scale=0.0), "the scale must be a number from 1e-06 to 1000, got 0"),
    (cmd.SetLrScale(attempt=1, scale=1e30), "the scale must be a number from 1e-06 to 1000, got 1e+30"),
    (cmd.SetEpochs(attempt=1, epochs=0), "the run cannot end before epoch 1 is done, got 0"),
    (cmd.SetPatience(attempt=1, patience=0), "the patience must be 1 or more, got 0"),
    (cmd.Continue(attempt=1), "the run is not paused"),
]


@pytest.mark.parametrize(("command", "reason"), REFUSED, ids=lambda value: type(value).__name__)
def test_what_cannot_be_done_is_refused_with_its_reason(tmp_path: Path, command: cmd.Command, reason: str) -> None:
    toy = ToyRun(tmp_path, epochs=1)
    before = dict(toy.trainer.state.live.weights)
    send(toy, command)
    assert toy.train() == "finished"
    [(state, step, said)] = final_answers(toy)[command.id]
    assert (state, step) == ("refused", 0)
    assert reason in said
    assert toy.trainer.state.live.weights == before


def test_the_only_head_of_a_stage_keeps_its_weight(tmp_path: Path) -> None:
    """The other's weight counts for nothing as long as that is off."""
    toy = ToyRun(tmp_path, epochs=2, stages=[{"name": "one", "epochs": 1, "heads": ["rare"]}, {"name": "both"}])
    off, later = (cmd.SetLossWeights(attempt=1, at_step=step, weights={"rare": 0.0}) for step in (3, 9))
    send(toy, off, later)
    assert toy.train() == "finished"
    answers = final_answers(toy)
    assert answers[off.id] == [("refused", 3, "with every weight of this stage at 0, nothing would be trained")]
    assert answers[later.id] == [("applied", 9, "")]


def test_edits_apply_at_their_step_and_not_before(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, epochs=2)
    weights = cmd.SetLossWeights(attempt=1, at_step=5, weights={"rare": 3.0})
    scale = cmd.SetLrScale(attempt=1, at_step=9, scale=0.5)
    epochs = cmd.SetEpochs(attempt=1, at_step=10, epochs=3)
    send(toy, epochs, scale, weights)
    plain = ToyRun(tmp_path / "plain", epochs=3)
    toy.train()
    plain.train()
    answers = final_answers(toy)
    assert [answers[c.id] for c in (weights, scale, epochs)] == [
        [("applied", 5, "")], [("applied", 9, "")], [("applied", 10, "")],
    ]  # fmt: skip
    (_, ours), (_, theirs) = (read_series(run.run.steps, "loss") for run in (toy, plain))
    (_, our_lr), (_, their_lr) = (read_series(run.run.steps, "lr") for run in (toy, plain))
    assert len(ours) == len(theirs) == 24
    assert (ours[:5] == theirs[:5]).all()
    assert ours[5] != theirs[5]
    assert (our_lr[:8] == their_lr[:8]).all()
    assert our_lr[12] == pytest.approx(their_lr[12] / 2)
    assert toy.trainer.state.live.weights == {"all": 1.0, "rare": 3.0}


@pytest.mark.behaviour("losses-computed-other-loss")
def test_the_validation_loss_is_that_of_the_weights_on_record_and_the_score_of_none(tmp_path: Path) -> None:
    """An edit between the last step of an epoch and its evaluation: the model is the same, to the last bit."""
    toy, plain = ToyRun(tmp_path, epochs=1), ToyRun(tmp_path / "plain", epochs=1)
    send(toy, cmd.SetLossWeights(attempt=1, at_step=8, weights={"all": 0.25, "rare": 3.0}))
    rows = []
    for run in (toy, plain):
        run.train()
        rows += events_of(run, "epoch")
    edited, usual = rows
    assert {row["step"] for row in rows} == {8}
    assert [edited[key] for key in ("score", "best")] == [usual[key] for key in ("score", "best")]
    assert (edited["weights"], usual["weights"]) == ({"all": 0.25, "rare": 3.0}, {"all": 1.0, "rare": 0.5})
    for part in ("train", "validation"):
        for row in rows:
            values, weights = row[part], row["weights"]
            assert values["loss"] == pytest.approx(sum(weights[head] * values[head] for head in weights))
        assert edited[part].pop("loss") != usual[part].pop("loss")
        assert edited[part] == usual[part]


def made(command: cmd.Command, step: int, epoch: int = 0) -> CommandAnswer:
    return CommandAnswer(command=command, state="applied", step=step, epoch=epoch)


def weights_of(answers: list[CommandAnswer]) -> list[tuple[int, dict[str, float]]]:
    return [(answer.step, answer.command.weights) for answer in answers]  # type: ignore[union-attr]


def test_edits_of_several_attempts_are_due_in_the_order_of_their_steps() -> None:
    """The second attempt was killed before it reached the edit of the first again."""
    first = made(cmd.SetLossWeights(attempt=1, weights={"rare": 0.7}), 300)
    second = made(cmd.SetLossWeights(attempt=2, weights={"all": 2.0}), 270)
    assert edits_after([first, second], 256, 0) == [second, first]
    assert edits_after([first, second], 271, 0) == [first]


def test_a_newer_edit_at_an_earlier_step_takes_the_place_of_an_older_one() -> None:
    older = made(cmd.SetLossWeights(attempt=1, weights={"rare": 0.7, "all": 3.0}), 300)
    epochs, patience = made(cmd.SetEpochs(attempt=1, epochs=4), 301), made(cmd.SetPatience(attempt=1, patience=2), 302)
    newer = made(cmd.SetLossWeights(attempt=2, weights={"rare": 0.5}), 256)
    longer = made(cmd.SetEpochs(attempt=2, epochs=10), 256)
    *weights, last = edits_after([older, epochs, patience, newer, longer], 256, 0)
    assert weights_of([weights[0], weights[2]]) == [(256, {"rare": 0.5}), (300, {"all": 3.0})]
    assert (weights[1], last) == (longer, patience)


def test_a_live_edit_takes_the_place_of_one_that_is_still_to_be_applied_again(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, epochs=2)
    again = [
        made(cmd.SetLossWeights(attempt=0, weights={"rare": 0.7, "all": 3.0}), 9, 1),
        made(cmd.SetEpochs(attempt=0, epochs=2), 10, 1),
    ]
    send(
        toy,
        cmd.SetLossWeights(attempt=1, at_step=5, weights={"rare": 0.25}),
        cmd.SetEpochs(attempt=1, at_step=5, epochs=3),
        cmd.SetLossWeights(attempt=1, at_step=6, weights={"all": -1.0}),  # refused, so it changes nothing
    )
    with toy.listener:
        assert toy.trainer.train(again) == "finished"
    assert toy.trainer.state.live.weights == {"all": 3.0, "rare": 0.25}
    assert toy.trainer.state.epoch == 3


def test_a_run_ends_with_a_whole_epoch(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, epochs=3)
    too_few = cmd.SetEpochs(attempt=1, at_step=11, epochs=1)  # in the middle of the second epoch
    fewer = cmd.SetEpochs(attempt=1, at_step=12, epochs=2)
    send(toy, too_few, fewer)
    assert toy.train() == "finished"
    assert toy.trainer.state.step == 16
    assert final_answers(toy) == {
        too_few.id: [("refused", 11, "the run cannot end before epoch 2 is done, got 1")],
        fewer.id: [("applied", 12, "")],
    }
    assert [event["epoch"] for event in events_of(toy, "epoch")] == [1, 2]


def test_commands_of_another_attempt_are_left_alone(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, epochs=1)
    send(toy, cmd.Stop(attempt=2), cmd.SetPatience(attempt=7, patience=1))
    assert toy.train() == "finished"
    assert events_of(toy, "command") == []


def test_evaluate_now_is_logged_and_changes_nothing(tmp_path: Path) -> None:
    asked, plain = ToyRun(tmp_path / "asked"), ToyRun(tmp_path / "plain")
    send(asked, cmd.Evaluate(attempt=1, at_step=4), cmd.SaveCheckpoint(attempt=1, at_step=5))
    asked.train()
    plain.train()
    rows = [msgspec.json.decode(line) for line in asked.run.val_metrics.read_bytes().splitlines()]
    assert [(row["step"], row["on_demand"]) for row in rows] == [(4, True), (8, False), (16, False), (24, False)]
    for ours, theirs in zip(asked.model.parameters(), plain.model.parameters(), strict=True):
        assert bool((ours == theirs).all())


def test_a_refused_save_goes_on_and_a_refused_log_of_steps_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a log that lacks steps no checkpoint is worth its resume; on ranks all have to leave the save together."""
    broken = OSError(errno.EIO, os.strerror(errno.EIO))

    def refuse(*_: Any, **__: Any) -> None:
        monkeypatch.undo()
        raise broken

    toy, save = ToyRun(tmp_path / "save"), cmd.SaveCheckpoint(attempt=1, at_step=5)
    send(toy, save)
    monkeypatch.setattr(checkpoint, "write", refuse)
    assert toy.train() == "finished"
    assert final_answers(toy)[save.id] == [("refused", 5, "the checkpoint could not be written: Input/output error")]
    toy, save = ToyRun(tmp_path / "log"), cmd.SaveCheckpoint(attempt=1, at_step=5)
    send(toy, save)
    monkeypatch.setattr(StepWriter, "append", refuse)
    with pytest.raises(OSError, match="Input/output error"):
        toy.train()


def test_an_evaluation_that_draws_random_numbers_changes_nothing_either(tmp_path: Path) -> None:
    """Asked for, cut short and pending again: the dropout of the steps after it stays what it was."""

    class Sampling(ToyProject):
        def evaluation(self, cfg: Any, data: Any) -> ToyEvaluation:
            torch.rand(3), np.random.rand(2), random.random()
            return super().evaluation(cfg, data)

    asked, plain = ToyRun(tmp_path / "asked", Sampling()), ToyRun(tmp_path / "plain", Sampling())
    send(asked, *(cmd.Evaluate(attempt=1, at_step=step) for step in (1, 4, 9)))
    asked.train()
    plain.train()
    for ours, theirs in zip(asked.model.parameters(), plain.model.parameters(), strict=True):
        assert bool((ours == theirs).all())


def test_a_garbled_command_is_told_and_harms_nothing(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, epochs=1)
    toy.run.commands.write_bytes(b'{"type":"stop","attempt":\n[]\n{"type":"dance","attempt":1,"id":"x","time":0}\n')
    patience = cmd.SetPatience(attempt=1, patience=3)
    send(toy, patience)
    assert toy.train() == "finished"
    assert final_answers(toy)[patience.id] == [("applied", 0, "")]
    assert any("line 3 is not a command" in event["text"] for event in events_of(toy, "alert"))


@pytest.mark.behaviour("stop-heard-every-phase")
def test_a_command_sent_while_loading_is_answered(new_run: Callable[..., LiveRun]) -> None:
    stopped = new_run()
    stop = cmd.Stop(attempt=1)
    stopped.send(stop)
    assert stopped.here() == "stopped"
    assert stopped.wait_answer(stop, "applied").step == 0

    live = new_run()
    live.start()
    pause = cmd.Pause(attempt=1)
    live.send(pause)  # torch alone takes longer to load
    assert live.wait_answer(pause, "applied").step == 0
    live.wait_state("paused")
    save = cmd.SaveCheckpoint(attempt=1)
    live.send(save)
    live.wait_answer(save, "applied")
    live.wait_state("paused")  # a save gives the pause back
    assert live.run.last.is_file()
    stop = cmd.Stop(attempt=1, when="after_epoch")
    live.send(stop)
    assert live.wait_end() == "stopped"
    live.reader.poll()
    assert len(live.reader.history.epochs) == 1  # the pause ended, so that the epoch could


def test_compiling_is_a_phase_until_the_first_step_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda model: model)
    toy = ToyRun(tmp_path, epochs=1, compile=True)
    toy.train()
    phases = [(event["phase"], event["step"]) for event in events_of(toy, "phase")]
    assert phases[:3] == [("compiling", 0), ("training", 1), ("evaluating", toy.trainer.schedule.steps_per_epoch)]


@pytest.mark.behaviour("pauses-out-of-rates")
def test_how_far_the_report_is_can_be_seen(tmp_path: Path) -> None:
    def detail() -> str:
        reader = RunReader(toy.run)
        reader.poll()
        return reader.status_from(True, Attempt(number=1, started=1.0, supervisor=ProcessMark(1, 1.0))).detail

    class Reporting(ToyProject):
        def report(self, *made_of: Any) -> dict[str, Any]:
            for number in range(3):
                self.report_progress(number, 3, "parts")
                seen.append(detail())
            return {}

        def export(self, *made_of: Any) -> None:
            seen.append(detail())

    seen: list[str] = []
    toy = ToyRun(tmp_path, project=Reporting(), epochs=1)
    assert toy.train() == "finished"
    assert finish(toy.trainer)
    assert seen[0] == "report 0/3"
    assert seen[-1] == "export"
