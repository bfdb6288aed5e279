"""What the faults happen to: a training of a second or two of each project, on data of its own demo."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory
from engines.runs import launch

ROOT = Path(__file__).resolve().parents[2]
COMMON = (
    "launch.threads=1",
    "launch.device=cpu",
    "training.checkpoint_minutes=0.0005",
    "training.batch_size=4",
    "training.warmup_epochs=0",
)


class Quiet:
    """A task context that keeps nothing."""

    def progress(self, done: int, total: int, unit: str) -> None: ...

    def check(self) -> None: ...

    def log(self, text: str) -> None: ...

    def report(self, tables: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True)
class Training:
    """A project with the settings of its smallest training, and the head whose weight an edit changes."""

    project: str
    config: str
    settings: tuple[str, ...]
    head: str
    steps: int
    epochs: int = 2
    edits_at: tuple[int, int] = (2, 5)
    ranks: int = 1

    @property
    def name(self) -> str:
        return self.project if self.ranks == 1 else f"{self.project} on {self.ranks} ranks"

    def data(self, folder: Path) -> Path:
        """The data of all its runs; made once."""
        made = folder / self.project
        if not made.is_dir():
            _make(self.project, made)
        return made

    def prepare(self, data: Path, path: Path, *settings: str) -> RunDirectory:
        """A new run in `path`, with edits sent that it applies at fixed steps."""
        config = ROOT / "configs" / self.config
        run = launch.prepare_training(
            config,
            [f"data.path={self.data(data)}", *COMMON, f"launch.devices={self.ranks}", *self.settings, *settings],
            run_dir=path,
        )
        first, second = self.edits_at
        launch.send(run, cmd.SetLossWeights(attempt=1, at_step=first, weights={self.head: 0.7}))
        launch.send(run, cmd.SetLrScale(attempt=1, at_step=second, scale=0.5))
        return run

    def end_before_report(self, run: RunDirectory, attempt: int) -> None:
        """Let an attempt end once the last epoch is evaluated, without the report of a run that finishes."""
        launch.send(run, cmd.Stop(attempt=attempt, at_step=self.steps - 1, when="after_epoch"))


def _make(project: str, folder: Path) -> None:
    from projects.agent.demo.task import make as games
    from projects.controls.demo.task import make as recordings
    from projects.melee.demo.task import make as matches
    from projects.sim.demo.task import make as drives

    makers: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
        "controls": (recordings, {"sessions": 3, "minutes": 0.5}),
        "melee": (matches, {"games": 3, "minutes": 1}),
        "agent": (games, {"games": 3, "frames": 60}),
        "sim": (drives, {"drives": 6, "minutes": 0.5}),
    }
    make, options = makers[project]
    beside = folder.with_name(f".{project}.making")
    make({"out": str(beside), **options}, Quiet())
    with contextlib.suppress(OSError):  # another process was faster
        beside.rename(folder)


CONTROLS = Training(
    "controls", "controls_demo.yaml",
    ("model={d_model: 16, nhead: 2, num_layers: 1, dim_feedforward: 16, dropout: 0.2}", "training.epochs=2",
     "training.steps_per_epoch=4"),
    head="look", steps=8,
)  # fmt: skip
MELEE = Training(
    "melee", "melee_demo.yaml",
    ("model.d_model=32", "model.dropout=0.2", "objective.context_noise=0.01", "objective.self_forcing.begins=[0.2,0.6]",
     "training.epochs=2", "training.steps_per_epoch=4", "rollouts.starts=2", "rollouts.windows=8",
     'data.validation=["demo_002"]'),
    head="hit", steps=8,
)  # fmt: skip
AGENT = Training(
    "agent", "agent_smoke.yaml",
    ("training.steps_per_epoch=2", "model.width=16", "model.layers=2", "model.time_every=2", "imagination.horizon=4",
     "played={windows: 8, episodes: 2, frames: 20, self_fed: 2}"),
    head="bc", steps=12, epochs=6, edits_at=(3, 9),
)  # fmt: skip
SIM = Training(
    "sim", "sim_demo.yaml", ("training.epochs=2", "training.steps_per_epoch=4"), head="risk",
    steps=8,
)  # fmt: skip
RANKS = replace(CONTROLS, ranks=2)
"""Its ranks meet through the host (gloo), under torchrun."""
TRAININGS = {one.name: one for one in (CONTROLS, MELEE, AGENT, SIM, RANKS)}
"""By what the pages call them."""
