"""Random commands at random moments against the real loop: each answered once an attempt, and never in a bad state."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from engines.basics.line_writer import append_line
from engines.contract import commands as cmd
from engines.contract.events import CommandAnswer, decoder
from engines.runs.state import RunReader
from engines.runtime import listener
from engines.training import checkpoint
from tests.engines.conftest import wait_for
from tests.engines.toy import ToyRun

ATTEMPTS = 3
STEPS = 8 * 4
"""Of a run as configured; edits make it longer or shorter."""


class RandomRun(ToyRun):
    """One attempt of the toy project, with commands drawn beforehand; resumes where the folder has a checkpoint."""

    def __init__(self, folder: Path, draw: random.Random, attempt: int) -> None:
        super().__init__(folder, attempt=attempt, epochs=4, patience=3)
        earlier = RunReader(self.run)
        earlier.poll()
        self.edits = earlier.history.edits()
        self.resumed = 0
        if (path := checkpoint.resume_point(self.run)) is not None:
            self.trainer.restore(checkpoint.load(path))
            self.resumed = self.trainer.state.step
        groups = [commands(draw, attempt, self.resumed) for _ in range(draw.randint(1, 12))]
        self.sent = [one for group in groups for one in group]
        self._at_batch: dict[int, list[cmd.Command]] = {at: [] for at in (0, *(draw.randint(1, STEPS) for _ in groups))}
        for group in groups:
            self._at_batch[draw.choice(list(self._at_batch))] += group
        self._send_until(0)
        self._make_batch, self._batches = self.data.train.batch, 0
        self.data.train.batch = self._batch  # type: ignore[method-assign, assignment]

    def _send_until(self, batch: float) -> None:
        for at in sorted(at for at in self._at_batch if at <= batch):
            for one in self._at_batch.pop(at):
                append_line(self.run.commands, cmd.encode(one))

    def _batch(self, *arguments: Any) -> Any:
        """Some arrive while a step is made, to be heard by the listener's thread whenever it looks."""
        self._batches += 1
        self._send_until(self._batches)
        return self._make_batch(*arguments)

    def go(self) -> str:
        with self.listener:
            ended = self.trainer.train(self.edits)
            self._send_until(math.inf)
            wait_for("all to be heard", lambda: set(self.listener._heard) >= {one.id for one in self.sent})
        return ended


def commands(draw: random.Random, attempt: int, from_step: int) -> list[cmd.Command]:
    """One that is due at once or at a step to come, or a pause and its end; some of them cannot be carried out."""
    when: dict[str, Any] = {"attempt": attempt, "at_step": draw.choice([None, from_step + draw.randint(0, STEPS)])}
    kinds: list[cmd.Command | None] = [
        None,
        cmd.SetLossWeights(**when, weights={draw.choice(["all", "rare", "none"]): draw.uniform(-0.2, 2)}),
        cmd.SetLrScale(**when, scale=draw.uniform(-0.1, 2)),
        cmd.SetEpochs(**when, epochs=draw.randint(0, 6)),
        cmd.SetPatience(**when, patience=draw.randint(0, 4)),
        cmd.SaveCheckpoint(**when),
        cmd.Evaluate(**when),
        cmd.MeasureGradients(**when),
        cmd.Continue(**when),
        cmd.StopEarly(**when),
        cmd.Stop(**when, when=draw.choice(["after_step", "after_epoch"])),
    ]
    chosen = draw.choice(kinds)
    return [cmd.Pause(**when), cmd.Continue(**when)] if chosen is None else [chosen]


def events_of(run: ToyRun) -> list[Any]:
    return [decoder.decode(line) for line in run.run.events.read_bytes().splitlines()]


def check_answers(run: RandomRun, attempt: int) -> None:
    """Every command of the attempt has one answer beside `seen`, in that attempt."""
    answers = [event for event in events_of(run) if isinstance(event, CommandAnswer) and event.attempt == attempt]
    for one in run.sent:
        final = [answer.state for answer in answers if answer.command.id == one.id and answer.state != "seen"]
        assert len(final) == 1, (one, final)


def check_settings(run: RandomRun) -> None:
    """What is in force is what the applied edits say, one after another, from the config on."""
    weights, scale, epochs, patience = {"all": 1.0, "rare": 0.5}, 1.0, 4, None
    for event in events_of(run):
        if not (isinstance(event, CommandAnswer) and event.state == "applied"):
            continue
        match event.command:
            case cmd.SetLossWeights(weights=changed):
                weights.update(changed)
            case cmd.SetLrScale(scale=changed):
                scale = changed
            case cmd.SetEpochs(epochs=changed):
                epochs = changed
            case cmd.SetPatience(patience=changed):
                patience = changed
    state = run.trainer.state.live
    assert (state.weights, state.lr_scale, state.epochs, state.patience) == (weights, scale, epochs, patience)
    assert run.trainer.step._weights.tolist() == pytest.approx([weights["all"], weights["rare"]])


def check_resumable(run: RandomRun) -> None:
    """last.pt is whole and stands where the loop ended, with every number finite.

    An edit at the very end is in the log alone; the next attempt applies it, and is checked for that.
    """
    content = checkpoint.load(run.run.last)
    saved, state = content["state"], run.trainer.state.dump()
    assert {**saved, "live": None} == {**state, "live": None}
    assert all(torch.isfinite(tensor).all() for tensor in content["model"].values())


def story(folder: Path, seed: int) -> None:
    """A run of several attempts under random commands, each resumed from what the one before left."""
    draw = random.Random(seed)
    for attempt in range(1, ATTEMPTS + 1):
        run = RandomRun(folder, draw, attempt)
        assert run.go() in ("finished", "early-stopped", "stopped")
        check_answers(run, attempt)
        check_settings(run)
        check_resumable(run)


@pytest.fixture(autouse=True)
def _quick_to_hear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "POLL_SECONDS", 0.002)


@pytest.mark.parametrize("seed", range(12))
def test_random_commands(tmp_path: Path, seed: int) -> None:
    story(tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 2000, 10))
def test_a_thousand_sequences_of_random_commands(tmp_path: Path, seed: int) -> None:
    for one in range(seed, seed + 10):
        story(tmp_path / str(one), one)


def test_the_sequences_hold_every_kind_of_command() -> None:
    draw = random.Random(0)
    assert {type(one) for _ in range(200) for one in commands(draw, 1, 0)} == {*get_args(cmd.Command)}
