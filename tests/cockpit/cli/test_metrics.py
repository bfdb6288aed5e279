"""metrics, plot and log: a run's numbers and words, out of the run's directory."""

from __future__ import annotations

import csv
import io
import json
import math
import time
from pathlib import Path

import numpy as np
import pytest

from engines.contract.steps import StepWriter
from tests.cockpit.cli.conftest import Cockpit
from tests.support.fake_run import FakeRun

HOSTILE = "x\x1b[2J\x1b]0;owned\x07[bold]"


@pytest.fixture
def run(runs: Path) -> FakeRun:
    """Three epochs of ten steps, every step logged; the loss of step 7 is not finite."""
    fake = FakeRun(runs, label="demo").begin().started()
    steps = StepWriter(fake.run.steps, ("time", "loss"))
    steps.append(np.array([(step, 1, 1000.0 + step, math.inf if step == 7 else 3 / (step + 1)) for step in range(30)]))
    steps.close()
    return fake.epochs(1, 2, 3, best=3).end("finished")


@pytest.mark.behaviour("data-out")
def test_all_values_as_json_and_csv_are_those_that_were_logged(cockpit: Cockpit, run: FakeRun) -> None:
    document = json.loads(cockpit("metrics", "last", "--json").stdout)
    assert document["run"] == run.id
    loss = document["metrics"]["loss"]
    assert loss["step"] == list(range(30))
    assert loss["value"] == [None if step == 7 else 3 / (step + 1) for step in range(30)]
    assert document["metrics"]["score"]["value"] == [0.1, 0.2, 0.3]

    rows = list(csv.DictReader(io.StringIO(cockpit("metrics", "last", "loss", "score", "--csv").stdout)))
    assert list(rows[0]) == ["step", "epoch", "time", "loss", "score"]
    logged = {int(row["step"]): row["loss"] for row in rows if row["loss"]}
    assert {step: float(value) for step, value in logged.items()} == {
        step: math.inf if step == 7 else 3 / (step + 1) for step in range(30)
    }
    assert {row["step"]: row["score"] for row in rows if row["score"]} == {"10": "0.1", "20": "0.2", "30": "0.3"}


def test_the_list_has_a_line_per_metric(cockpit: Cockpit, run: FakeRun) -> None:
    lines = cockpit("metrics", "last").stdout.splitlines()
    assert lines[0].split()[:3] == ["metric", "points", "nan"]
    assert ["loss", "30", "1"] in [line.split()[:3] for line in lines]


def test_an_unknown_metric_and_a_run_without_any_are_sentences(cockpit: Cockpit, runs: Path, run: FakeRun) -> None:
    wrong = cockpit("metrics", "last", "scor")
    assert wrong.returncode == 2
    assert "did you mean 'score'?" in wrong.stderr
    empty = FakeRun(runs, "controls-20261128-100000-elm").begin().started()
    assert "has no metrics yet" in cockpit("plot", empty.id, "loss").stderr


@pytest.mark.behaviour("data-out")
def test_a_chart_has_its_range_and_no_control_characters(cockpit: Cockpit, run: FakeRun) -> None:
    drawn = cockpit("plot", "last", "score", "--width", "60", "--height", "12")
    assert (drawn.returncode, "\x1b" in drawn.stdout) == (0, False)
    lines = drawn.stdout.splitlines()
    assert max(map(len, lines)) <= 60
    assert len(lines) == 12
    assert "demo" in lines[0]
    assert "0.300" in next(line for line in lines if "┤" in line)
    assert any("⠊" in line or "⠤" in line or "⠔" in line for line in lines)


def test_ascii_is_ascii_and_runs_share_a_chart(cockpit: Cockpit, runs: Path, run: FakeRun) -> None:
    other = FakeRun(runs, "controls-20261128-100000-elm", label=HOSTILE).begin().started().epochs(1, 2).end("finished")
    drawn = cockpit("plot", run.id, "score", "--with", other.id, "--ascii").stdout
    assert drawn.isascii()
    assert "\x1b" not in drawn
    assert "amber score" in drawn
    assert "elm score" in drawn


@pytest.mark.behaviour("data-out")
def test_a_picture_is_written_and_a_name_in_it_is_text(cockpit: Cockpit, runs: Path, tmp_path: Path) -> None:
    FakeRun(runs, label="<script>").begin().started().epochs(1, 2).end("finished")
    assert cockpit("plot", "last", "score", "--svg", "a.svg").returncode == 0
    picture = (tmp_path / "a.svg").read_text()
    assert picture.startswith("<svg")
    assert "<script>" not in picture
    refused = cockpit("plot", "last", "score", "--svg", "no/such/folder.svg")
    assert refused.returncode == 1
    assert "cannot be written" in refused.stderr


def test_a_log_is_printed_harmless_and_its_end_alone(cockpit: Cockpit, run: FakeRun) -> None:
    run.run.stdout.parent.mkdir(exist_ok=True)
    run.run.stdout.write_text("one\n" + HOSTILE + "\n 10%\r 90%\nlast\n")
    assert cockpit("log", "last").stdout.splitlines() == ["one", "x[bold]", " 90%", "last"]
    assert cockpit("log", "last", "-n", "1").stdout == "last\n"
    assert cockpit("log", "last", "-n", "0").stdout == ""
    assert cockpit("log", "last", "-n", "-1").returncode == 2


@pytest.mark.behaviour("data-out")
def test_a_followed_log_shows_what_comes_until_the_run_ends(
    cockpit: Cockpit, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeRun(runs).begin().started()
    fake.run.stdout.parent.mkdir(exist_ok=True)
    fake.run.stdout.write_text("first\n")

    def print_more(seconds: float) -> None:
        with open(fake.run.stdout, "a") as file:
            file.write("second\nthird")
        fake.end("finished")

    with fake.locked(), monkeypatch.context() as patch:
        patch.setattr(time, "sleep", print_more)
        answer = cockpit("log", "last", "-f")
    assert answer.stdout.splitlines() == ["first", "second", "third"]
