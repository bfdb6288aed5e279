"""The second project in processes of its own: killed in its third stage, stopped inside its episodes, replayed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.contract.steps import read_series
from engines.runs import launch
from engines.runs.replay import prepare_replay
from engines.runs.saved import read_saved
from engines.training import checkpoint
from engines.training.project import Context
from tests.engines.conftest import LiveRun, effective_table, tensors
from tests.engines.second.config import SecondConfig
from tests.engines.second.project import Played, Second

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """
project: second
data: {path: .}
training:
  epochs: 7
  batch_size: 32
  lr: 1e-1
  warmup_epochs: 0
  checkpoint_minutes: 100
  micro_batches: 2
  stages:
    - {name: imitate, epochs: 2, heads: [policy]}
    - {name: value, epochs: 2, heads: [value], begin: best, batch_size: 16, steps_per_epoch: 8, grad_clip: 10.0}
    - {name: both, begin: best, restart_optimizer: true, steps_per_epoch: 6}
launch: {device: cpu, threads: 1}
"""
STEPS = 2 * 12 + 2 * 8 + 3 * 6
EDIT = cmd.SetLossWeights(attempt=1, at_step=50, weights={"value": 0.8})
"""In the second epoch of the third stage, which begins at step 40."""


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], LiveRun]]:
    """Makes runs of it, not yet started; it is installed for this process and its children."""
    folder = tmp_path_factory.mktemp("second")
    info = folder / "second-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: second\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[cockpit.projects]\nsecond = tests.engines.second.spec:SPEC\n")
    (folder / "second.yaml").write_text(CONFIG)
    made: list[LiveRun] = []

    def one() -> LiveRun:
        made.append(LiveRun(launch.prepare_training(folder / "second.yaml")))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(ROOT)]))
        patch.setenv("COCKPIT_RUNS", str(folder / "runs"))
        patch.syspath_prepend(str(folder))
        yield one
        for live in made:
            if (holder := lock_holder(live.run.lock)) is not None:
                os.kill(holder, 9)


@pytest.fixture(scope="module")
def straight(make: Callable[[], LiveRun]) -> LiveRun:
    """The run to which nothing happened but the edit."""
    live = make()
    live.send(EDIT)
    assert live.here() == "finished", live.log()
    return live


def assert_same(one: LiveRun, other: LiveRun) -> None:
    ours, theirs = tensors(one.run.last), tensors(other.run.last)
    assert ours.keys() == theirs.keys()
    assert [place for place in ours if not torch.equal(ours[place], theirs[place])] == []
    assert effective_table(one.run) == effective_table(other.run)
    for column in ("loss", "policy", "value", "value.scale", "kl", "entropy", "lr", "grad_norm"):
        for a, b in zip(read_series(one.run.steps, column), read_series(other.run.steps, column), strict=True):
            assert len(a)
            assert np.array_equal(a, b), column


def test_it_is_what_it_says(straight: LiveRun) -> None:
    """What the run logged belongs to its stages."""
    rows = effective_table(straight.run)
    assert [row["stage"] for row in rows] == ["imitate"] * 2 + ["value"] * 2 + ["both"] * 3
    assert rows[-1]["step"] == STEPS
    assert read_series(straight.run.steps, "kl")[0].tolist() == list(range(40, STEPS))
    assert read_series(straight.run.steps, "value.scale")[0].tolist() == list(range(24, STEPS))
    assert read_series(straight.run.steps, "entropy")[0].tolist() == list(range(STEPS))
    saved = read_saved(straight.run.best)
    assert saved.metadata == {"actions": ["left", "right", "jump"], "steps": 384}
    project = Second()
    agent = project.build(SecondConfig(project="second"))
    project.load_trainable_state(agent, checkpoint.load(straight.run.best)["model"])
    kept = checkpoint.load(straight.run.stage_best(2))["model"]
    prior = agent.get_parameter("prior.2.weight")
    assert torch.equal(prior, kept["policy.weight"]), "the prior is the best of the stage before"
    assert not torch.equal(agent.policy.weight, kept["policy.weight"])


def test_killed_in_its_third_stage_it_ends_the_same(make: Callable[[], LiveRun], straight: LiveRun) -> None:
    """By SIGKILL, inside the epoch in which its weights were edited."""
    killed = make()
    pause = cmd.Pause(attempt=1, at_step=51)
    killed.send(EDIT)
    killed.send(pause)
    killed.start()
    killed.wait_answer(pause, "applied")
    killed.kill("engine")
    assert killed.resume_here() == "finished", killed.log()
    killed.reader.poll()
    assert killed.reader.history.resumes == [46]
    assert_same(killed, straight)
    copy = LiveRun(prepare_replay(killed.run))
    assert copy.here() == "finished", copy.log()
    assert_same(copy, straight)


def test_stopped_inside_its_episodes_it_evaluates_again(
    make: Callable[[], LiveRun], straight: LiveRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pass after the third stage's first epoch would never end by itself."""
    stopped = make()
    stopped.send(EDIT)
    asked: list[int] = []

    def interfere(ctx: Context) -> bool:
        if ctx.step == 46 and not asked:
            stopped.send(cmd.Stop(attempt=1))
            asked.append(ctx.step)
        return ctx.step == 46

    with monkeypatch.context() as patch:
        patch.setattr(Played, "interfere", staticmethod(interfere))
        assert stopped.here() == "stopped", stopped.log()
    assert asked == [46]
    assert [row["epoch"] for row in effective_table(stopped.run)] == [1, 2, 3, 4]
    stopped.send(cmd.SetLossWeights(attempt=2, at_step=50, weights={"value": 0.8}))
    assert stopped.resume_here() == "finished", stopped.log()
    assert_same(stopped, straight)
