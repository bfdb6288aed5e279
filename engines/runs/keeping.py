"""Which epochs keep a checkpoint of their own (`epoch_NNN.pt`): one in so many, and the best of each stage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Scored:
    """An epoch, for the rule."""

    epoch: int
    stage: str
    score: float | None


@dataclass(frozen=True)
class KeepRule:
    """`output.keep_epochs` and `output.keep_best`; 0 keeps none for that reason."""

    every: int
    best: int

    def kept(self, epochs: Iterable[Scored]) -> set[int]:
        """Of `epochs` those that keep a checkpoint; of equal scores the earlier epochs."""
        stages: dict[str, list[tuple[float, int]]] = defaultdict(list)
        found: set[int] = set()
        for one in epochs:
            if self.every and one.epoch % self.every == 0:
                found.add(one.epoch)
            if one.score is not None:
                stages[one.stage].append((-one.score, one.epoch))
        return found.union(*({epoch for _, epoch in sorted(ranked)[: self.best]} for ranked in stages.values()))

    def after(self, epochs: Sequence[Scored]) -> tuple[bool, set[int]]:
        """Whether the last of `epochs` keeps one, and those that lose theirs to it."""
        now = self.kept(epochs)
        return epochs[-1].epoch in now, self.kept(epochs[:-1]) - now
