"""The agent, killed by SIGKILL while it learns in dreams: resumed and replayed bit for bit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.runs import launch
from engines.runs.replay import prepare_replay
from tests.e2e.conftest import ROOT
from tests.engines.conftest import LiveRun, effective_table
from tests.projects.agent.runs import flat, games

SETTINGS = (
    "training.steps_per_epoch=4",
    "training.batch_size=4",
    "training.checkpoint_minutes=100",
    "model.width=16",
    "model.layers=2",
    "model.time_every=2",
    "imagination.horizon=4",
    "played={windows: 8, episodes: 2, frames: 20, self_fed: 2}",
    "launch.threads=1",
)
SAVED, KILLED, LAST = 21, 23, 23
"""Steps of phase 3, which is 16 to 23: saved inside its second epoch, killed later there, and the last one."""
PARTS = (
    ".model.dynamics.", ".model.policy.", ".model.prior.", ".model.value.", ".model.rms.value.square",
    ".optimizer.state.", ".optimizer.param_groups.", ".random.torch", ".random.numpy.", ".random.python.",
    ".state.step", ".state.log.5.",
)  # fmt: skip


@pytest.fixture
def made() -> Iterator[list[LiveRun]]:
    """The runs of a test; what it leaves alive is ended."""
    runs: list[LiveRun] = []
    yield runs
    for live in runs:
        if (holder := lock_holder(live.run.lock)) is not None:
            os.kill(holder, signal.SIGQUIT)


def differing(one: LiveRun, other: LiveRun) -> list[str]:
    """Places of their last checkpoints that are not equal to the last bit."""
    ours, theirs = (flat(torch.load(live.run.last, weights_only=True)) for live in (one, other))
    assert [part for part in PARTS if not any(place.startswith(part) for place in ours)] == []
    assert ours.keys() == theirs.keys()
    return [place for place, value in ours.items() if not same(value, theirs[place])]


def same(one: Any, other: Any) -> bool:
    return torch.equal(one, other) if torch.is_tensor(one) else bool(one == other)


def test_killed_in_its_dreams_equals_uninterrupted_and_is_replayed(
    made: list[LiveRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    data, config = games(tmp_path / "games"), ROOT / "configs" / "agent_smoke.yaml"
    made.extend(LiveRun(launch.prepare_training(config, [f"data.path={data}", *SETTINGS])) for _ in range(2))
    straight, killed = made
    for live, attempt in ((straight, 1), (killed, 2)):  # at the end, without the report that a finished run makes
        live.send(cmd.Stop(attempt=attempt, at_step=LAST, when="after_epoch"))
    pause = cmd.Pause(attempt=1, at_step=KILLED)
    killed.send(cmd.SaveCheckpoint(attempt=1, at_step=SAVED))
    killed.send(pause)
    killed.start()
    killed.wait_answer(pause, "applied")
    killed.kill("engine")
    assert "SIGKILL" in killed.reader.status().detail
    before = flat(torch.load(killed.run.last, weights_only=True))
    assert killed.resume_here() == straight.here() == "stopped", killed.log() + straight.log()
    killed.reader.poll()
    assert killed.reader.history.resumes == [SAVED]
    assert differing(killed, straight) == []
    assert effective_table(killed.run) == effective_table(straight.run)
    after = flat(torch.load(killed.run.last, weights_only=True))
    assert not same(before[".model.policy.readout.last.weight"], after[".model.policy.readout.last.weight"])

    made.append(LiveRun(prepare_replay(killed.run)))
    assert made[2].here() == "stopped", made[2].log()
    assert differing(made[2], straight) == []
    assert effective_table(made[2].run) == effective_table(straight.run)
