"""Every key that has an id, collected from the screens, so that the user can choose others; clashes are named."""

from __future__ import annotations

import importlib
import pkgutil
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import ModuleType
from typing import Any

from textual.app import App
from textual.binding import Binding
from textual.keys import KEY_NAME_REPLACEMENTS, KEY_TO_UNICODE_NAME, Keys

from engines.basics.errors import nearest

EVERYWHERE = "everywhere"
GIVEN_BY_ENGINES = "play."
"""Begins the ids of keys that an interactive engine offers: known only while it runs."""

MODIFIERS = {"ctrl", "shift", "alt"}
"""Those that terminals send."""


@dataclass(frozen=True)
class Key:
    """A binding: `where` it holds, and its `keys`, by Textual's names."""

    id: str
    keys: tuple[str, ...]
    about: str
    where: str


def catalogue(app: type[App[Any]]) -> list[Key]:
    """Of every screen and widget, and of `app` itself; those of a screen in their order."""
    from cockpit import screens, widgets

    parts = [cls for module in (*_modules(screens), *_modules(widgets)) for cls in _defined_in(module)]
    found = [key for cls in sorted([*app.__mro__, *parts], key=_place) for key in _keys_of(cls)]
    return list(dict.fromkeys(found))


def _modules(package: ModuleType) -> list[ModuleType]:
    return [
        importlib.import_module(f"{package.__name__}.{info.name}") for info in pkgutil.iter_modules(package.__path__)
    ]


def _defined_in(module: ModuleType) -> list[type]:
    return [cls for cls in vars(module).values() if isinstance(cls, type) and cls.__module__ == module.__name__]


def _place(cls: type) -> tuple[bool, str]:
    return _where(cls) != EVERYWHERE, _where(cls)


def _where(cls: type) -> str:
    return EVERYWHERE if issubclass(cls, App) else cls.__name__.removesuffix("Screen")


def _keys_of(cls: type) -> list[Key]:
    """Those that a class binds itself."""
    by_id: dict[str, list[Binding]] = {}
    for binding in Binding.make_bindings(vars(cls).get("BINDINGS", ())):
        if binding.id:
            by_id.setdefault(binding.id, []).append(binding)
    return [
        Key(id, tuple(it.key for it in group), group[0].tooltip or group[0].description, _where(cls))
        for id, group in by_id.items()
    ]


def completed(chosen: Mapping[str, str], known: Sequence[Key]) -> dict[str, str]:
    """`chosen` for Textual's keymap, which drops whatever else was on a key that is taken from a binding.

    So what shares a key with it, as pause and continue do, is given its own keys once more.
    """
    keymap = {key.id: ",".join(key.keys) for key in known if _shares(key, chosen, known)}
    return keymap | {id: keys for id, keys in chosen.items() if all(map(_is_key, _normal(keys)))}


def _shares(key: Key, chosen: Mapping[str, str], known: Sequence[Key]) -> bool:
    return any(other.id in chosen and other.where == key.where and set(other.keys) & set(key.keys) for other in known)


def problems(chosen: Mapping[str, str], known: Sequence[Key]) -> list[str]:
    """A sentence for each id that no binding has, each key that does not exist, each key that now means two things."""
    ids = sorted({key.id for key in known})
    return [
        *(f"No key has the id {id!r}{nearest(id, ids)}." for id in chosen if not _is_known(id, ids)),
        *(
            f"{key!r} for {id} is not a key; expected one as in f8, ctrl+t or x."
            for id, keys in chosen.items()
            for key in _normal(keys)
            if not _is_key(key)
        ),
        *_clashes(completed(chosen, known), known),
    ]


def _clashes(keymap: Mapping[str, str], known: Sequence[Key]) -> list[str]:
    found = {}
    for one, other in combinations(known, 2):
        together = one.where == other.where or EVERYWHERE in (one.where, other.where)
        meant = set(one.keys) & set(other.keys)  # as of pause and continue, of which one is there at a time
        if one.id == other.id or not together or meant:
            continue
        for key in set(_keys_now(one, keymap)) & set(_keys_now(other, keymap)):
            found[key, one.id, other.id] = (
                f"The key {key} is bound to both {one.id} and {other.id}: only one of them works."
            )
    return list(found.values())


def _is_known(id: str, ids: Sequence[str]) -> bool:
    return id in ids or id.startswith(GIVEN_BY_ENGINES)


def _keys_now(key: Key, keymap: Mapping[str, str]) -> tuple[str, ...]:
    return _normal(keymap[key.id]) if key.id in keymap else key.keys


def _normal(keys: str) -> tuple[str, ...]:
    """`?` is `question_mark`, as Textual has it; what is not even a list of keys is no key."""
    if not all(key.strip() for key in keys.split(",")):
        return (keys,)
    return tuple(binding.key for binding in Binding.make_bindings([Binding(keys, "")]))


def _is_key(name: str) -> bool:
    *modifiers, last = name.split("+")
    named = len(last) == 1 or last in {key.value.rpartition("+")[2] for key in Keys} or _is_character(last)
    return named and MODIFIERS.issuperset(modifiers)


def _is_character(name: str) -> bool:
    if name in KEY_NAME_REPLACEMENTS.values():
        return True
    try:
        unicodedata.lookup(KEY_TO_UNICODE_NAME.get(name, name.replace("_", " ")))
    except KeyError:
        return False
    return True
