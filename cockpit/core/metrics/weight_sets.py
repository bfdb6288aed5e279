"""With which loss weights the losses of each epoch were computed: such of different weights are not comparable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from string import ascii_lowercase

from cockpit.core.text import plain
from engines.contract.commands import SetLossWeights
from engines.contract.events import CommandAnswer, Epoch

WEIGHTED = frozenset({"train.loss", "validation.loss"})
"""Sources of values that depend on the weights; the score and the loss of a head do not."""
MARKS = ascii_lowercase[1:]
BEYOND = "+"
"""For the 27th and all further weights."""


def edited_weights(edits: Iterable[CommandAnswer]) -> str:
    """`weights look 0.8, side 0.3`: all that these edits have changed; empty where they changed none."""
    weights: dict[str, float] = {}
    for edit in edits:
        if isinstance(edit.command, SetLossWeights):
            weights |= edit.command.weights
    named = (f"{plain(head)} {weight:g}" for head, weight in weights.items())
    return f"weights {', '.join(named)}" if weights else ""


class WeightSets:
    """A letter for the weights of an epoch: none for those of the first epoch, then `b`, `c` … as they come.

    Letters of epochs that a resume superseded stay taken, so that none ever changes its meaning.
    """

    def __init__(self) -> None:
        self._sets: list[tuple[Mapping[str, float], int]] = []
        """Different weights with the first epoch that had them."""

    def note(self, epochs: Iterable[Epoch]) -> None:
        """Take epochs in their order."""
        for row in epochs:
            if row.weights and self._place(row) is None:
                self._sets.append((row.weights, row.epoch))

    def mark(self, row: Epoch) -> str:
        """The letter for a row that was noted; empty where its weights are those of the first epoch, or unknown."""
        place = self._place(row)
        if not place:
            return ""
        return MARKS[place - 1] if place <= len(MARKS) else BEYOND

    def words(self, row: Epoch) -> str:
        """`b: look 0.8`, what is different from the first weights; empty where nothing is."""
        if not (mark := self.mark(row)):
            return ""
        return f"{mark}: {_changes(self._sets[0][0], row.weights)}"

    def legend(self) -> str:
        """All letters, a line each; empty while there is only one set of weights."""
        if len(self._sets) < 2:
            return ""
        first = self._sets[0][0]
        lines = ["Losses depend on the loss weights; a letter says with which others they were computed:"]
        for place, (weights, epoch) in enumerate(self._sets[1:], 1):
            mark = MARKS[place - 1] if place <= len(MARKS) else BEYOND
            lines.append(f"{mark}  {_changes(first, weights)}, from epoch {epoch:,}")
        return "\n".join(lines)

    def _place(self, row: Epoch) -> int | None:
        return next((place for place, (weights, _) in enumerate(self._sets) if weights == row.weights), None)


def _changes(first: Mapping[str, float], weights: Mapping[str, float]) -> str:
    changed = (f"{plain(head)} {weight:g}" for head, weight in weights.items() if first.get(head) != weight)
    return ", ".join(changed)
