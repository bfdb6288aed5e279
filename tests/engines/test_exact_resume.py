"""Killed at any step and resumed, a run ends in the same weights and the same table, bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from msgspec.structs import replace

from engines.basics.errors import UserError
from engines.contract import commands as cmd
from engines.contract.steps import read_series
from tests.engines.conftest import LiveRun, effective_table, prepare_example, tensors, wait_for
from tests.support.example_project import ExampleProject

SETTINGS = ("training.batch_size=16", "training.epochs=4", "training.checkpoint_minutes=0.002")
STEPS = 4 * 2048 // 16
NewRun = Callable[..., LiveRun]


def edits(attempt: int = 1) -> list[cmd.Command]:
    """Live edits at fixed steps: in the first stage, at an epoch's end, and in the second stage."""
    return [
        cmd.SetLossWeights(attempt=attempt, at_step=61, weights={"radius": 0.7}),
        cmd.SetLrScale(attempt=attempt, at_step=128, scale=0.5),
        cmd.SetLossWeights(attempt=attempt, at_step=290, weights={"side": 1.5, "radius": 0.1}),
        cmd.SetPatience(attempt=attempt, at_step=300, patience=9),
    ]


@pytest.fixture(scope="module")
def straight(example: ExampleProject, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRun]:
    """The run that nothing happened to, with the same edits."""
    with pytest.MonkeyPatch.context() as patch:
        yield straight_run(example, patch, tmp_path_factory.mktemp("straight"))


def straight_run(example: ExampleProject, patch: pytest.MonkeyPatch, folder: Path) -> LiveRun:
    live = LiveRun(prepare_example(example, patch, folder, *SETTINGS))
    for edit in edits():
        live.send(edit)
    assert live.here() == "finished", live.log()
    return live


def assert_equal_runs(one: LiveRun, other: LiveRun) -> None:
    ours, theirs = tensors(one.run.last), tensors(other.run.last)
    assert ours.keys() == theirs.keys()
    different = [place for place in ours if not torch.equal(ours[place], theirs[place])]
    assert not different
    assert effective_table(one.run) == effective_table(other.run)
    for column in ("loss", "side", "lr", "grad_norm"):
        for a, b in zip(read_series(one.run.steps, column), read_series(other.run.steps, column), strict=True):
            assert len(a) == (STEPS // 2 if column == "side" else STEPS)  # off in the first stage: not measured
            torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=0, atol=0, equal_nan=True)


@pytest.mark.behaviour("learning-rate-early-stopping")
def test_killed_twice_equals_uninterrupted(new_run: NewRun, straight: LiveRun) -> None:
    """The engine killed behind edits that no checkpoint holds, then the supervisor before they are reached again."""
    killed = new_run(*SETTINGS[:2], "training.checkpoint_minutes=100")
    for edit in edits():
        killed.send(edit)
    pause = cmd.Pause(attempt=1, at_step=305)  # the newest checkpoint is of step 256, two edits lie between
    killed.send(pause)
    killed.start()
    killed.wait_answer(pause, "applied")
    killed.kill("engine")
    assert killed.reader.status().state == "failed"
    assert "SIGKILL" in killed.reader.status().detail

    pause = cmd.Pause(attempt=2, at_step=270)
    killed.send(pause)
    killed.resume()
    killed.wait_answer(pause, "applied")
    killed.kill("supervisor")
    assert killed.reader.status().state == "lost"

    assert killed.resume_here() == "finished", killed.log()
    killed.reader.poll()
    assert killed.reader.history.resumes == [256, 256]
    assert_equal_runs(killed, straight)


@pytest.mark.behaviour("killed-moment-also-inside")
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_killed_at_random_moments(new_run: NewRun, straight: LiveRun, seed: int) -> None:
    """SIGKILL at whatever the engine is doing five times over: loading, stepping, evaluating, saving."""
    chance = random.Random(seed)
    killed = new_run(*SETTINGS)
    waiting = edits()
    for edit in waiting:
        killed.send(edit)
    attempt = killed.start()
    for _ in range(5):
        target = chance.randrange(0, STEPS)
        events = chance.choice(["phase", "checkpoint", "epoch", "steps"])

        def reached(target: int = target, events: str = events, attempt: int = attempt) -> bool:
            now = killed.run.attempt(attempt)
            if now.ended is not None or now.engine is None:  # what the attempt before wrote tells of no engine now
                return now.ended is not None
            if events == "steps":
                return bool(len(steps := read_series(killed.run.steps, "loss")[0]) and steps[-1] >= target)
            return any(event.__struct_config__.tag == events for event in killed.reader.poll())

        wait_for("a moment to kill in", reached)
        if killed.run.attempt(attempt).ended is not None:
            break
        killed.kill(chance.choice(["engine", "supervisor"]))
        killed.reader.poll()
        answers = {edit.id: killed.reader.history.answer(edit.id, edit.attempt) for edit in waiting}
        applied = {id for id, answer in answers.items() if answer is not None and answer.state == "applied"}
        # an order is for one attempt: what was applied is put in force again by the resume, the others are sent again
        waiting = [replace(edit, attempt=attempt + 1, id=cmd.new_id()) for edit in waiting if edit.id not in applied]
        for edit in waiting:
            killed.send(edit)
        attempt = killed.resume()
    killed.wait_end()
    assert_equal_runs(killed, straight)


@pytest.mark.behaviour("resume-appends-logs-held", "learning-rate-early-stopping", "killed-moment-also-inside")
def test_stop_and_resume_equals_uninterrupted(new_run: NewRun, straight: LiveRun) -> None:
    """Stopped inside an epoch and at its very end, where the evaluation is still pending."""
    stopped = new_run(*SETTINGS)
    for edit in [*edits(attempt=1)[:2], *edits(attempt=2)[2:]]:
        stopped.send(edit)
    stopped.send(cmd.Stop(attempt=1, at_step=200))
    assert stopped.here() == "stopped"
    logs = (stopped.run.events, stopped.run.commands, stopped.run.train_metrics, stopped.run.val_metrics)
    before = {log: log.read_bytes() for log in (*logs, stopped.run.stdout, *stopped.run.steps.glob("*.f64"))}
    assert all(before.values())
    stale = stopped.run.checkpoints / ".last.pt.0badcafe.tmp"
    stale.write_bytes(b"a save that was killed")
    stopped.send(cmd.Stop(attempt=2, at_step=384))
    assert stopped.resume_here() == "stopped"
    stopped.reader.poll()
    assert len(stopped.reader.history.epochs) == 2  # the third is trained, not yet evaluated
    assert stopped.resume_here() == "finished", stopped.log()
    stopped.reader.poll()
    assert stopped.reader.history.resumes == [200, 384]
    assert not stale.exists()
    assert [log.name for log, content in before.items() if not log.read_bytes().startswith(content)] == []
    assert_equal_runs(stopped, straight)


@pytest.mark.behaviour("run-ended-itself-trained")
def test_finished_run_resumes_only_with_more_to_do(new_run: NewRun) -> None:
    """Trained to 2 epochs and extended to 4 it is not the straight run (the cosine was another), but it goes on."""
    live = new_run("training.epochs=2")
    assert live.here() == "finished", live.log()
    with pytest.raises(UserError, match=r"finished at epoch 2; give it more epochs or patience"):
        live.resume()
    assert live.resume_here("training.epochs=3", "model.width=64") == "finished", live.log()
    live.reader.poll()
    assert [row.epoch for row in live.reader.history.epochs.values()] == [1, 2, 3]
