"""The lines of a comparison: a run each, or one for all runs that differ in the seed alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cockpit.core.compare.entries import Entry
from cockpit.core.text import plain

Key = tuple[Path, bool]
"""Names a line as long as its runs stay together."""


@dataclass(frozen=True)
class Line:
    """One run, or the runs of several seeds; `inside` is a run shown below its group."""

    entries: tuple[Entry, ...]
    name: str
    inside: bool = False

    @property
    def key(self) -> Key:
        return self.entries[0].run.path, self.is_group

    @property
    def is_group(self) -> bool:
        return len(self.entries) > 1

    @property
    def gone(self) -> bool:
        return all(entry.gone for entry in self.entries)


def every_run(entries: Sequence[Entry]) -> list[Line]:
    """A line per run."""
    return [Line((entry,), entry.name) for entry in entries]


def by_seed(entries: Sequence[Entry]) -> list[Line]:
    """A line per run or group, in the order of their first runs.

    A group has one run of each seed. Of several with the same seed, where they would count twice, it has the newest
    one with a score; the others stay lines of their own.
    """
    alike: dict[Hashable, list[Entry]] = {}
    for entry in entries:
        summary, settings = entry.summary, entry.settings
        alone = summary is None or settings is None or entry.gone
        key: Hashable = entry.run.path if alone else (summary.project, settings.but_seed)  # type: ignore[union-attr]
        alike.setdefault(key, []).append(entry)
    groups: dict[Path, tuple[Entry, ...]] = {}
    """Every run of a group, by its path."""
    for found in alike.values():
        chosen = _one_per_seed(found) if len(found) > 1 else found
        if len(chosen) > 1:
            groups |= {entry.run.path: tuple(chosen) for entry in chosen}
    lines: list[Line] = []
    for entry in entries:
        group = groups.get(entry.run.path)
        if group is None:
            lines.append(Line((entry,), entry.name))
        elif group[0] is entry:
            lines.append(Line(group, _common_name(group)))
    return lines


def _one_per_seed(entries: Sequence[Entry]) -> list[Entry]:
    """In the order of `entries`."""
    best: dict[Hashable, Entry] = {}
    for entry in entries:
        assert entry.settings is not None
        known = best.get(entry.settings.seed)
        if known is None or _merit(entry) > _merit(known):
            best[entry.settings.seed] = entry
    return [entry for entry in entries if best[entry.settings.seed] is entry]  # type: ignore[union-attr]


def _merit(entry: Entry) -> tuple[bool, float]:
    assert entry.summary is not None
    return entry.summary.score is not None, entry.summary.created


def _common_name(entries: Sequence[Entry]) -> str:
    """What their labels share, as `K=10` of `K=10 seed=1` and `K=10 seed=2`; else the first one's name and a count."""
    labels = [plain(entry.summary.label).split() if entry.summary else [] for entry in entries]
    shared = [word for word in labels[0] if all(word in label for label in labels)]
    return " ".join(shared) or f"{entries[0].word} +{len(entries) - 1}"


def opened(line: Line) -> list[Line]:
    """The runs of a group as lines below it, each called by what its name has beside the group's: `seed=1`."""
    shared = line.name.split()
    own = [" ".join(word for word in entry.name.split() if word not in shared) for entry in line.entries]
    return [
        Line((entry,), name if name and own.count(name) == 1 else entry.name, inside=True)
        for entry, name in zip(line.entries, own, strict=True)
    ]
