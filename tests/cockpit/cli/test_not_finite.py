"""NaN and infinities in every place of a run: each command prints its table and JSON that every reader takes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from cockpit.cli.printing import show_json
from engines.contract import events as ev
from engines.contract.steps import StepWriter
from tests.cockpit.cli.conftest import Cockpit
from tests.support.fake_run import STEPS_PER_EPOCH, FakeRun

BAD = (math.nan, math.inf, -math.inf)


def strict(text: str) -> Any:
    """As a reader in another language: NaN and Infinity are no JSON."""

    def refuse(word: str) -> NoReturn:
        raise ValueError(f"bare {word}")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def diverged(runs: Path) -> FakeRun:
    """No number of it is finite."""
    fake = FakeRun(runs).begin().started()
    steps = StepWriter(fake.run.steps, ["time", "loss", "lr", "grad_norm"])
    for number, bad in enumerate(BAD, 1):
        steps.append(np.full((1, 5), bad) + np.array([[number, 0, 0, 0, 0]]))
        train, named = ev.finite({"loss": bad, "action": bad}, "train.")
        validation, also = ev.finite({"action_f1": bad}, "validation.")
        fake.say(
            ev.Epoch(
                epoch=number, step=number * STEPS_PER_EPOCH, stage="train", train=train, validation=validation,
                score=None, lr=0.0, best=False, weights={}, seconds=1.0, nonfinite=[*named, *also, "score"],
            )
        )  # fmt: skip
    report = {"tables": {"heads": {"columns": ["head", "f1"], "rows": [[str(bad), bad] for bad in BAD]}}}
    fake.run.report.write_text(json.dumps(report))
    return fake.end("failed", exit_code=1, error="3 steps in a row were not finite")


@pytest.mark.behaviour("nan-both-infinities-place")
def test_every_command_takes_numbers_that_are_not_finite(cockpit: Cockpit, diverged: FakeRun) -> None:
    for command in (
        ["ls"],
        ["status"],
        ["show", "last"],
        ["report", "last"],
        ["watch", "--once", str(diverged.run.path)],
    ):
        told = cockpit(*command, "--json")
        assert told.returncode == 0, (command, told.stderr)
        strict(told.stdout)
        assert cockpit(*command).returncode == 0
    assert strict(cockpit("report", "last", "--json").stdout)["heads"]["rows"] == [[str(bad), None] for bad in BAD]
    tail = cockpit("tail", "last")
    assert [line.split()[:5] for line in tail.stdout.splitlines()[2:5]] == [
        [str(number), "nan", "nan", "nan", "nan"] for number in (1, 2, 3)
    ]


@pytest.mark.behaviour("nan-both-infinities-place")
@pytest.mark.parametrize("bad", BAD)
def test_what_is_not_finite_is_null_in_json(bad: float, capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"a": [bad, 1.5], "é": (bad, {"b": bad})})
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert strict(printed) == {"a": [None, 1.5], "é": [None, {"b": None}]}
