"""What a project says about its thresholds, so that whoever reviews them needs no knowledge of the project."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from engines.basics.errors import DataError
from engines.thresholds.head import Head

Arrays = Mapping[str, NDArray[Any]]
AS_SENT = " as sent"
Thresholds = Mapping[str, float]
"""Threshold by the name of its head."""


@dataclass(frozen=True)
class Titles:
    """What screens and commands call the things of a review."""

    head: str = "head"
    heads: str = "heads"
    group: str = "group"
    groups: str = "groups"
    """What the rows of a review come in, and what is resampled."""
    alarms: str = "alarms"
    """The rate of false alarms, in eight cells at most."""


class ThresholdAdapter(ABC):
    """A spec names one as `module:object`; it must import neither torch nor the project's config model."""

    titles = Titles()
    file: str
    """The exported config that holds the thresholds: a JSON file in `export/`."""

    @abstractmethod
    def heads(self, arrays: Arrays) -> list[Head]:
        """The heads of a review. Raises `DataError` where arrays are missing or do not fit."""

    @abstractmethod
    def defaults(self, config: Mapping[str, Any]) -> dict[str, float]:
        """The thresholds in force before an export, from the run's resolved config. Raises `DataError`."""

    @abstractmethod
    def read(self, exported: Mapping[str, Any]) -> dict[str, float]:
        """The thresholds of an exported config. Raises `DataError` where it holds none."""

    @abstractmethod
    def write(self, exported: Mapping[str, Any], thresholds: Thresholds) -> dict[str, Any]:
        """The exported config with these thresholds in place of its own."""

    @abstractmethod
    def checkpoint(self, exported: Mapping[str, Any]) -> tuple[int | None, int | None]:
        """Epoch and step of the weights that were exported; None where the config does not say."""

    @abstractmethod
    def totals(self, arrays: Arrays, thresholds: Thresholds) -> dict[str, float | None]:
        """What all thresholds together reach, by name; None without support."""

    def sent_totals(self, arrays: Arrays, heads: Mapping[str, Head], thresholds: Thresholds) -> dict[str, float | None]:
        """The same of what is sent in the end, each name with AS_SENT after it; nothing where a yes is what is sent."""
        return {}

    def counted(self, arrays: Arrays) -> dict[str, str]:
        """Of how many heads a total is the mean, as in "10 of 12", by its name; nothing where all count."""
        return {}


def require(arrays: Arrays, names: Sequence[str]) -> None:
    """Raises `DataError` where a review lacks an array, or has one with another number of rows."""
    if missing := [name for name in names if name not in arrays]:
        raise DataError(
            f"The review lacks {', '.join(missing)}: it was written by another version; the next best epoch of a "
            "resumed run rewrites it."
        )
    lengths = {name: len(arrays[name]) for name in names}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {rows:,}" for name, rows in lengths.items())
        raise DataError(f"The review's arrays do not match (rows: {shown}); expected the same number in each.")
