"""What a task was asked for (`--set sessions=4`) as a struct: every value checked, one sentence for a fault.

The struct is the whole description: names, types, defaults, ranges (`Annotated[int, Meta(ge=2)]`) and, where a range
needs a reason, its `Meta(description=…)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from engines.basics import yaml12
from engines.basics.errors import UserError, nearest

Order = TypeVar("Order", bound=msgspec.Struct)
_LISTS = (inspect.ListType, inspect.VarTupleType)


def as_struct(arguments: Mapping[str, Any], order: type[Order]) -> Order:
    """An `order` made of `arguments`; a list may be given as `1,5,10`, and a `Path` has its `~` replaced.

    Raises `UserError` with one sentence: for an unknown name, a missing one, a wrong type, a value out of range, or
    what the struct's own `__post_init__` says with a `ValueError`.
    """
    fields = {field.encode_name: field for field in msgspec.structs.fields(order)}
    for name in arguments:
        if name not in fields:
            raise UserError(f"{name} is no argument{nearest(name, fields)}; expected {_either(list(fields), 'or')}.")
    for name, field in fields.items():
        if field.required and name not in arguments:
            raise UserError(f"{name} is missing, expected {_expected(inspect.type_info(field.type))}.")
    given = {fields[name].name: _value(name, value, fields[name].type) for name, value in arguments.items()}
    try:
        return order(**given)
    except ValueError as error:
        raise UserError(str(error)) from None


def _value(name: str, value: Any, kind: Any) -> Any:
    info = inspect.type_info(kind)
    try:
        items = _items(value, _plain(info))
        if not _finite(items):
            raise msgspec.ValidationError
        return msgspec.convert(items, kind, dec_hook=_path)
    except msgspec.ValidationError:
        raise UserError(f"{name} is {_shown(value)}, expected {_expected(info)}{_hint(value, info)}.") from None


def _items(value: Any, kind: inspect.Type) -> Any:
    """The values of what should be a list: `1,5,10` on a command line, or a single one."""
    if not isinstance(kind, _LISTS) or value is None or isinstance(value, list | tuple):
        return value
    return [yaml12.read_value(part.strip()) for part in value.split(",")] if isinstance(value, str) else [value]


def _finite(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str) and value:
        return Path(value).expanduser()
    raise msgspec.ValidationError


def _plain(kind: inspect.Type) -> inspect.Type:
    """A type without its description, and without that it may be absent."""
    if isinstance(kind, inspect.Metadata):
        return _plain(kind.type)
    if isinstance(kind, inspect.UnionType):
        some = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        return _plain(some[0]) if len(some) == 1 else kind
    return kind


def _expected(kind: inspect.Type) -> str:
    """What a value has to be, for a sentence."""
    plain = _plain(kind)
    match plain:
        case inspect.IntType():
            text = f"a whole number{_range(plain)}"
        case inspect.FloatType():
            text = f"a number{_range(plain)}"
        case inspect.BoolType():
            text = "true or false"
        case inspect.StrType():
            text = "text"
        case inspect.CustomType():
            text = "a path"
        case inspect.LiteralType(values):
            text = _either([str(value) for value in values], "or")
        case inspect.ListType() | inspect.VarTupleType():
            text = f"{_expected(plain.item_type)}, or several separated by commas"
        case inspect.UnionType(types):
            text = _either([_expected(one) for one in types if not isinstance(one, inspect.NoneType)], "or")
        case _:
            text = f"{plain}"
    said = kind.extra_json_schema if isinstance(kind, inspect.Metadata) else None
    return f"{text}: {said['description']}" if said and "description" in said else text


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.ge is not None and kind.le is not None:
        return f" from {_number(kind.ge)} to {_number(kind.le)}"
    words = {"of at least": kind.ge, "above": kind.gt, "of at most": kind.le, "below": kind.lt}
    limits = [f"{word} {_number(limit)}" for word, limit in words.items() if limit is not None]
    return f" {' and '.join(limits)}" if limits else ""


def _number(limit: int | float) -> str:
    return f"{limit:g}" if isinstance(limit, float) else str(limit)


def _hint(value: Any, kind: inspect.Type) -> str:
    """The likeliest meaning of a word that is none of a few, and how to write a text that looks like a number."""
    plain = _plain(kind)
    if isinstance(plain, inspect.LiteralType):
        return nearest(str(value), [str(one) for one in plain.values])
    if isinstance(plain, inspect.StrType | inspect.CustomType) and isinstance(value, bool | int | float):
        return f", written as '\"{_shown(value)}\"'"
    return ""


def _shown(value: Any) -> str:
    if value is None:
        return "empty"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _either(names: list[str], word: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
