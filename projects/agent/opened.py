"""A trained run opened to be looked at: its model, and the recorded games it can be shown on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from engines.basics.errors import DataError
from engines.contract.rundir import RunDirectory
from engines.runs.saved import read_saved
from engines.training.trained import open_run
from projects.agent.config import AgentConfig
from projects.agent.net import AgentNet, build
from projects.agent.recordings import FEATURES, FILE, LATENTS, Recording, read_recording


@dataclass(frozen=True)
class Opened:
    """A run at its best checkpoint. arena: whether its policy can be played. validated: names of games."""

    net: AgentNet
    cfg: AgentConfig
    arena: bool
    validated: Sequence[str]

    def recording(self, named: str) -> Recording:
        """The game of a features.json or of packed latents; the first that validated where nothing is named.

        Raises `DataError`, also for latents of another size than the run's.
        """
        if named:
            folder, name = placed(Path(named).expanduser())
        else:
            folder, name = Path(self.cfg.data.path).expanduser(), self.validated[0]
        try:
            found = read_recording(folder, name)
        except DataError as error:
            raise error if named else DataError(f"{error} Or name a game: cockpit play RUN --recording FILE.") from None
        if found.latents.shape[1:] != self.net.dynamics.latent:
            raise DataError(
                f"{folder}: the latents of {name} are {found.latents.shape[1:]}, the run was trained on "
                f"{self.net.dynamics.latent}; choose a game from the same encoder."
            )
        return found

    def standardised(self, latents: NDArray[np.float32]) -> NDArray[np.float32]:
        """Recorded latents (C, H, W) in deviations from the mean of each channel."""
        found: NDArray[np.float32] = self.net.normalised(latents).cpu().numpy()
        return found


def placed(path: Path) -> tuple[Path, str]:
    """The folder of games and the name of the game that a file belongs to. Raises `DataError`."""
    path = path.absolute()
    if path.name == FILE and path.parent.parent.name == FEATURES:
        return path.parents[2], path.parent.name
    if path.suffix == ".npz" and path.parent.name == LATENTS:
        return path.parents[1], path.stem
    raise DataError(
        f"{path}: is not a file of a game; expected FOLDER/{FEATURES}/VIDEO/{FILE} or FOLDER/{LATENTS}/VIDEO.npz."
    )


def open_agent(run: RunDirectory) -> Opened:
    """The best checkpoint of a run. Raises `UserError`, `DataError` where there is none yet."""
    trained = open_run(run)
    metadata = read_saved(run.best).metadata
    channels, height, width = metadata["latents"]
    net = trained.load_into(build(trained.settings, (channels, height, width), run.info.edition))
    assert isinstance(net, AgentNet)
    torch.set_num_threads(1)
    return Opened(net, trained.settings, bool(metadata["arena"]), list(metadata["validation_games"]))
