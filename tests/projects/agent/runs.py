"""Small games of the arena and small runs of the engine on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from engines.contract.events import EventWriter
from engines.contract.rundir import RunDirectory
from engines.runtime.listener import CommandListener
from engines.training.loop import Trainer
from engines.training.project import Context
from projects.agent.config import AgentConfig
from projects.agent.demo.task import make
from projects.agent.net import AgentNet
from projects.agent.project import Agent
from projects.agent.spec import SPEC
from tests.projects.controls.task_context import Listener

CPU = torch.device("cpu")
HEADS = frozenset(head.name for head in SPEC.heads)
STAGES = [
    {"name": "world", "epochs": 1, "heads": ["dynamics"]},
    {"name": "agent", "epochs": 1, "heads": ["dynamics", "reward", "bc"], "begin": "best"},
    {"name": "dream", "epochs": 2, "heads": ["value", "policy"], "begin": "best", "restart_optimizer": True},
]
SMALL: dict[str, dict[str, Any]] = {
    "data": {"frames": 10, "stride": 5},
    "model": {
        "size": "own", "width": 16, "layers": 2, "heads": 2, "time_every": 2, "registers": 1, "hidden": 16, "bins": 15,
        "context": 12, "agent_layers": 1,
    },
    "objective": {"finest": 4},
    "imagination": {"horizon": 3, "context": 4, "steps": 2, "discount": 0.9},
    "played": {"windows": 8, "episodes": 3, "frames": 12, "self_fed": 4},
    "training": {"epochs": 4, "steps_per_epoch": 3, "batch_size": 6, "lr": 3e-3, "warmup_epochs": 0, "stages": STAGES},
    "launch": {"device": "cpu", "threads": 1},
}  # fmt: skip


def games(folder: Path, count: int = 3, frames: int = 60) -> Path:
    """A folder of games of the arena."""
    make({"out": str(folder), "games": count, "frames": frames}, Listener())
    return folder


def config(path: Path, **changes: dict[str, Any]) -> AgentConfig:
    """A small config, its sections changed."""
    sections = {name: {**section, **changes.pop(name, {})} for name, section in SMALL.items()}
    sections["data"]["path"] = str(path)
    return AgentConfig.model_validate({"project": "agent", **sections, **changes})


def opened(cfg: AgentConfig) -> tuple[Agent, Any, AgentNet]:
    """The project with its data and a new model."""
    project = Agent()
    split = project.data(cfg, CPU)
    torch.manual_seed(0)
    net = project.model(cfg, split)
    assert isinstance(net, AgentNet)
    return project, split, net


def context(cfg: AgentConfig, *heads: str) -> Context:
    """Where a loss is computed, with these heads on, or all."""
    return Context(step=0, epoch=0, progress=0.0, stage="", heads=frozenset(heads) or HEADS, cfg=cfg)


class Run:
    """A trainer of the agent in `folder`."""

    def __init__(self, folder: Path, cfg: AgentConfig, project: Agent | None = None, attempt: int = 1) -> None:
        self.run = RunDirectory(folder)
        self.run.make()
        events = EventWriter(self.run.events, attempt)
        self._listener = CommandListener(self.run, attempt, events)
        torch.manual_seed(cfg.training.seed)
        self.project = project or Agent()
        split = self.project.data(cfg, CPU)
        self.net = self.project.model(cfg, split)
        self.trainer = Trainer(
            self.run, cfg, SPEC.heads, self.project, split, self.net, events, self._listener, metrics=SPEC.measured
        )

    def train(self) -> str:
        with self._listener:
            return self.trainer.train()


def flat(content: Any, name: str = "") -> dict[str, Any]:
    """Every part of a checkpoint by its place."""
    if isinstance(content, Mapping):
        pairs = [(str(key), value) for key, value in content.items()]
    elif isinstance(content, list | tuple):
        pairs = [(str(place), value) for place, value in enumerate(content)]
    else:
        return {name: content}
    return {place: part for key, value in pairs for place, part in flat(value, f"{name}.{key}").items()}
