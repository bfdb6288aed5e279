"""Which whole groups (sessions, games, scenes) train and which are held out: by a seed, or by lists of names.

Windows of one group are alike, so a group is never divided between the two.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engines.basics.errors import DataError, nearest

PARTS = 3
"""Training, validation and test."""
MOST_NAMED = 50
"""Groups that a summary names; of more it says how many there are."""


@dataclass(frozen=True)
class Holdout:
    """Indices of groups, each in the order of the groups. tested: looked at by neither training nor validation."""

    names: Sequence[str]
    train: Sequence[int]
    validation: Sequence[int]
    tested: Sequence[int] = ()

    def summary(self, unit: str) -> dict[str, Any]:
        """What was held out, for `Split.summary`: `train_games` as a number, `validation_games` by name."""
        said: dict[str, Any] = {f"train_{unit}s": len(self.train), f"validation_{unit}s": self._named(self.validation)}
        if self.tested:
            said[f"test_{unit}s"] = self._named(self.tested)
        return said

    def _named(self, indices: Sequence[int]) -> list[str]:
        more = [f"and {len(indices) - MOST_NAMED} more"] if len(indices) > MOST_NAMED else []
        return [self.names[index] for index in indices[:MOST_NAMED]] + more


def hold_out(
    where: Path,
    names: Sequence[str],
    unit: str,
    *,
    fraction: float,
    seed: int,
    kinds: Sequence[str] | None = None,
    validation: Collection[str] = (),
    test: Collection[str] = (),
    test_fraction: float = 0.0,
) -> Holdout:
    """Hold out the groups called `validation`, or where none are named a `fraction` of them drawn by `seed`.

    where: the data, and unit: what a group is called, for sentences. kinds: of each group, over which what is drawn is
    spread. test: groups that are left out of everything. test_fraction: where none are named, the share of all groups
    that is drawn for the test, before validation. Then kinds of three groups or more come first in both draws: each has
    one in every part where as many are drawn as there are kinds.

    Raises `DataError` for a name that no group has or that is in both lists, and where nothing is left for one part.
    """
    if both := set(validation) & set(test):
        raise DataError(f"{where}: {min(both)!r} is listed for validation and for test; expected in only one of them.")
    of_all = [""] * len(names) if kinds is None else list(kinds)
    spread = test_fraction > 0 and not test
    if spread and len(names) < PARTS:
        held = f"{len(names)} {unit}{'' if len(names) == 1 else 's'}"
        raise DataError(
            f"{where}: holds {held}; expected at least {PARTS}, since whole {unit}s are held out for validation and "
            "for the test."
        )
    tested = drawn(of_all, test_fraction, seed, PARTS) if spread else _named(where, names, unit, test)
    left = sorted(set(range(len(names))) - set(tested))
    if len(left) < 2:
        some = f"one {unit} only ({names[left[0]]})" if left else f"no {unit}"
        raise DataError(
            f"{where}: holds {some}; expected at least two, since whole {unit}s are held out for validation."
        )
    if validation:
        chosen = _named(where, names, unit, validation)
    else:
        of_kind = [of_all[index] for index in left]
        share = min(fraction * len(names) / len(left), 1.0) if spread else fraction
        chosen = [left[place] for place in drawn(of_kind, share, seed, PARTS - 1 if spread else None)]
    rest = sorted(set(left) - set(chosen))
    if not rest:
        raise DataError(f"{where}: every {unit} is held out, expected at least one to train on.")
    return Holdout(names, rest, chosen, tested)


def drawn(kinds: Sequence[str], fraction: float, seed: int, each: int | None = None) -> list[int]:
    """Indices of the groups held out: `fraction` of all, at least one, never all, spread evenly over their kinds.

    Group k of c of its kind, in shuffled order, has the place (k + ½)/c; the first places are taken, so each kind
    gives its share and a kind of one group is kept for training while others can give. each: kinds of so many groups or
    more give one before any gives a second.
    """
    rng = np.random.default_rng(seed)
    places = np.empty(len(kinds))
    owed = np.zeros(len(kinds), np.bool_)
    every = np.array(kinds, dtype=object)
    for name in sorted(set(kinds)):
        of_kind = rng.permutation(np.flatnonzero(every == name))
        places[of_kind] = (np.arange(len(of_kind)) + 0.5) / len(of_kind)
        owed[of_kind[0]] = each is not None and len(of_kind) >= each
    order = np.lexsort([rng.random(len(kinds)), places, ~owed])
    wanted = min(max(1, round(fraction * len(kinds))), len(kinds) - 1)
    return sorted(order[:wanted].tolist())


def _named(where: Path, names: Sequence[str], unit: str, wanted: Collection[str]) -> list[int]:
    known = {name: index for index, name in enumerate(names)}
    for name in wanted:
        if name not in known:
            raise DataError(f"{where}: holds no {unit} {name!r}, which should be held out{nearest(name, known)}.")
    return sorted(known[name] for name in set(wanted))
