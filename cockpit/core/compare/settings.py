"""The config of a run as single settings, and what of it makes a training another one."""

from __future__ import annotations

import functools
import re
import stat
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cockpit.core.config.diff import leaves
from cockpit.core.config.run_config import in_force, in_our_names, read_config
from engines.basics import yaml12
from engines.basics.errors import UserError
from engines.contract import aliases
from engines.contract import spec as specs
from engines.contract.events import CommandAnswer
from engines.contract.rundir import RunDirectory

SEED = "seed"
LARGEST = 1 << 16
"""Bytes of a config that is read section by section."""
_KEY = re.compile(r"[A-Za-z_]\w*:(?: |$)")
_UNTRAINED = ("launch.", "output.", "cost.")
"""Sections that say where and for how much a run trains, not what comes of it."""


@dataclass(frozen=True, eq=False)
class Settings:
    """`section.key` → value of one run, with the live edits in force."""

    flat: Mapping[str, Any]

    @cached_property
    def training(self) -> Mapping[str, Any]:
        """Those that the result may depend on."""
        return {key: value for key, value in self.flat.items() if not _is_free(key)}

    @cached_property
    def seed(self) -> Hashable:
        """Every setting called `seed`."""
        return frozenset((key, known(value)) for key, value in self.training.items() if is_seed(key))

    @cached_property
    def but_seed(self) -> Hashable:
        """The same for runs that differ in the seed alone."""
        return frozenset((key, known(value)) for key, value in self.training.items() if not is_seed(key))


def is_seed(key: str) -> bool:
    return key.rpartition(".")[2] == SEED


@functools.cache
def _is_free(key: str) -> bool:
    from engines.runs.resume import FREE  # imports pydantic: not for the first screen

    return key.startswith((*FREE, *_UNTRAINED))


def known(value: Any) -> Hashable:
    """A value to look up by: the same for values that are equal to a training."""
    if isinstance(value, bool) or value is None:
        return str(value), "word"
    if isinstance(value, float) and value != value:
        return "nan"
    if isinstance(value, list):
        return tuple(map(known, value))
    return value if isinstance(value, int | float | str) else repr(value)


def read_settings(run: RunDirectory, edits: Sequence[CommandAnswer]) -> Settings:
    """The settings of a run. Raises `DataError` in a sentence for a config that cannot be read.

    Of a config without other names and edits each section is read once for all runs that share it: a sweep of a
    thousand runs has few. The result is that of `read_whole`.
    """
    if not edits and (flat := _by_section(run)) is not None:
        return Settings(flat)
    return read_whole(run, edits)


def read_whole(run: RunDirectory, edits: Sequence[CommandAnswer]) -> Settings:
    """The settings of a run, read in one piece. Raises `DataError`."""
    return Settings(dict(leaves(in_force(in_our_names(read_config(run).tree), edits))))


def _by_section(run: RunDirectory) -> dict[str, Any] | None:
    """The settings; None where the file is not a plain list of sections in our own names."""
    try:
        found = run.config.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            return None
        text = run.config.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    flat: dict[str, Any] = {}
    parts = _sections(text)
    for part in parts:
        if (section := _read_section(part)) is None or not flat.keys().isdisjoint(section):
            return None
        flat |= section
    other = _other_names(str(flat.get("project")))
    if not parts or any(key.startswith(other) or (f"{key}.").startswith(other) for key in flat):
        return None
    words = (".".join(map(str, key)) for key in aliases.WORDS)
    return None if any(isinstance(flat.get(key), bool) for key in words) else flat


def _sections(text: str) -> list[str]:
    """The parts of a file, each from a key at the start of a line; none where another line starts there."""
    parts: list[list[str]] = []
    for line in text.splitlines(keepends=True):
        if line[:1].isspace() and parts:
            parts[-1].append(line)
        elif _KEY.match(line):
            parts.append([line])
        else:
            return []
    texts = ["".join(part) for part in parts]
    return texts if len({text.partition(":")[0] for text in texts}) == len(texts) else []


@functools.lru_cache(4096)
def _read_section(text: str) -> Mapping[str, Any] | None:
    try:
        tree, _ = yaml12.read(text)
    except yaml12.YamlError:
        return None
    return dict(leaves(tree)) if isinstance(tree, Mapping) and len(tree) == 1 else None


@functools.lru_cache(64)
def _other_names(project: str) -> tuple[str, ...]:
    """What settings with other names begin with, as `section.key.`."""
    names = dict(aliases.SHARED)
    try:
        names |= specs.find(project).aliases
    except UserError:
        return ("\0",)  # without its project a config is taken as it is
    return tuple(f"{name}." for name in names)
