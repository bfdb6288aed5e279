"""A tiny project in memory: a linear model with a head that counts in every sample and a rare one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engines.basics.line_writer import append_line
from engines.contract import commands as cmd
from engines.contract.events import EventWriter
from engines.contract.rundir import RunDirectory
from engines.contract.settings import Data, RunConfig, Section
from engines.contract.spec import Head
from engines.runtime.listener import CommandListener
from engines.training.loop import Trainer
from engines.training.project import Batch, Context, Evaluation, Loss, Project, Result, Split

HEADS = (Head(name="all", title="All"), Head(name="rare", title="Rare"))


class ToyWeights(Section):
    all: float = 1.0
    rare: float = 0.5


class ToyConfig(RunConfig):
    data: Data = Data(path=".")
    model: Section = Section()
    loss_weights: ToyWeights = ToyWeights()


class ToySource:
    """`count` samples of five numbers; one in eight belongs to the rare head."""

    def __init__(self, count: int, seed: int) -> None:
        random = torch.Generator().manual_seed(seed)
        self.x = torch.randn(count, 5, generator=random)
        self.y = self.x.sum(1, keepdim=True).sin() + 0.1 * torch.randn(count, 1, generator=random)
        self.rare = torch.rand(count, generator=random) < 0.125
        self.batches = 0

    def __len__(self) -> int:
        return len(self.x)

    def batch(self, indices: Tensor, rng: np.random.Generator | None, ctx: Context | None = None) -> Batch:
        self.batches += 1
        x = self.x[indices]
        if rng is not None:
            x = x + torch.from_numpy(rng.normal(0, 0.01, x.shape).astype(np.float32))
        return {"x": x, "y": self.y[indices], "rare": self.rare[indices]}


class ToyEvaluation(Evaluation):
    def __init__(self, project: ToyProject) -> None:
        self._project = project
        self._errors: list[Tensor] = []

    def add(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        self._errors.append((model(batch["x"])[:, :1] - batch["y"]).square())
        return self._project.losses(model, batch, ctx)

    def result(self) -> Result:
        score = self._project.forced_score or -float(torch.cat(self._errors).mean())
        return Result(values={"negative_error": score}, score=score, review={"errors": torch.cat(self._errors).numpy()})


class ToyProject(Project[ToyConfig]):
    poison_from = 10**9
    """Batches handed to `losses` in training from this one on give a NaN loss."""
    forced_score: float | None = None
    metrics: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._seen = 0

    def data(self, cfg: ToyConfig, device: torch.device) -> Split:
        return Split(ToySource(256, 1), ToySource(64, 2))

    def model(self, cfg: ToyConfig, data: Split) -> nn.Module:
        return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 2))

    def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        everyone, rare = model(batch["x"]).split(1, dim=1)
        target = batch["y"]
        if model.training:
            self._seen += 1
            if self._seen > self.poison_from:
                target = target * torch.nan
        squared = F.mse_loss(rare, target, reduction="none")[:, 0]
        counts = self.counts(batch, ctx)
        losses = {
            "all": Loss(F.mse_loss(everyone, target, reduction="sum"), counts["all"]),
            "rare": Loss((squared * batch["rare"]).sum(), counts["rare"]),
        }
        return {head: loss for head, loss in losses.items() if head in ctx.heads}

    def counts(self, batch: Batch, ctx: Context) -> Mapping[str, Tensor]:
        return {"all": torch.ones_like(batch["rare"]).sum(), "rare": batch["rare"].sum()}

    def evaluation(self, cfg: ToyConfig, data: Split) -> ToyEvaluation:
        return ToyEvaluation(self)


class ToyRun:
    """A trainer of the toy project in `folder`, with its events and listener; use as a context."""

    def __init__(self, folder: Path, project: ToyProject | None = None, *, attempt: int = 1, **training: Any) -> None:
        self.run = RunDirectory(folder)
        self.run.make()
        self.events = EventWriter(self.run.events, attempt)
        self.listener = CommandListener(self.run, attempt, self.events)
        settings = {"epochs": 3, "batch_size": 32, "seed": 7, "warmup_epochs": 1, "lr": 1e-2, **training}
        self.settings = ToyConfig.model_validate({"project": "toy", "training": settings})
        torch.manual_seed(self.settings.training.seed)
        self.project = project or ToyProject()
        self.data = self.project.data(self.settings, torch.device("cpu"))
        self.model = self.project.model(self.settings, self.data)
        self.trainer = Trainer(
            self.run, self.settings, HEADS, self.project, self.data, self.model, self.events, self.listener,
            metrics=self.project.metrics,
        )  # fmt: skip

        self._random = torch.get_rng_state()

    def train(self) -> str:
        """Train to the end, with the same random numbers whatever other runs were made in between."""
        torch.set_rng_state(self._random)
        with self.listener:
            return self.trainer.train()


def events_of(toy: ToyRun, kind: str) -> list[dict[str, Any]]:
    lines = toy.run.events.read_bytes().splitlines()
    return [event for event in map(msgspec.json.decode, lines) if event["type"] == kind]


def send(toy: ToyRun, *commands: cmd.Command) -> None:
    for command in commands:
        append_line(toy.run.commands, cmd.encode(command))


def final_answers(toy: ToyRun) -> dict[str, list[tuple[str, int, str]]]:
    """Command id → its answers other than `seen`."""
    found: dict[str, list[tuple[str, int, str]]] = {}
    for event in events_of(toy, "command"):
        if event["state"] != "seen":
            answer = (event["state"], event["step"], event["reason"])
            found.setdefault(event["command"]["id"], []).append(answer)
    return found
