"""How fast each rank of a run is: `metrics/ranks.json`, replaced by rank 0 every few seconds."""

from __future__ import annotations

import msgspec

from engines.basics import files
from engines.basics.reading import read_json
from engines.contract.rundir import RunDirectory

MOST_RANKS = 4096


class RankLoad(msgspec.Struct, frozen=True):
    """One rank, over the last seconds."""

    rank: int
    host: str
    device: str
    step_seconds: float
    """Of a step, what waits for other ranks left out: the rank with most of it holds the others up."""
    wait_seconds: float
    """Of a step: the sums over the ranks, and waiting for them."""
    memory: int
    """Bytes: reserved on its GPU, or resident."""


class RankLoads(msgspec.Struct, frozen=True):
    attempt: int
    ranks: list[RankLoad]


def write_loads(run: RunDirectory, loads: RankLoads) -> None:
    """Replace what is known. Raises OSError."""
    files.replace_bytes(run.rank_loads, msgspec.json.encode(loads))


def read_loads(run: RunDirectory) -> list[RankLoad]:
    """Of the newest attempt; none where it has a single rank, or what is there cannot be read."""
    try:
        loads = read_json(run.rank_loads, RankLoads)
    except (OSError, msgspec.DecodeError):
        return []
    newest = max(run.attempt_numbers(), default=0)
    return loads.ranks[:MOST_RANKS] if loads.attempt == newest else []


def slowest(loads: list[RankLoad]) -> RankLoad | None:
    """The one that the others wait for."""
    return max(loads, key=lambda load: load.step_seconds, default=None)
