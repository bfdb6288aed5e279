"""The config of a run: what it says, what was changed while it ran, and what it is compared with."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cockpit.core.config.diff import KeyRow, diff
from cockpit.core.config.fields import NOTHING, config_fields
from engines.basics import yaml12
from engines.basics.errors import DataError, UserError
from engines.basics.reading import read_text
from engines.contract import commands as cmd
from engines.contract import spec as specs
from engines.contract.events import CommandAnswer
from engines.contract.rundir import RunDirectory
from engines.runs.store import find_run


@dataclass(frozen=True)
class RunConfigFile:
    """`config_resolved.yaml` as it was read."""

    text: str
    tree: Mapping[str, Any]
    lines: Mapping[yaml12.Key, int]
    """The line of every key, from 1."""


@dataclass(frozen=True)
class Edited:
    """The value that a setting has since `step`, by an edit while the run went on."""

    value: Any
    step: int

    def words(self) -> str:
        value = f"{self.value:g}" if isinstance(self.value, float) else str(self.value)
        return f"now {value} since step {self.step:,}"


def read_config(run: RunDirectory) -> RunConfigFile:
    """The run's config. Raises `DataError` in a sentence."""
    try:
        text = read_text(run.config)
        tree, lines = yaml12.read(text)
    except FileNotFoundError:
        text = "another program made the run, or it was removed"
        raise DataError(f"{run.path.name} has no {run.config.name}: {text}.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{run.config} cannot be read as a config ({error}).") from None
    if not isinstance(tree, Mapping):
        raise DataError(f"{run.config} cannot be read as a config: expected sections such as `training:`.")
    return RunConfigFile(text, tree, lines)


def in_our_names(tree: Mapping[str, Any]) -> dict[str, Any]:
    """A config with each setting under our name, also where it was changed by hand; as it is without its project.

    Imports pydantic: call it from a worker.
    """
    from engines.contract import config as contract

    renamed = copy.deepcopy(dict(tree))
    with contextlib.suppress(UserError):
        contract.in_our_names(specs.find(str(tree.get("project"))), renamed)
    return renamed


def edited_settings(tree: Mapping[str, Any], edits: Sequence[CommandAnswer]) -> dict[str, Edited]:
    """The newest live edit of each setting, by its dotted key; `edits` in the order in which they were applied."""
    found: dict[str, Edited] = {}
    for edit in edits:
        match edit.command:
            case cmd.SetLossWeights(weights=weights):
                found |= {f"loss_weights.{head}": Edited(weight, edit.step) for head, weight in weights.items()}
            case cmd.SetLrScale(scale=scale):
                peak = yaml12.find(tree, "training", "lr")
                if isinstance(peak, int | float):
                    found["training.lr"] = Edited(peak * scale, edit.step)
            case cmd.SetEpochs(epochs=epochs):
                found["training.epochs"] = Edited(epochs, edit.step)
            case cmd.SetPatience(patience=patience):
                found["training.patience"] = Edited(patience, edit.step)
    return found


def in_force(tree: Mapping[str, Any], edits: Sequence[CommandAnswer]) -> dict[str, Any]:
    """A config with the live edits made since, as settings of their own kind: an edited rate is that rate."""
    edited = copy.deepcopy(dict(tree))
    for key, edit in edited_settings(tree, edits).items():
        section, _, name = key.partition(".")
        if isinstance(edited.get(section), dict):
            edited[section][name] = edit.value
    return edited


def default_tree(tree: Mapping[str, Any]) -> dict[str, Any]:
    """What the project's config model gives where a file says nothing. Imports pydantic: call it from a worker.

    Raises `UserError` where the project is not installed here.
    """
    name = tree.get("project")
    spec = specs.find(name if isinstance(name, str) else "")
    defaults: dict[str, Any] = {"project": name}
    for field in config_fields(spec, tree):
        if (value := field.value_in({})) is not NOTHING:
            section = defaults
            for part in field.key[:-1]:
                section = section.setdefault(part, {})
            section[field.key[-1]] = value
    return defaults


def differences(run: RunDirectory, config: RunConfigFile, against: str) -> tuple[str, list[KeyRow]]:
    """What the run's config is compared with, in words, and the rows (other, own) that differ.

    `against` is `default`, `parent`, or what names a run. Raises `UserError` in a sentence.
    """
    if against == "default":
        specs.of_run(run.info, "no defaults to compare with")
        return "the defaults", diff({"default": default_tree(config.tree), "run": in_our_names(config.tree)})
    if against == "parent":
        if (parent := run.info.parent) is None:
            raise UserError(f"{run.path.name} has no parent: it was not forked from another run.")
        against = parent
    beside = run.path.parent / against
    other = RunDirectory(beside) if (beside / "run.json").is_file() else find_run(against)
    trees = {"other": read_config(other).tree, "run": config.tree}
    return other.path.name, diff({name: in_our_names(tree) for name, tree in trees.items()})
