"""Other names of settings, and other words for their values: a config may use either, and only ours are known after."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engines.basics.yaml12 import Key

SHARED = {"data.batch_size": "training.batch_size", "output.output_dir": "output.dir"}
"""Of every project whose config model has no such setting itself: dotted path → ours."""
WORDS: Mapping[Key, Mapping[bool, str]] = {("training", "amp"): {True: "auto", False: "off"}}
"""What true and false mean where we have a word."""
_ABSENT = object()


@dataclass
class Renamed:
    """What a file's other names came to."""

    names: dict[Key, Key] = field(default_factory=dict)
    """Our key → the one in the file."""
    twice: list[tuple[Key, Key, Key]] = field(default_factory=list)
    """Settings given under two names: our key, the other name, and the name that holds."""


class Aliases:
    """The other names that a config may use.

    Args:
        names: dotted path → our dotted path; each may be a section, then all below it is meant.
        sections: our own ones at the top; any other that holds nothing but other names is gone with them.
    """

    def __init__(self, names: Mapping[str, str], sections: Collection[str]) -> None:
        self._sections = sections
        self._ours: dict[Key, Key] = {tuple(other.split(".")): tuple(own.split(".")) for other, own in names.items()}

    def ours(self, key: Key) -> Key:
        """Our name of `key`."""
        for length in range(len(key), 0, -1):
            if key[:length] in self._ours:
                return (*self._ours[key[:length]], *key[length:])
        return key

    def rename(self, tree: dict[Any, Any]) -> Renamed:
        """Put what `tree` has under other names in its own place, and our word for a true or a false."""
        done = Renamed()
        for other, own in self._ours.items():
            if (value := _take(tree, other)) is _ABSENT:
                continue
            if other[0] not in self._sections and not tree.get(other[0], True):
                del tree[other[0]]
            if _find(tree, own) is not _ABSENT:
                done.twice.append((own, other, done.names.get(own, own)))
            elif _put(tree, own, value):
                done.names[own] = other
        for key in WORDS:
            if (value := _find(tree, key)) is not _ABSENT:
                _put(tree, key, word(key, value))
        return done


def word(key: Key, value: Any) -> Any:
    """`value` of our `key`, in our word for it."""
    return WORDS[key][value] if isinstance(value, bool) and key in WORDS else value


def written(key: Key, names: Mapping[Key, Key]) -> Key:
    """`key` under the name that a file or a `--set` has for it."""
    for length in range(len(key), 0, -1):
        if key[:length] in names:
            return (*names[key[:length]], *key[length:])
    return key


def moved_lines(lines: Mapping[Key, int], names: Mapping[Key, Key]) -> dict[Key, int]:
    """The line of every key, those under another name by ours."""

    def pairs() -> Iterator[tuple[Key, int]]:
        yield from lines.items()
        for own, other in names.items():
            yield from ((own + key[len(other) :], line) for key, line in lines.items() if key[: len(other)] == other)

    return dict(pairs())


def _find(tree: Any, key: Key) -> Any:
    for part in key:
        tree = tree.get(part, _ABSENT) if isinstance(tree, dict) else _ABSENT
    return tree


def _take(tree: dict[str, Any], key: Key) -> Any:
    """The value at `key`, which is then gone."""
    section = _find(tree, key[:-1])
    return section.pop(key[-1], _ABSENT) if isinstance(section, dict) else _ABSENT


def _put(tree: dict[str, Any], key: Key, value: Any) -> bool:
    """Whether there was a place for it: what stands where a section belongs is a fault of its own."""
    section: Any = tree
    for part in key[:-1]:
        section = section.setdefault(part, {}) if isinstance(section, dict) else None
    if not isinstance(section, dict):
        return False
    section[key[-1]] = value
    return True
