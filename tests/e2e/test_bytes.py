"""What the program sends over the line for each epoch: counted, not timed."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from engines.contract.steps import StepWriter
from tests.e2e.test_terminals import Line, words
from tests.support.fake_run import STEPS_PER_EPOCH, FakeRun

OPENING, EPOCHS = 3, 5
"""The most epochs that may come while the screen is still being opened, in pieces, and those that are counted."""
PICTURES = 25_000
"""Bytes of the list of runs and then the run's screen, each seen growing to what it is in the end."""
A_SECOND = 10_000
"""Bytes. Table and charts change at most once a second, so no epoch may cost more than a second may."""


def cost_of(line: Line, fake: FakeRun, epoch: int) -> int:
    """Bytes until the epoch's score is on the screen."""
    before = len(line.sent)
    fake.epochs(epoch)
    line.wait(lambda sent: f"{epoch / 10:.3f}".encode() in words(sent[before:]))
    return len(line.sent) - before


@pytest.mark.behaviour("epoch-costs-few-kilobytes")
def test_an_epoch_costs_a_few_lines_and_no_screen(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "runs").mkdir()
    fake = FakeRun(tmp_path / "runs").begin().started(epochs=99).epochs(*range(1, 31), best=30)
    steps = StepWriter(fake.run.steps, ["time", "loss", "lr", "grad_norm"])
    with fake.locked():
        line = Line(tmp_path, env | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
        line.wait(lambda sent: "● running".encode() in words(sent))
        line.press(b"\r")
        parts = ("TrLoss", "0.033", "★ best", "CPU ")  # of table, chart and machine
        line.wait(lambda sent: all(part.encode() in words(sent) for part in parts))
        whole, epochs = len(line.sent), itertools.count(31)

        def next_cost() -> int:
            first = ((epoch := next(epochs)) - 1) * STEPS_PER_EPOCH
            steps.append(np.array([[first + i, 1.8e9, 0.5, 5e-4, 0.1] for i in range(STEPS_PER_EPOCH)]))
            return cost_of(line, fake, epoch)

        for _ in range(OPENING):
            if next_cost() < whole / 2:
                break
        costs = [next_cost() for _ in range(EPOCHS)]
        before = len(line.sent)
        line.press(b"\x0c")  # ctrl+l
        line.wait(lambda sent: all(part in words(sent[before:]) for part in (b"TrLoss", b"CPU ")))
        line.leave()
    assert whole < PICTURES
    assert np.median(costs) < A_SECOND, costs
    assert max(costs) < whole / 2, costs  # no whole screen is drawn anew
