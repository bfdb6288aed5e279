"""Reading a config: strict, complete, all errors at once, each with its file and line.

The only part of the contract that needs pydantic; import it where a config is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from engines.basics import yaml12
from engines.basics.errors import UserError, nearest
from engines.basics.reading import read_text
from engines.contract import spec as specs
from engines.contract.aliases import SHARED, Aliases, Renamed, moved_lines, word, written
from engines.contract.overrides import Override, apply, parse
from engines.contract.settings import RunConfig
from engines.contract.spec import Spec

Fault = tuple[yaml12.Key, str]
"""Our name of the key where it stands, and a sentence."""


class ConfigError(UserError):
    """Every fault of a config: a sentence each, and the key where it stands."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(sentence for _, sentence in faults))
        self.faults = faults


@dataclass(frozen=True)
class LoadedConfig:
    spec: Spec
    settings: RunConfig

    def dump(self) -> str:
        """The whole config as YAML, defaults included; loads back equal."""
        return yaml12.write(self.settings.model_dump(mode="json"))


def _model_at(model: type[BaseModel], location: Sequence[str | int]) -> type[BaseModel] | None:
    """The config section that holds the key at `location`, for its known keys."""
    for part in location[:-1]:
        if isinstance(part, int):
            continue
        field = model.model_fields.get(part)
        if field is None:
            return None
        inner = [field.annotation, *get_args(field.annotation)]
        found = [kind for kind in inner if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if not found:
            return None
        model = found[0]
    return model


class _Places:
    """Says where a config key came from: a line of the file, or a --set; and under which name."""

    def __init__(
        self, source: str, lines: Mapping[yaml12.Key, int], names: Mapping[yaml12.Key, yaml12.Key],
        overrides: Sequence[Override],
    ) -> None:  # fmt: skip
        self._source, self._lines = source, moved_lines(lines, names)
        self._names = {**names, **{each.key: each.typed for each in overrides}}
        self._overrides = {each.key: each.text for each in overrides}

    def name(self, location: yaml12.Key) -> str:
        """The key as the user wrote it."""
        return _dotted(written(location, self._names))

    def line(self, key: yaml12.Key) -> str:
        """The file's own line of a key of the file."""
        return f"{self._source}:{self._lines[key]}" if key in self._lines else self._source

    def of(self, location: yaml12.Key) -> str:
        for length in range(len(location), 0, -1):
            if location[:length] in self._overrides:
                return f"--set {self._overrides[location[:length]]}"
            if location[:length] in self._lines:
                return f"{self._source}:{self._lines[location[:length]]}"
            for key, text in self._overrides.items():
                if key[: len(location)] == location:  # a --set that made a section where none belongs
                    return f"--set {text}"
        return self._source


def _sentence(error: ErrorDetails, model: type[BaseModel], places: _Places) -> str:
    location = tuple(error["loc"])
    name = places.name(location) or "the config"
    where = places.of(location)
    match error["type"]:
        case "extra_forbidden":
            section = _model_at(model, location)
            known = section.model_fields if section else ()
            return f"{where}: {name} is not a known key{nearest(str(location[-1]), known)}."
        case "missing":
            return f"{where}: {name} is missing."
        case "value_error":
            return f"{where}: {name}: {error['ctx']['error']}."
        case _:
            message = error["msg"][0].lower() + error["msg"][1:]
            return f"{where}: {name}: {message}, got {error['input']!r}."


def _twice_in_file(renamed: Renamed, places: _Places) -> Iterator[Fault]:
    for key, other, holds in renamed.twice:
        yield key, _twice(key, other, places.line(other), places.line(holds))


def _twice_set(given: Sequence[Override]) -> Iterator[Fault]:
    first: dict[yaml12.Key, Override] = {}
    for each in given:
        before = first.setdefault(each.key, each)
        if before.typed != each.typed:
            other, own = (each, before) if each.typed != each.key else (before, each)
            yield each.key, _twice(each.key, other.typed, f"--set {other.text}", f"--set {own.text}")


def _twice(key: yaml12.Key, other: yaml12.Key, where: str, there: str) -> str:
    return f"{where}: {_dotted(other)} is another name for {_dotted(key)}, which {there} sets too; keep one of them."


def _dotted(key: yaml12.Key) -> str:
    return ".".join(map(str, key))


def _must_have_sections(tree: Any, source: str) -> None:
    if not isinstance(tree, dict):
        found = "nothing" if tree is None else "a list" if isinstance(tree, list) else f"{tree!r}"
        raise UserError(f"{source}:1: expected sections such as `training:`, got {found}.")


def _spec(tree: Any, places: _Places, given: Sequence[Override] = ()) -> Spec:
    """The project that a config and its `--set` name."""
    name = next((each.value for each in reversed(given) if each.key == ("project",)), tree.get("project"))
    where = places.of(("project",))
    if not isinstance(name, str):
        known = next(iter(specs.names()), "spiral")
        raise UserError(f"{where}: project is missing: name an installed project, as in `project: {known}`.")
    try:
        return specs.find(name)
    except UserError as error:
        raise UserError(f"{where}: {error}", exit_code=error.exit_code) from None


def _must_weigh_its_heads(spec: Spec, settings: RunConfig) -> None:
    """A slip of whoever wrote the project, reported before the loop would fail on it."""
    heads, weights = [head.name for head in spec.heads], list(settings.loss_weights.model_dump())
    if set(heads) != set(weights):
        raise UserError(
            f"The project {spec.name!r} has the heads {', '.join(heads)} in its spec and the loss weights "
            f"{', '.join(weights)} in its config model; expected the same names in both."
        )


def _aliases(spec: Spec, model: type[RunConfig]) -> Aliases:
    """The other names that configs of a project may use; a setting of its own that is called so is meant instead."""
    names = {**SHARED, **spec.aliases}
    return Aliases({other: own for other, own in names.items() if not _is_setting(model, other)}, model.model_fields)


def _is_setting(model: type[BaseModel], name: str) -> bool:
    key = tuple(name.split("."))
    section = _model_at(model, key)
    return section is not None and key[-1] in section.model_fields


def in_our_names(spec: Spec, tree: dict[str, Any]) -> Renamed:
    """Rename, in it, the settings that the config `tree` has under other names; what was done."""
    return _aliases(spec, specs.load(spec.config)).rename(tree)


def _must_name_its_metrics_apart(spec: Spec) -> None:
    taken = {"loss", "step", "attempt", "epoch", "time", "lr", "data_wait", "grad_norm", "skipped"}
    taken |= {head.name for head in spec.heads}
    for name in spec.measured:
        if name in taken or spec.measured.count(name) > 1:
            raise UserError(f"The project {spec.name!r} has a metric {name!r}, a name in use; choose another one.")


def check_config(tree: Any, source: str, lines: Mapping[yaml12.Key, int], overrides: Sequence[str]) -> LoadedConfig:
    """Validate a config tree with its `--set` overrides, which it then has, under our names.

    Raises `UserError` naming every fault, one a line; a `ConfigError` where the faults are those of single keys.
    """
    _must_have_sections(tree, source)
    given = [parse(text) for text in overrides]
    spec = _spec(tree, _Places(source, lines, {}, given), given)
    model: type[RunConfig] = specs.load(spec.config)
    aliases = _aliases(spec, model)
    renamed = aliases.rename(tree)
    for place, each in enumerate(given):
        key = aliases.ours(each.key)
        given[place] = replace(each, key=key, value=word(key, each.value))
        apply(tree, given[place])
    places = _Places(source, lines, renamed.names, given)
    faults = [*_twice_in_file(renamed, places), *_twice_set(given)]
    try:
        settings = model.model_validate(tree)
    except ValidationError as error:
        faults += [(tuple(one["loc"]), _sentence(one, model, places)) for one in error.errors()]
    if faults:
        raise ConfigError(faults)
    _must_weigh_its_heads(spec, settings)
    _must_name_its_metrics_apart(spec)
    return LoadedConfig(spec, settings)


def read_config(path: Path) -> tuple[Any, dict[yaml12.Key, int], str]:
    """What the config file at `path` says, not checked, the line of every key, and its text. Raises `UserError`."""
    try:
        text = read_text(path)
    except FileNotFoundError:
        from engines.contract.shipped import instead_of  # here: it reads the list of what is installed

        raise UserError(f"{path}: no such config file; {instead_of(path)}.") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read as a config ({error.strerror}).") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: cannot be read as a config: byte {error.start:,} is not UTF-8 text.") from None
    try:
        tree, lines = yaml12.read(text)
    except yaml12.YamlError as error:
        raise UserError(f"{path}:{error}.") from None
    return tree, lines, text


