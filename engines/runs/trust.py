"""Runs from elsewhere: nothing of them is started before the user has seen what that would run, and agreed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from engines.basics import yaml12
from engines.basics.errors import UserError
from engines.contract import on_finish
from engines.contract.rundir import RunDirectory, RunInfo
from engines.host.identity import is_sealed, seal

_REFERENCE = re.compile(r"[^\s:]*[^\s:\d][^\s:]*:[^\W\d][\w.]*")
"""`package.module:Name`, `path/to/file.py:Name`."""


def is_from_elsewhere(info: RunInfo) -> bool:
    """Whether a run was neither made nor trusted by this user."""
    return not is_sealed(info.id, info.seal)


def what_it_runs(run: RunDirectory) -> list[str]:
    """Where a run from elsewhere was made and what a resume starts, a sentence each; empty for a run of this user."""
    info = run.info
    if not is_from_elsewhere(info):
        return []
    trees = [on_finish.tree_of(path) for path in dict.fromkeys((run.config, run.recorded_config))]  # which may differ
    by = f", by {info.made_by}" if info.made_by else ""
    return [
        f"{info.id} was made elsewhere{by}",
        f"it starts the module {info.engine} with the project {info.project} "
        f"on the data at {yaml12.find(trees[0], 'data', 'path')}",
        *dict.fromkeys(sentence for tree in trees for sentence in [*_named_code(tree), *on_finish.sentences(tree)]),
    ]


def _named_code(tree: Any, key: str = "") -> Iterator[str]:
    """What looks like the name of code in a config (`engines.contract.references`), a sentence each."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from _named_code(value, f"{key}.{name}" if key else str(name))
    elif isinstance(tree, list):
        for value in tree:
            yield from _named_code(value, key)
    elif isinstance(tree, str) and not key.startswith("cost.") and _REFERENCE.fullmatch(tree):
        yield f"{key} names code: {tree}"


def require(run: RunDirectory, *, trusted: bool) -> None:
    """Raises `UserError`, with what it would run, for a run from elsewhere that is not `trusted`; one that is, is from
    then on this user's own."""
    if not (sentences := what_it_runs(run)):
        return
    if not trusted:
        raise UserError("\n".join([*(f"{sentence}." for sentence in sentences), "If you want that, add --trust."]))
    trust(run)


def trust(run: RunDirectory) -> None:
    """Make it a run of this user. Raises OSError."""
    info = run.info
    run.write_info(msgspec.structs.replace(info, seal=seal(info.id)))
