"""What one training is made of, as the parts of its loop share it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from engines.contract.rundir import RunDirectory
from engines.contract.settings import RunConfig
from engines.runtime.listener import CommandListener
from engines.runtime.room import Room
from engines.training.phases import Phases
from engines.training.project import Project, Split
from engines.training.ranks import ALONE, Ranks
from engines.training.state import TrainState


@dataclass(frozen=True)
class Work:
    """A run in training: its directory, settings and project, the data and the model, and where it stands."""

    run: RunDirectory
    settings: RunConfig
    heads: Sequence[str]
    project: Project[Any]
    data: Split
    model: nn.Module
    listener: CommandListener
    room: Room
    state: TrainState
    phases: Phases
    ranks: Ranks = ALONE
