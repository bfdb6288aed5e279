"""What one training is made of, as the parts of its loop share it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import nn

from engines.contract.rundir import RunDirectory
from engines.contract.settings import RunConfig
from engines.runtime.listener import CommandListener
from engines.runtime.room import Room
from engines.training.phases import Phases
from engines.training.project import Project, Split
from engines.training.ranks import ALONE, Ranks
from engines.training.state import TrainState

if TYPE_CHECKING:
    from engines.training.sharding import Sharding


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
    sharding: Sharding | None = None
    """Where the ranks hold the model together."""

    @contextlib.contextmanager
    def whole_model(self) -> Iterator[nn.Module]:
        """The model with all its weights on this rank; all ranks ask for it, and need no other once they have it."""
        if self.sharding is None:
            yield self.model
            return
        with self.sharding.whole() as model:
            yield model
