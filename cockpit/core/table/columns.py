"""Which columns the full table has: those of the project, all else that its epochs hold, and what a person chose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engines.contract.events import Epoch
from engines.contract.spec import Column

STEP = Column("Step", "step", ",d")
AFTER = (Column("Stage", "stage", "9s"), Column("Seconds", "seconds", ".1f"))
_SHORT = {"train": "tr", "validation": "vl"}


class FoundColumns:
    """All columns of a run, growing with the keys that its epochs have; each epoch is looked at once."""

    def __init__(self, announced: Sequence[Column]) -> None:
        first, rest = tuple(announced[:1]), tuple(announced[1:])
        known = {column.source for column in announced}
        steps = () if STEP.source in known else (STEP,)
        self._before = (*first, *steps, *rest)
        self._after = tuple(column for column in AFTER if column.source not in known)
        self._known = known
        self._found: list[Column] = []
        self._looked_at = 0

    def look(self, epochs: Sequence[Epoch]) -> bool:
        """Note keys of epochs that are new since the last look; whether there was a new one."""
        before = len(self._found)
        for epoch in epochs[min(self._looked_at, len(epochs) - 1) :] if epochs else ():
            for group, values in (("train", epoch.train), ("validation", epoch.validation)):
                self._note(group, values)
        self._looked_at = len(epochs)
        return len(self._found) > before

    def _note(self, group: str, keys: Iterable[str]) -> None:
        for key in keys:
            if (source := f"{group}.{key}") not in self._known:
                self._known.add(source)
                self._found.append(Column(f"{_SHORT[group]}.{key}", source))

    @property
    def all(self) -> tuple[Column, ...]:
        """Those of the project first, with the step after the epoch, then what was found, stage and seconds last."""
        return (*self._before, *self._found, *self._after)


def chosen(columns: Sequence[Column], sources: Sequence[str]) -> tuple[Column, ...]:
    """Of `columns` those with these sources, in this order; all where nothing, or nothing that exists, was chosen."""
    by_source = {column.source: column for column in columns}
    found = tuple(by_source[source] for source in sources if source in by_source)
    return found or tuple(columns)
