"""What differs between configs: a row for each key that does, whatever sections and lists it stands in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from engines.basics import yaml12


class Absent(Enum):
    """Stands where a config has no such key."""

    ABSENT = "—"


ABSENT = Absent.ABSENT


@dataclass(frozen=True)
class KeyRow:
    """`section.key` and its value in each config, in their order; `ABSENT` where one has none."""

    key: str
    values: tuple[Any, ...]


def leaves(tree: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every single value with its dotted key; of a list of sections each has its number: `training.stages.0.name`."""
    inner: list[tuple[str, Any]] = []
    if isinstance(tree, Mapping):
        inner = [(str(key), value) for key, value in tree.items()]
    elif isinstance(tree, list) and any(isinstance(item, Mapping) for item in tree):
        inner = [(str(place), item) for place, item in enumerate(tree)]
    if not inner:
        yield at, tree
    for key, value in inner:
        yield from leaves(value, f"{at}.{key}" if at else key)


def diff(trees: Mapping[str, Any]) -> list[KeyRow]:
    """The keys whose values are not the same in all `trees`, in the order in which they first stand in one."""
    flat = [dict(leaves(tree)) for tree in trees.values()]
    keys = dict.fromkeys(key for one in flat for key in one)
    rows = [KeyRow(key, tuple(one.get(key, ABSENT) for one in flat)) for key in keys]
    return [row for row in rows if not all(_same(row.values[0], value) for value in row.values[1:])]


def equal_keys(trees: Mapping[str, Any]) -> int:
    """How many keys all `trees` have in common, with the same value."""
    keys = {key for tree in trees.values() for key, _ in leaves(tree)}
    return len(keys) - len(diff(trees))


def words(value: Any) -> str:
    """A value as it would stand in the file, on one line; `—` for none."""
    return ABSENT.value if value is ABSENT else yaml12.write_line(value)


def _same(one: Any, other: Any) -> bool:
    """Equal to a training: 1 is 1.0 and NaN is NaN, but true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return both_nan or bool(one == other)
