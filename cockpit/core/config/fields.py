"""The fields of a project's config, as a form shows them: read out of the config model's JSON schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from engines.contract.references import load
from engines.contract.spec import Spec

Kind = Literal["switch", "choice", "text", "value", "block"]
"""How it is edited: on or off, one of some, literal text, one line of YAML, several lines of YAML."""
Path = tuple[str, ...]
VERSION = ("version",)
"""Where a project's configs say which defaults hold."""
_LIMITS = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
_NAMES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false", "null": "null"}


class _Nothing:
    """Stands for a default that is not there."""

    def __repr__(self) -> str:
        return "—"


NOTHING = _Nothing()


@dataclass(frozen=True)
class Field:
    """One setting of a config."""

    key: Path
    kind: Kind
    type: str
    """Its type and limits in words: `number > 0 or null`."""
    help: str
    """The docstring of the attribute."""
    default: Any = NOTHING
    choices: tuple[Any, ...] = ()
    optional: bool = False
    """It may be null."""
    section_defaults: tuple[tuple[Path, Any], ...] = ()
    """Sections around it that have a default of their own, outermost first: it holds where the file has none."""

    @property
    def name(self) -> str:
        return ".".join(self.key)

    def value_in(self, tree: Any) -> Any:
        """What a config tree gives for this field, its default where the tree says nothing."""
        missing = next((default for path, default in self.section_defaults if find(tree, path) is NOTHING), NOTHING)
        for found in (find(tree, self.key), missing if missing is NOTHING else find(missing, self.key)):
            if found is not NOTHING:
                return found
        return self.default


def find(tree: Any, path: Path) -> Any:
    """The value at `path` in a tree of mappings, `NOTHING` where there is none."""
    for part in path:
        if not isinstance(tree, Mapping) or part not in tree:
            return NOTHING
        tree = tree[part]
    return tree


def fields_of(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """Every setting of a config model's JSON schema but `project`, in its order; those of a section together."""
    fields = _walk(schema, schema.get("$defs", {}), (), ())
    found = [field for field in fields if field.key != ("project",)]
    sections = list(dict.fromkeys(field.key[:-1] for field in found))
    return tuple(field for section in sections for field in found if field.key[:-1] == section)


def config_fields(spec: Spec, tree: Any) -> tuple[Field, ...]:
    """The settings of a project's config, with the defaults that hold for the version that the config `tree` names.

    Imports pydantic.
    """
    from engines.contract.config import check_config

    fields = fields_of(load(spec.config).model_json_schema())
    versions = next((field.choices for field in fields if field.key == VERSION), ())
    version = find(tree, VERSION)
    if version not in versions:
        return fields
    said = {"project": spec.name, "version": version, "data": {"path": "."}}
    defaults = check_config(said, "a config", {}, ()).settings.model_dump(mode="json")
    return tuple(_with_default(field, find(defaults, field.key)) for field in fields)


def _with_default(field: Field, default: Any) -> Field:
    if field.key == VERSION or NOTHING in (default, field.value_in({})):
        return field
    return replace(field, default=default, section_defaults=())


def _walk(
    schema: Mapping[str, Any], models: Mapping[str, Any], at: Path, outer: tuple[tuple[Path, Any], ...]
) -> Iterator[Field]:
    for name, given in schema.get("properties", {}).items():
        key, own = (*at, name), _resolved(given, models)
        if "properties" in own:
            around = outer
            if "default" in given:
                whole = given["default"]
                for part in reversed(key):
                    whole = {part: whole}
                around = (*outer, (key, whole))
            yield from _walk(own, models, key, around)
        else:
            yield _field(key, own, models, outer)


def _resolved(schema: Mapping[str, Any], models: Mapping[str, Any]) -> Mapping[str, Any]:
    """`schema` with what its `$ref` points to; its own words go first."""
    if "$ref" not in schema:
        return schema
    return {**models[schema["$ref"].rsplit("/", 1)[-1]], **schema}


def _field(
    key: Path, schema: Mapping[str, Any], models: Mapping[str, Any], outer: tuple[tuple[Path, Any], ...]
) -> Field:
    options = [_resolved(option, models) for option in schema.get("anyOf", [schema])]
    given = [option for option in options if option.get("type") != "null"]
    choices = _choices(given[0]) if len(given) == 1 else ()
    return Field(
        key=key, kind=_kind(given, choices), type=" or ".join(map(_words, options)),
        help=" ".join(schema.get("description", "").split()), default=schema.get("default", NOTHING),
        choices=choices, optional=len(given) < len(options), section_defaults=outer,
    )  # fmt: skip


def _choices(schema: Mapping[str, Any]) -> tuple[Any, ...]:
    if schema.get("type") == "boolean":
        return (False, True)
    return (schema["const"],) if "const" in schema else tuple(schema.get("enum", ()))


def _kind(options: list[Mapping[str, Any]], choices: tuple[Any, ...]) -> Kind:
    if choices:
        return "switch" if choices == (False, True) else "choice"
    types = {option.get("type") for option in options}
    if types == {"string"}:
        return "text"
    return "value" if types <= {"string", "number", "integer", "boolean"} else "block"


def _words(schema: Mapping[str, Any]) -> str:
    """A type as a person says it, with its limits."""
    if choices := _choices(schema):
        return "true or false" if choices == (False, True) else " · ".join(map(str, choices))
    kind = schema.get("type", "")
    if kind == "array":
        item = schema.get("items", {})
        return f"list of {_NAMES.get(item.get('type', ''), 'sections')}"
    limits = ", ".join(f"{sign} {schema[limit]:g}" for limit, sign in _LIMITS if limit in schema)
    return " ".join(part for part in (_NAMES.get(kind, "YAML"), limits) if part)
