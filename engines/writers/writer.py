"""What a writer is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from engines.contract.rundir import RunDirectory, RunInfo

Values = Mapping[str, float]


@dataclass(frozen=True)
class Beginning:
    """One attempt of a run, as it begins."""

    run: RunDirectory
    info: RunInfo
    config: Mapping[str, Any]
    text: str
    """The config as its file says it."""
    attempt: int
    step: int
    """Steps done already, by earlier attempts or a fork's parent."""


class Writer(Protocol):
    """Mirrors one attempt. Whatever a method raises ends this writer, and nothing else."""

    def start(self, beginning: Beginning) -> None: ...

    def log(self, step: int, time: float, values: Values) -> None:
        """Values by name (`step/loss`, `train/loss`, `validation/loss`, `score`) at a step and a Unix time."""
        ...

    def flush(self) -> None:
        """Everything logged so far can be seen."""
        ...

    def close(self, reason: str) -> None:
        """The attempt has ended: the reason as in its `ended` event, or `failed` where the engine was killed."""
        ...