def load_config(path: Path, overrides: Sequence[str] = ()) -> LoadedConfig:
    """Read and check the config file at `path`. Raises `UserError` naming every fault, one a line."""
    tree, lines, _ = read_config(path)
    return check_config(tree, str(path), lines, overrides)


def project_of(tree: Any, source: str, lines: Mapping[yaml12.Key, int]) -> Spec:
    """The project whose config `tree` is, whatever else may be wrong with it. Raises `UserError`."""
    _must_have_sections(tree, source)
    return _spec(tree, _Places(source, lines, {}, ()))


def with_absolute_data(loaded: LoadedConfig) -> LoadedConfig:
    """With a data path that means the same from wherever the run goes on."""
    data = loaded.settings.data
    path = str(Path(data.path).expanduser().absolute())
    settings = loaded.settings.model_copy(update={"data": data.model_copy(update={"path": path})})
    return LoadedConfig(loaded.spec, settings)


def with_recorded_environment(loaded: LoadedConfig) -> LoadedConfig:
    """What a run records so that it can be started again as it was: absolute data path, number of threads."""
    found = with_absolute_data(loaded)
    launch = found.settings.launch
    threads = launch.threads or len(os.sched_getaffinity(0))
    settings = found.settings.model_copy(update={"launch": launch.model_copy(update={"threads": threads})})
    return LoadedConfig(found.spec, settings)
