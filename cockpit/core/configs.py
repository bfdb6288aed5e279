"""The configs a person may start: those in ./configs and those that come with the program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import engines

SHIPPED = Path(engines.__file__).parent.parent / "configs"


@dataclass(frozen=True)
class ConfigFile:
    path: Path
    about: str
    """Its first comment line."""


def find_configs(folders: tuple[Path, ...] | None = None) -> list[ConfigFile]:
    """Every YAML file in ./configs and the shipped ones (or in `folders`), each once however it is reached."""
    found: dict[Path, ConfigFile] = {}
    for folder in folders or (Path("configs"), SHIPPED):
        for path in sorted(_yaml_files(folder)):
            found.setdefault(path.resolve(), ConfigFile(path, _first_comment(path)))
    return list(found.values())


def _yaml_files(folder: Path) -> Iterator[Path]:
    for pattern in ("*.yaml", "*.yml"):
        yield from folder.glob(pattern)


def _first_comment(path: Path) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            line = file.readline(200)
    except (OSError, UnicodeDecodeError):
        return ""
    return line.lstrip("# ").strip() if line.startswith("#") else ""
