"""Trainers of all four projects in this process, on made data, stepped by hand. Nothing here needs pytest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from engines.contract.config import load_config
from engines.contract.events import EventWriter
from engines.contract.rundir import RunDirectory
from engines.runtime.listener import CommandListener
from engines.tasks import Table
from engines.training import engine
from engines.training.loop import Trainer

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "configs" / "controls_demo.yaml"
CONFIGS = {
    "controls": ("controls_v2", ()),
    "melee": ("melee_demo", ("data.K=8", "training.batch_size=8")),
    "sim": ("sim_demo", ("model.llm=none", "model.d=64")),
    "agent": ("agent_smoke", ("played.episodes=2",)),
}
"""A config of each project, and what is changed of it: little data, and no package beside torch."""


class Quiet:
    """A task context that nobody reads."""

    def progress(self, done: int, total: int, unit: str) -> None: ...
    def check(self) -> None: ...
    def log(self, text: str) -> None: ...
    def report(self, tables: Mapping[str, Table]) -> None: ...


def make_data(project: str, folder: Path) -> Path:
    """A little of the project's demo data."""
    out = folder / project
    if project == "controls":
        from projects.controls.recordings import write_recording
        from tests.projects.controls.sessions import random_session

        for seed in range(2):
            write_recording(out / f"session_{seed}.npz", random_session(f"session_{seed}", 1500, seed))
    elif project == "melee":
        from projects.melee.demo import task as melee

        melee.make({"out": str(out), "games": 3, "minutes": 0.3}, Quiet())
    elif project == "sim":
        from projects.sim.demo import task as sim

        sim.make({"out": str(out), "drives": 8, "minutes": 0.4}, Quiet())
    else:
        from projects.agent.demo import task as agent

        agent.make({"out": str(out), "games": 3, "frames": 60}, Quiet())
    return out


class InProcess:
    """The engine's own trainer in this process, stepped by hand."""

    def __init__(self, folder: Path, data: Path, device: str, *settings: str, config: Path = CONFIG) -> None:
        self.run = RunDirectory(folder)
        self.run.make()
        self.loaded = load_config(config, [f"data.path={data}", f"launch.device={device}", *settings])
        self.events = EventWriter(self.run.events, 1)
        self.listener = CommandListener(self.run, 1, self.events)
        self.trainer: Trainer = engine.load(self.run, self.loaded, self.events, self.listener)
        self.device = next(self.trainer.model.parameters()).device

    def step(self, place: int) -> torch.Tensor:
        """Step `place` of the first epoch as the loop does it, with its batch and its log; its row, on the device."""
        self.trainer.state.step_in_epoch = place
        row = self.trainer.one_step()
        if self.trainer.step_log.due:
            self.trainer.flush()
        return row

    def steps(self, count: int) -> torch.Tensor:
        """The next so many steps; their rows `(count, 2 heads + 3)`, on the device."""
        return torch.stack([self.step(self.trainer.state.step_in_epoch) for _ in range(count)])

    def wait(self) -> None:
        """Until the device has done all it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def of_project(project: str, folder: Path, data: Path, device: str, *settings: str) -> InProcess:
    """A trainer of a project's config, in an epoch that does not end."""
    config, changes = CONFIGS[project]
    endless = ("training.steps_per_epoch=100000", "training.log_every=100")
    path = ROOT / "configs" / f"{config}.yaml"
    return InProcess(folder, data, device, *changes, *endless, *settings, config=path)


def state_of(live: InProcess) -> dict[str, Any]:
    """Weights, moments and counts of the optimizer, sums of the epoch, apart from what the trainer goes on with."""
    live.trainer.flush()
    content = live.trainer.checkpoints.content()
    kept = {name: content[name] for name in ("model", "optimizer", "sums")}
    return torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, kept)  # type: ignore[no-any-return]
