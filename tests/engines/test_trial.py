"""`check --try`: the real loop, in a directory of its own that is gone afterwards, whatever ended it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
import torch

from engines.basics import files
from engines.basics.lock import RunLock
from engines.check import check
from engines.checking import driver
from engines.checking.duration import ALIKE, LEAST_FOR_RANGE, StepTimes, recorded_step_times
from engines.checking.trial import PREFIX, phase_seconds
from engines.contract.events import Alert, Phase
from engines.contract.steps import StepWriter
from engines.training.checkpoint import same
from engines.training.loop import Trainer
from tests.support.example_project import ExampleProject

ENDLESS = ["training.epochs=100000", "training.patience=100000", "launch.threads=1", "launch.device=cpu"]


@pytest.fixture
def config(example: ExampleProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.syspath_prepend(str(example.folder))
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    return example.config


def test_a_try_measures_the_real_loop_and_leaves_nothing(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "PATIENCE", 1000)  # with a machine that is busy elsewhere
    stale = tmp_path / f"{PREFIX}stale" / "run"
    stale.mkdir(parents=True)
    told: list[str] = []
    handler = signal.getsignal(signal.SIGTERM)
    settings = [*ENDLESS, "training.steps_per_epoch=40", "cost.usd_per_hour=3.6", "cost.budget_usd=1"]
    found = check(config, settings, try_seconds=0.5, tell=told.append)
    assert (found["faults"], found["exit_code"]) == ([], 0)
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) is handler

    tried, time = found["try"], found["time"]
    assert [told[0], told[-2], told[-1]] == ["loading", "evaluating", "resuming"]
    assert tried["steps"] >= 8
    assert tried["resumed_equal"]
    assert 0 <= tried["data_wait"] <= 1
    per_step = tried["seconds_per_step"]
    assert (tried["timed_steps"] < LEAST_FOR_RANGE) == (per_step["low"] is None)
    assert per_step["low"] is None or per_step["low"] <= per_step["median"] <= per_step["high"]
    assert tried["samples_per_second"] * per_step["median"] == pytest.approx(64)  # the batch size
    assert tried["peak_memory"] > 100e6  # torch alone takes more
    # of what the checkpoint holds only random state takes space: of torch 5,056 bytes, of Python and NumPy 624 words
    assert 5056 + 2 * 8 * 624 < tried["checkpoint"] < 60_000
    assert found["disk"]["checkpoint"] == tried["checkpoint"]

    every_epoch = tried["evaluation_seconds"] + tried["save_seconds"]
    beside = tried["loading_seconds"] + 100_000 * every_epoch
    points = [stage[point]["median"] / found["stages"][0]["begin"]["median"]
              for stage in found["stages"] for point in ("begin", "end")]  # fmt: skip
    first, first_end, last, last_end = (1 if 1 / ALIKE < point < ALIKE else point for point in points)
    steps = 40 * (2 * (first + first_end) / 2 + 99_998 * (last + last_end) / 2)  # two epochs of the first stage
    assert time["likely"] == pytest.approx(beside + steps * per_step["median"])
    assert found["cost"]["likely"] == pytest.approx(time["likely"] / 1000)
    assert (time["measured"], found["cost"]["budget"]) == ("try", 1)


def test_a_run_that_is_over_sooner_is_tried_whole(config: Path) -> None:
    found = check(
        config, [*ENDLESS, "training.epochs=2", "training.stages=[]", "training.steps_per_epoch=3"], try_seconds=60
    )
    assert found["faults"] == []
    assert found["try"]["steps"] == 6
    assert found["try"]["resumed_equal"]


def test_losses_that_are_not_finite_are_faults(config: Path) -> None:
    settings = [
        *ENDLESS,
        "training.lr=1e38",
        "training.warmup_epochs=0",
        "training.stages=[]",
        "training.max_bad_steps=5",
    ]
    found = check(config, settings, try_seconds=60)
    assert found["exit_code"] == 1
    assert any("steps in a row were not finite" in fault for fault in found["faults"])
    assert any("was skipped" in fault for fault in found["faults"])


def test_a_resume_that_gives_something_else_is_a_fault(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restore = Trainer.restore

    def forgetful(self: Trainer, content: dict[str, Any]) -> None:
        restore(self, content)
        self.sums.numbers += 1
        self.state.epochs_without_best += 1

    monkeypatch.setattr(Trainer, "restore", forgetful)
    found = check(config, ENDLESS, try_seconds=0.1)
    assert found["faults"] == ["A resume does not restore what was saved: sums, state differ."]
    assert not found["try"]["resumed_equal"]


def test_a_disk_that_takes_no_checkpoint_is_a_fault(
    config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = files.replace_with

    def full(path: Path, write: Any) -> None:
        if path.suffix == ".pt":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, write)

    monkeypatch.setattr(files, "replace_with", full)
    found = check(config, [*ENDLESS, "training.steps_per_epoch=100000"], try_seconds=0.1)
    assert found["faults"] == [f"No checkpoint could be written at {tmp_path}: No space left on device."]
    assert list(tmp_path.iterdir()) == []


def test_what_was_wrong_before_is_not_tried(config: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    found = check(config, [*ENDLESS, f"output.dir={tmp_path}"], try_seconds=60)
    assert "is not empty" in found["faults"][0]
    assert "try" not in found


def test_an_interrupted_try_cleans_up(example: ExampleProject, tmp_path: Path) -> None:
    """And leaves a try beside it alone."""
    other = tmp_path / f"{PREFIX}other" / "run"
    other.mkdir(parents=True)
    lock = RunLock(other / "engine.lock")
    assert lock.acquire()
    command = [sys.executable, "-P", "-m", "engines.check", str(example.config), "--try", "--try-seconds", "600"]
    settings = [part for setting in ENDLESS for part in ("--set", setting)]
    with subprocess.Popen(
        [*command, *settings], env={**example.env, "COCKPIT_RUNS": str(tmp_path)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        _read_until_steps(process.stderr)
        assert len(list(tmp_path.iterdir())) == 2
        process.send_signal(signal.SIGINT)
        assert process.communicate()[0] == ""
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == [other.parent]


def _read_until_steps(stream: IO[str]) -> None:
    for line in stream:
        if line.startswith("try: ") and line.split()[1].isdigit() and int(line.split()[1]) > 0:
            return
    raise AssertionError("it ended without a step")


def test_step_times_leave_out_warm_up_and_pauses_between_epochs(tmp_path: Path) -> None:
    writer = StepWriter(tmp_path, ["epoch", "time"])
    seconds = [50.0] * 5 + [1.0] * 10 + [1000.0] + [2.0] * 10  # from step to step; the second epoch begins at the 1000
    times = np.cumsum([0.0, *seconds])
    epochs = np.where(np.arange(len(times)) <= 15, 1.0, 2.0)
    writer.append(np.stack([np.arange(len(times)), np.ones(len(times)), epochs, times], axis=1))
    assert recorded_step_times(tmp_path) == StepTimes(median=1.5, low=None, high=None, steps=20)


def test_steps_that_are_epochs_count_with_all_that_is_between_them(tmp_path: Path) -> None:
    writer = StepWriter(tmp_path, ["epoch", "time"])
    assert recorded_step_times(tmp_path) is None
    writer.append(np.array([[0, 1, 1, 10.0], [1, 1, 2, 14.0]]))
    assert recorded_step_times(tmp_path) == StepTimes(median=4.0, low=None, high=None, steps=1)


def test_phases_last_until_the_next_one() -> None:
    phases = [(10, "training"), (11, "evaluating"), (14, "training"), (20, "evaluating"), (21, "saving")]
    events = [Phase(time=time, phase=phase) for time, phase in phases]  # type: ignore[arg-type]
    alert = Alert(time=12, code="", level="info", text="")
    assert phase_seconds([*events[:2], alert, *events[2:]], "evaluating") == [3, 1]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ({"a": [torch.ones(2), 1.5]}, {"a": [torch.ones(2), 1.5]}, True),
        ({"a": torch.ones(2)}, {"a": torch.ones(2).double()}, False),
        ({"a": torch.ones(2)}, {"a": torch.tensor([1.0, 1 + 1e-7])}, False),
        ({"a": torch.ones(2)}, {"a": [1.0, 1.0]}, False),
        ({"a": 1}, {"b": 1}, False),
        ([1, 2], [1, 2, 3], False),
        ((1, None), [1, None], True),
    ],
)
def test_equal_is_to_the_last_bit(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) == equal
