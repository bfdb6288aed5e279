"""One rank and two, at the same batches: every project logs the same losses, with whatever is drawn at random."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from engines.basics import yaml12
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from projects.controls.recordings import write_recording
from projects.sim.drives import write_drive
from tests.projects.agent.runs import SMALL, games
from tests.projects.controls.sessions import random_session
from tests.projects.melee.test_project import stored
from tests.projects.sim.logs import random_drive
from tests.support.ranks import logged, loop_alone, trained

TIMED = {"time", "data_wait", "seconds", "ms"}


def controls(folder: Path) -> str:
    """Augmentation and hidden history, two micro-batches; heads that few windows have anything of."""
    for k in range(5):
        write_recording(folder / "recordings" / f"s{k}.npz", random_session(f"s{k}", 80 + k, k))
    return f"""
project: controls
version: 2
data: {{path: {folder / "recordings"}, history_dropout: 0.3, augmentation: {{noise: 0.01, warp: 0.1, crop: 0.2}}}}
model: {{d_model: 32, nhead: 2, num_layers: 2, dim_feedforward: 32, dropout: 0.0}}
training: {{epochs: 2, batch_size: 12, micro_batches: 2, warmup_epochs: 1, lr: 1e-3}}
launch: {{device: cpu, threads: 1}}
"""


def melee(folder: Path) -> str:
    """Noise on what is read, and every third row of the whole batch fed what the model said of it."""
    (folder / "tables").mkdir()
    store = stored(folder / "tables", range(4), folder / "store" / "out")
    return f"""
project: melee
data: {{path: {store}, K: 6, validation: [game_1], test: [game_3]}}
model: {{architecture: mamba, d_model: 32, n_layers: 1, plain_blocks: 1}}
objective: {{context_noise: 0.1, self_forcing: {{begins: [0.1, 0.5], every: 3}}}}
training: {{epochs: 2, batch_size: 8, warmup_epochs: 0, lr: 1e-3}}
rollouts: {{starts: 3, windows: 70}}
launch: {{device: cpu, threads: 1}}
"""


def sim(folder: Path) -> str:
    """Samples that weigh by their class."""
    importlib.import_module("transformers.models.llama.modeling_llama")  # once here, not in each fork
    (folder / "drives").mkdir()
    for k in range(5):
        write_drive(folder / "drives" / f"d{k}.npz", random_drive(f"d{k}", 30, k))
    return f"""
project: sim
data: {{path: {folder / "drives"}, class_weights: balanced}}
model: {{llm: tiny-llama, vision: grid, frames: 8, tokens: 4}}
training: {{epochs: 2, batch_size: 6, lr: 1e-3, warmup_epochs: 1}}
launch: {{device: cpu, threads: 1}}
"""


def agent(folder: Path) -> str:
    """All three phases, with losses scaled by their running size."""
    sections = deepcopy(SMALL)
    sections["data"]["path"] = str(games(folder / "games", frames=200))
    sections["played"]["windows"] = 60  # two batches of an evaluation, which draw one after the other
    sections["training"] |= {"lr": 1e-3}
    sections["objective"]["normalise"] = True
    return yaml12.write({"project": "agent", **sections})


def largest(folder: Path) -> str:
    """The largest model there is, 768 × 18, in 20 blocks; small windows of few games."""
    sections = deepcopy(SMALL)
    sections["data"] = {"path": str(games(folder / "games")), "frames": 4, "stride": 5}
    sections["model"] = {"size": "medium", "patch": 3, "registers": 1, "offsets": 2}
    sections["objective"] = {"finest": 4, "masked_halves": False, "shortcut_share": 0.5}
    stage = {"name": "agent", "heads": ["dynamics", "reward", "bc"]}
    sections["training"] = {"epochs": 1, "batch_size": 2, "lr": 1e-4, "warmup_epochs": 0, "stages": [stage]}
    return yaml12.write({"project": "agent", **sections})


@pytest.mark.behaviour("losses-ranks-equal")
@pytest.mark.parametrize("steps", [10, pytest.param(52, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("project", "strategy"),
    [
        *((project, "ddp") for project in (controls, melee, sim, agent)),
        (controls, "fsdp2"),
        (agent, "fsdp2"),
        *(pytest.param(project, "fsdp2", marks=pytest.mark.slow) for project in (melee, sim)),
    ],
)
def test_two_ranks_log_what_one_does(
    project: Callable[[Path], str], strategy: str, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = f"training.steps_per_epoch={steps // 4 if project is agent else steps // 2}"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    _compare(project, [each, f"launch.strategy={strategy}"], tmp_path, steps - 2)


@pytest.mark.slow
def test_two_ranks_that_hold_the_largest_model_together_log_what_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    _compare(largest, ["training.steps_per_epoch=50", "launch.strategy=fsdp2"], tmp_path, 50)


def _compare(project: Callable[[Path], str], settings: list[str], tmp_path: Path, steps: int) -> None:
    """One rank and two, of a project's config with `settings`, over so many steps or more."""
    config = tmp_path / "config.yaml"
    config.write_text(project(tmp_path))
    runs = [launch.prepare_training(config, settings, run_dir=tmp_path / f"of-{count}") for count in (1, 2)]
    for run, count in zip(runs, (1, 2), strict=True):
        codes = trained(run, count, work=loop_alone)
        assert codes == [0] * count, "".join(run.rank_log(rank).read_text() for rank in range(count))
    one, two = map(logged, runs)
    assert len(one["step"]) >= steps
    divided = "launch.strategy=fsdp2" in settings
    for name in one.keys() - TIMED:
        # with fsdp2 the squares are summed in another order, and a clipped step takes that on
        rounding = 1e-5 if name == "grad_norm" and divided else 1e-6
        np.testing.assert_allclose(two[name], one[name], rtol=rounding, atol=2e-6, err_msg=name)
    evaluated = [[json.loads(line) for line in run.val_metrics.read_text().splitlines()] for run in runs]
    assert len(evaluated[0]) == len(evaluated[1]) > 0
    for first, second in zip(*evaluated, strict=True):
        assert first.keys() == second.keys()
        for name in first.keys() - TIMED:
            close = 1e-4 if name.endswith("_auc") and divided else 1e-5  # a pair may change places
            assert second[name] == pytest.approx(first[name], rel=1e-5, abs=close), name
    assert _lines(runs[0]) == _lines(runs[1]), "a rank wrote what rank 0 writes"


def _lines(run: RunDirectory) -> list[int]:
    return [len(path.read_text().splitlines()) for path in (run.train_metrics, run.val_metrics)]
