"""Which changed settings a resume or a fork can apply, and why not the others."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from engines.contract import commands as cmd
from engines.contract import limits
from engines.contract.config import LoadedConfig

FREE = (
    "cost.",
    "data.stage",
    "launch.device",
    "launch.devices",
    "launch.nodes",
    "launch.queue",
    "launch.rendezvous",
    "launch.restarts",
    "launch.share",
    "launch.strategy",
    "output.keep_best",
    "output.keep_epochs",
    "output.writers",
    "training.checkpoint_minutes",
    "training.log_every",
    "training.micro_batches",
)
"""Settings that do not touch the training itself: the new value simply holds."""
_EDITED = ("training.epochs", "training.patience", "training.lr")
"""Settings that a live edit means, beside the loss weights."""
Why = Callable[[str], str]
"""Why a changed key that no live edit means cannot be applied; empty where it can."""


@dataclass(frozen=True)
class Change:
    """One changed setting of a resume or a fork, and what becomes of it."""

    key: str
    old: Any
    new: Any
    applied: bool
    reason: str = ""

    def sentence(self) -> str:
        fate = "applied" if self.applied else f"ignored because {self.reason}"
        return f"{self.key}: {self.old} → {self.new}, {fate}"


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested config as `section.key` → value."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        flat.update(flatten(value, f"{name}.") if isinstance(value, Mapping) and value else {name: value})
    return flat


def in_force(recorded: LoadedConfig, edits: Iterable[cmd.Command]) -> dict[str, Any]:
    """The recorded config with every live edit made so far, as a tree."""
    tree: dict[str, Any] = recorded.settings.model_dump(mode="json")
    for edit in edits:
        match edit:
            case cmd.SetLossWeights(weights=weights):
                tree["loss_weights"].update(weights)
            case cmd.SetLrScale(scale=scale):
                tree["training"]["lr"] = recorded.settings.training.lr * scale
            case cmd.SetEpochs(epochs=epochs):
                tree["training"]["epochs"] = epochs
            case cmd.SetPatience(patience=patience):
                tree["training"]["patience"] = patience
    return tree


def _command(key: str, recorded: LoadedConfig, wanted: Any, attempt: int) -> cmd.Edit | None:
    """The live edit that a changed setting means, if it is one that can be made live."""
    if key.startswith("loss_weights."):
        return cmd.SetLossWeights(attempt=attempt, weights={key.removeprefix("loss_weights."): wanted})
    match key:
        case "training.epochs":
            return cmd.SetEpochs(attempt=attempt, epochs=wanted)
        case "training.patience":
            return cmd.SetPatience(attempt=attempt, patience=wanted)
        case "training.lr":
            return cmd.SetLrScale(attempt=attempt, scale=wanted / recorded.settings.training.lr)
        case _:
            return None


def why_not_on_resume(key: str) -> str:
    """A resume goes on with the training that there is. Whether data lies elsewhere only, its caller has to look."""
    return "" if key.startswith(FREE) else "the checkpoint was made with the old value; start a new run for it"


def plan_resume(
    recorded: LoadedConfig, current: LoadedConfig, wanted: LoadedConfig, attempt: int, why_not: Why = why_not_on_resume
) -> tuple[list[Change], list[cmd.Edit]]:
    """Compare the config in force (`current`: the recorded one with its live edits) with the wanted one.

    Gives every changed key with its fate, and the edits to send to `attempt`: a changed setting of the training is an
    intervention like any other, so that it is on record and survives a further resume.
    """
    before, after = (flatten(config.settings.model_dump(mode="json")) for config in (current, wanted))
    changes: list[Change] = []
    edits: list[cmd.Edit] = []
    for key in sorted(before.keys() | after.keys()):
        was, now = before.get(key), after.get(key)
        if was == now:
            continue
        edit = _command(key, recorded, now, attempt)
        reason = "" if edit is not None else why_not(key)
        changes.append(Change(key, was, now, not reason, reason))
        if edit is not None:
            edits.append(edit)
    return changes, settled(edits, attempt)


def settled(edits: Sequence[cmd.Command], attempt: int) -> list[cmd.Edit]:
    """What `edits` come to, one after another: one of a kind, new, for `attempt`, due at once.

    All weights are one edit: applied or refused as a whole.
    """
    weights: dict[str, float] = {}
    others: dict[type, cmd.Edit] = {}
    for edit in edits:
        match edit:
            case cmd.SetLossWeights():
                weights |= edit.weights
            case cmd.SetLrScale() | cmd.SetEpochs() | cmd.SetPatience():
                others[type(edit)] = msgspec.structs.replace(
                    edit, attempt=attempt, id=cmd.new_id(), time=time.time(), at_step=None, at_epoch=None
                )
            case _:
                raise AssertionError(f"not an edit: {edit}")
    return [*([cmd.SetLossWeights(attempt=attempt, weights=weights)] if weights else []), *others.values()]


def fault_of(edits: Sequence[cmd.Edit], *, done: int, inside: bool) -> str:
    """Why an engine that stands `inside` an epoch or not, with `done` before it, would refuse one; else empty.

    Weights need no look: the config that they are from was checked.
    """
    for edit in edits:
        fault = ""
        match edit:
            case cmd.SetEpochs(epochs=epochs):
                fault = limits.epochs_fault(epochs, done=done, inside=inside)
            case cmd.SetLrScale(scale=scale):
                fault = limits.scale_fault(scale)
            case cmd.SetPatience(patience=patience):
                fault = limits.patience_fault(patience)
        if fault:
            return f"{cmd.describe(edit)}: {fault}."
    return ""


def with_edits_by_hand(tree: Mapping[str, Any], recorded: LoadedConfig, edited: LoadedConfig) -> dict[str, Any]:
    """`tree` with what a person changed in the run's own config file since it was recorded: wanted like any setting."""
    wanted = copy.deepcopy(dict(tree))
    before, after = (flatten(config.settings.model_dump(mode="json")) for config in (recorded, edited))
    for key in after:
        if after[key] != before.get(key):
            _put(wanted, key, after[key])
    return wanted


def _put(tree: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = key.split(".")
    place = tree
    for section in sections:
        if not isinstance(place.get(section), dict):  # a section where the record has null
            place[section] = {}
        place = place[section]
    place[last] = value


def applied_config(recorded: LoadedConfig, changes: list[Change]) -> dict[str, Any]:
    """The recorded config with the changes that need no edit, as a tree to write down.

    Edited settings keep their first value in the record: the edits are replayed on top of it.
    """
    tree: dict[str, Any] = recorded.settings.model_dump(mode="json")
    for change in changes:
        if change.applied and not change.key.startswith("loss_weights.") and change.key not in _EDITED:
            _put(tree, change.key, change.new)
    return tree
