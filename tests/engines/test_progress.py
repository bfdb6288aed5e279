"""How far long work is, shown as it goes: by a project that reads its data, before there is anything to train."""

from __future__ import annotations

import dataclasses
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from cockpit.core.run import progress
from engines.checking import trial
from engines.contract import commands as cmd
from engines.contract import spec as specs
from engines.contract.events import Epoch, Phase, Progress
from engines.runs import launch
from engines.runs.state import RunReader
from engines.runtime.attempt import carry_out
from engines.runtime.progress import ProgressEvents
from engines.training import engine
from engines.training.project import Split
from tests.engines.toy import HEADS, ToyConfig, ToyProject
from tests.support.fake_run import FakeRun

FILES = 5000


class SlowToRead(ToyProject):
    """Says how far it is at every file."""

    def data(self, cfg: ToyConfig, device: torch.device) -> Split:
        for done in range(FILES + 1):
            self.data_progress(done, FILES, "files")
        return super().data(cfg, device)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRun:
    """A run of that project, about to be trained."""
    spec = dataclasses.replace(
        specs.find("controls"), name="toy", heads=HEADS, columns=(), config="toy:c", project="toy:p"
    )
    parts: dict[str, Any] = {"toy:c": ToyConfig, "toy:p": SlowToRead}
    load = specs.load
    monkeypatch.setattr(specs, "find", lambda name: spec)
    monkeypatch.setattr(specs, "load", lambda reference: parts[reference] if reference in parts else load(reference))
    fake = FakeRun(tmp_path, "toy-20261127-201400-amber").begin()
    fake.run.write_config("project: toy\ntraining: {epochs: 1, batch_size: 64}\nlaunch: {threads: 1, device: cpu}\n")
    return fake


def test_reading_data_is_shown_as_it_goes_and_is_no_progress_of_the_run(fake: FakeRun) -> None:
    assert carry_out(fake.run, 1, engine.train) == 0
    reader = RunReader(fake.run)
    events = reader.poll()
    shown = [event for event in events if isinstance(event, Progress)]
    assert (shown[0].done, shown[-1].done) == (0, FILES)
    assert len(shown) < FILES / 10, "a few times a second, however often it is called"
    assert any(isinstance(event, Epoch) for event in events)
    assert reader.history.progress is None, "that of the data is over"


def test_a_stop_is_heard_while_data_is_read(fake: FakeRun) -> None:
    launch.send(fake.run, cmd.Stop(attempt=1))
    assert carry_out(fake.run, 1, engine.train) == 3
    reader = RunReader(fake.run)
    reader.poll()
    ended = reader.history.ended
    assert ended is not None
    assert (ended.reason, ended.detail) == ("stopped", "stopped while loading")
    assert [answer.state for answer in reader.history.answers] == ["seen", "applied"]
    assert not list(fake.run.checkpoints.iterdir())
    assert not fake.run.info.why_no_resume


def test_a_try_that_is_interrupted_while_data_is_read_is_interrupted(fake: FakeRun) -> None:
    def read_data() -> None:
        with trial._listening(fake.run, 1) as (events, listener):
            signal.raise_signal(signal.SIGINT)
            ProgressEvents(events, listener)(0, 1, "files")

    with pytest.raises(KeyboardInterrupt):
        read_data()


def test_the_state_of_a_run_says_how_far_its_data_is(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin()
    fake.say(Phase(phase="loading"), Progress(done=1200, total=5000, unit="files\x1b[2J"))
    with fake.locked():
        reader = RunReader(fake.run)
        status = reader.status()
        assert (status.state, status.detail) == ("starting", "loading, 1,200 of 5,000 files[2J")
        assert progress.fraction_done(reader.history, 0) == 0, "nothing is trained yet"
        assert progress.seconds_left(reader.history, 0, 10.0, 1.0) is None
