"""A form over a config file: the values a person changes are overrides, as `--set` gives them to `cockpit train`."""

from __future__ import annotations

import copy
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cockpit.core import format as words
from cockpit.core.config.fields import NOTHING, Field, config_fields
from cockpit.core.typed import program
from engines.basics import yaml12
from engines.basics.errors import UserError
from engines.contract import spec as specs
from engines.contract.spec import Spec

Key = tuple[str | int, ...]
NAME = Field(
    key=("--name",), kind="text", type="text", help="A label for the run, as the list of runs shows it.",
    default="",
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: the sentence that the file itself would give, and the key it is about."""

    key: Key
    sentence: str


class LaunchForm:
    """A config file, or none yet, and what is to be different. Nothing here reads a disk but `faults`."""

    def __init__(
        self, spec: Spec, fields: Sequence[Field], path: Path | None, tree: Any, text: str,
        names: Mapping[Key, Key] | None = None,
    ) -> None:  # fmt: skip
        self.spec = spec
        self.fields = (NAME, *fields)
        self.path = path
        self.text = text
        """The file as it was read."""
        self.names = names or {}
        """Settings that the file has under another name: the form's key → the file's."""
        self._file = tree
        self._changes: dict[tuple[str, ...], str] = {}
        """YAML by key; literal for the name."""
        self._undone: list[dict[tuple[str, ...], str]] = []
        self.tree = copy.deepcopy(tree)
        """The config with every change."""

    # -- values ----------------------------------------------------------------------------------------------------

    def value(self, field: Field) -> Any:
        """What the run will use; `NOTHING` where neither the file nor the project says anything."""
        return self._changes.get(NAME.key, "") if field is NAME else field.value_in(self.tree)

    def file_value(self, field: Field) -> Any:
        return field.value_in(self._file)

    def text_of(self, field: Field) -> str:
        """The value as a person types it."""
        if field.kind != "text" and field.key in self._changes:
            return self._changes[field.key]
        return shown(self.value(field))

    def changed(self, field: Field) -> bool:
        """Whether it is changed here, against the file."""
        return field.key in self._changes

    def not_default(self, field: Field) -> bool:
        """Whether the run will use something else than the project's default."""
        value, default = self.value(field), field.value_in({})
        return default is not NOTHING and (value != default or isinstance(value, bool) != isinstance(default, bool))

    def suggest(self, key: tuple[str, ...], choices: tuple[str, ...]) -> None:
        """Offer these values for a field, which takes others too."""
        self.fields = tuple(replace(field, choices=choices) if field.key == key else field for field in self.fields)

    # -- changing --------------------------------------------------------------------------------------------------

    def set(self, field: Field, typed: str) -> None:
        """Take what was typed; the very value of the file is no change."""
        text = typed.strip() if field is NAME else _as_yaml(field, typed)
        before = "" if field is NAME else _line(self.file_value(field))
        after = text if field is NAME else _line(yaml12.read_value(text))
        changes = {key: value for key, value in self._changes.items() if key != field.key}
        if after != before:
            changes[field.key] = text
        self._take(changes)

    def reset(self, field: Field) -> None:
        """Back to what the file says."""
        self._take({key: value for key, value in self._changes.items() if key != field.key})

    def step(self, field: Field, by: int) -> None:
        """The next choice of a field that has some."""
        now = self.value(field)
        place = field.choices.index(now) + by if now in field.choices else 0
        self.set(field, shown(field.choices[place % len(field.choices)]))

    def undo(self) -> bool:
        """Take the last change back; False when there is none."""
        if not self._undone:
            return False
        self._changes = self._undone.pop()
        self._merge()
        return True

    def _take(self, changes: dict[tuple[str, ...], str]) -> None:
        if changes != self._changes:
            self._undone.append(self._changes)
            self._changes = changes
            self._merge()

    def _merge(self) -> None:
        from engines.contract.overrides import apply_all

        self.tree = copy.deepcopy(self._file)
        for override in self.overrides:
            try:
                apply_all(self.tree, [override])
            except UserError:  # a section that is none in the file: `faults` says so
                continue

    # -- what it comes to ------------------------------------------------------------------------------------------

    @property
    def label(self) -> str:
        return self._changes.get(NAME.key, "")

    @property
    def overrides(self) -> list[str]:
        """`section.key=value` of each change."""
        return [f"{'.'.join(key)}={value}" for key, value in self._changes.items() if key != NAME.key]

    @property
    def changes(self) -> dict[tuple[str, ...], Any]:
        """The changed settings and their values."""
        return {key: yaml12.read_value(text) for key, text in self._changes.items() if key != NAME.key}

    @property
    def arguments(self) -> list[str]:
        """The config and its overrides on a command line."""
        return [str(self.path), *(part for override in self.overrides for part in ("--set", override))]

    @property
    def command(self) -> str:
        """What starts the same run in a shell."""
        name = ["--name", self.label] if self.label else []
        return f"{program()} {shlex.join(['train', *self.arguments, *name])}"

    def faults(self) -> tuple[Fault, ...]:
        """Everything wrong with the config as changed. Reads the file and imports pydantic: a worker's work."""
        from engines.contract.config import ConfigError, check_config, load_config, read_config

        try:
            if self.path is None:
                check_config(copy.deepcopy(self._file), "new config", {}, self.overrides)
                return ()
            if read_config(self.path)[2] != self.text:
                return (
                    Fault((), f"{self.path} has changed since it was read; close the form and choose the file again."),
                )
            load_config(self.path, self.overrides)
        except ConfigError as error:
            return tuple(Fault(key, sentence) for key, sentence in error.faults)
        except UserError as error:
            return (Fault((), str(error)),)
        return ()

    def place_of(self, key: Key) -> tuple[str, ...]:
        """Where a fault at `key` is shown: at a field, at the heading of a section, or, being (), beside the form."""
        keys = {field.key for field in self.fields}
        places = keys | {key[:-1] for key in keys}
        candidates = (tuple(map(str, key[:length])) for length in range(len(key), 0, -1))
        return next((place for place in candidates if place in keys or (place in places and place == key)), ())


def open_form(path: Path) -> LaunchForm:
    """A form over the config file at `path`. Raises `UserError` for one that names no usable project."""
    from engines.contract.config import in_our_names, project_of, read_config

    tree, lines, text = read_config(path)
    spec = project_of(tree, str(path), lines)
    return LaunchForm(spec, config_fields(spec, tree), path, tree, text, in_our_names(spec, tree).names)


def new_form(project: str) -> LaunchForm:
    """A form of the defaults of a project. Raises `UserError`."""
    spec = specs.find(project)
    tree = {"project": project}
    return LaunchForm(spec, config_fields(spec, tree), None, tree, f"project: {yaml12.write_line(project)}\n")


def shown(value: Any) -> str:
    """A value in one line: text as it is, numbers without padding, the rest as YAML."""
    if value is NOTHING:
        return ""
    if isinstance(value, float) and math.isfinite(value):
        return words.number(value, "")
    return value if isinstance(value, str) else _line(value)


def _line(value: Any) -> str:
    return "" if value is NOTHING else yaml12.write_line(value)


def _quoted(text: str) -> str:
    """A string that YAML reads as just that: bare where it can be, else in quotes that a shell leaves alone."""
    candidates = (text, json.dumps(text, ensure_ascii=False), yaml12.write_line(text))
    return next(candidate for candidate in candidates if yaml12.read_value(candidate) == text)


def _as_yaml(field: Field, typed: str) -> str:
    """What was typed as YAML: the text of a text field is taken literally, everything else as in a file."""
    match field.kind:
        case "text":
            literal = typed.strip()
            return "null" if field.optional and literal in ("", "null") else _quoted(literal)
        case "block":
            return _line(yaml12.read_value(typed))
        case _:
            return typed.strip()
