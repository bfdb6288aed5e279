"""What `--set section.key=value` says of a config."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engines.basics import yaml12
from engines.basics.errors import UserError


@dataclass(frozen=True)
class Override:
    """One `--set`."""

    text: str
    typed: yaml12.Key
    """The key as it was typed."""
    key: yaml12.Key
    """Our name of it."""
    value: Any


def parse(text: str) -> Override:
    """`section.key=value`. Raises `UserError` for what is none."""
    path, equals, value = text.partition("=")
    if not equals or not all(path.split(".")):
        raise UserError(f"--set {text}: expected section.key=value, as in --set training.epochs=4.")
    key = tuple(int(part) if part.isdigit() else part for part in path.split("."))
    return Override(text, key, key, yaml12.read_value(value))


def apply(tree: Any, override: Override) -> None:
    """Set it in a tree of mappings and lists, making sections that the file left out.

    Raises `UserError` for one that has no place in the tree.
    """
    key, text = override.key, override.text
    for depth, part in enumerate(key):
        last = depth == len(key) - 1
        if isinstance(tree, dict):
            if last:
                tree[part] = override.value
            tree = tree.setdefault(part, {})
        elif isinstance(tree, list) and isinstance(part, int) and part < len(tree):
            if last:
                tree[part] = override.value
            tree = tree[part]
        else:
            section = ".".join(map(str, key[:depth]))
            raise UserError(f"--set {text}: {section} is not a section of the config that could hold {part!r}.")


def apply_all(tree: Any, overrides: Sequence[str]) -> None:
    """Set what several `--set` say, in our names. Raises `UserError`."""
    for text in overrides:
        apply(tree, parse(text))
