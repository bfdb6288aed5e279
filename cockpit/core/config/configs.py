"""The configs a person may start: those in ./configs and those that come with the program, by project."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engines.basics import yaml12
from engines.basics.reading import read_text
from engines.contract import spec as specs
from engines.contract.shipped import SHIPPED
from engines.contract.spec import BrokenSpec

TEXT_BYTES = 64 * 1024
"""More than this of a file is not shown."""


@dataclass(frozen=True)
class ConfigFile:
    path: Path
    about: str
    """Its first comment line."""
    project: str = ""
    """The project it names; empty where it names none or cannot be read."""
    text: str = ""


@dataclass(frozen=True)
class ProjectConfigs:
    """A project and the configs that name it."""

    name: str
    """Empty for files that name no project."""
    title: str
    configs: tuple[ConfigFile, ...]
    broken: str = ""
    """Why nothing of it can be started; empty for a project that works."""


def find_configs(folders: tuple[Path, ...] | None = None) -> list[ConfigFile]:
    """Every YAML file in ./configs and the shipped ones (or in `folders`), each once however it is reached."""
    found: dict[Path, ConfigFile] = {}
    for folder in folders or (Path("configs"), SHIPPED):
        for path in sorted(_yaml_files(folder)):
            if (resolved := path.resolve()) not in found:
                found[resolved] = _read(path)
    return list(found.values())


def by_project(configs: Sequence[ConfigFile]) -> list[ProjectConfigs]:
    """Every installed project with its configs, also one without any, the one whose demo comes first before all others;
    then what belongs to none that is installed.
    """
    installed = dict(sorted(specs.installed().items(), key=lambda item: not getattr(item[1], "demo_first", False)))
    grouped: dict[str, list[ConfigFile]] = {name: [] for name in installed}
    for config in configs:
        grouped.setdefault(config.project, []).append(config)
    groups = []
    for name, files in grouped.items():
        spec = installed.get(name)
        if isinstance(spec, BrokenSpec):
            groups.append(ProjectConfigs(name, "", tuple(files), f"cannot be loaded ({spec.error})"))
        elif spec is None:
            why = "project not installed" if name else "no project named, or not readable"
            groups.append(ProjectConfigs(name, "", tuple(files), why))
        else:
            groups.append(ProjectConfigs(name, spec.title, tuple(files)))
    return groups


def _yaml_files(folder: Path) -> Iterator[Path]:
    for pattern in ("*.yaml", "*.yml"):
        yield from folder.glob(pattern)


def _read(path: Path) -> ConfigFile:
    try:
        text = read_text(path, TEXT_BYTES)
    except (OSError, UnicodeDecodeError):
        return ConfigFile(path, "")
    first = text.partition("\n")[0]
    about = first.lstrip("# ").strip() if first.startswith("#") else ""
    return ConfigFile(path, about, _project(text), text)


def _project(text: str) -> str:
    try:
        tree, _ = yaml12.read(text)
    except yaml12.YamlError:
        return ""
    name = yaml12.find(tree, "project")
    return name if isinstance(name, str) else ""
