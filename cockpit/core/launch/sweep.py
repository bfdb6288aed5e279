"""A sweep: one run for every combination of some settings' values, all checked before the first one starts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.basics import yaml12
from engines.basics.errors import UserError
from engines.contract.rundir import RunDirectory
from engines.runs import launch

MOST = 100
"""Runs of one sweep; more are rather a comma too many."""


@dataclass(frozen=True)
class Combination:
    """One run of a sweep: `K=10 seed=1`, and the settings that make it so, as `--set` takes them."""

    label: str
    overrides: tuple[str, ...]


def combinations(axes: Sequence[str]) -> list[Combination]:
    """Every combination of `section.key=value,value…`, the last axis changing fastest. Raises `UserError`."""
    parsed = [_parse(axis) for axis in axes]
    keys = [key for key, _ in parsed]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise UserError(f"--sweep {twice}=…: the setting is given twice; give all its values at once.")
    shorts = [key.rsplit(".", 1)[-1] for key in keys]
    names = [short if shorts.count(short) == 1 else key for key, short in zip(keys, shorts, strict=True)]
    found = [
        Combination(
            " ".join(f"{name}={_words(value)}" for name, value in zip(names, values, strict=True)),
            tuple(f"{key}={json.dumps(value)}" for key, value in zip(keys, values, strict=True)),
        )
        for values in itertools.product(*(values for _, values in parsed))
    ]
    if len(found) > MOST:
        raise UserError(f"--sweep: {len(found)} combinations; expected at most {MOST}, split them into several sweeps.")
    return found


def prepare_sweep(config: Path, overrides: Sequence[str], axes: Sequence[str], *, name: str = "") -> list[RunDirectory]:
    """A run for each combination, labelled by it behind `name`, that will wait for its device when it is started.

    Raises `UserError` naming every fault of every combination before any run is made.
    """
    from engines.contract.config import load_config

    found = combinations(axes)
    settings = [[*overrides, "launch.queue=true", *combination.overrides] for combination in found]
    faults: list[str] = []
    for each in settings:
        try:
            if load_config(config, each).settings.output.dir and len(found) > 1:
                faults.append("output.dir is one directory, and each run of a sweep needs its own; omit it.")
        except UserError as error:
            faults += str(error).splitlines()
    if faults:
        raise UserError("\n".join(dict.fromkeys(faults)))
    return [
        launch.prepare_training(config, each, label=f"{name} {combination.label}".strip())
        for each, combination in zip(settings, found, strict=True)
    ]


def _parse(axis: str) -> tuple[str, list[Any]]:
    key, equals, text = axis.partition("=")
    try:
        values = yaml12.read(f"[{text}]")[0] if equals and key else []
    except yaml12.YamlError:
        values = []
    if not values:
        raise UserError(f"--sweep {axis}: expected section.key=value,value…, as in --sweep training.lr=1e-4,3e-4.")
    said = [_words(value) for value in values]
    if twice := next((one for one in said if said.count(one) > 1), ""):
        raise UserError(f"--sweep {axis}: {twice} is given twice, and would be trained twice.")
    return key, values


def _words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
