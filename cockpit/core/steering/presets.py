"""Loss weights kept under a name, a YAML file each, so that they can be read, edited and shared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from cockpit.core.steering.loss_weights import typed_weight
from engines.basics import yaml12
from engines.basics.errors import DataError, UserError, nearest
from engines.basics.files import make_directory, replace_bytes
from engines.basics.reading import read_text

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


class Presets:
    """The presets of one project in `folder`: `<project>-<name>.yaml`."""

    def __init__(self, folder: Path, project: str) -> None:
        self._folder, self._project = folder, project

    def names(self) -> list[str]:
        """In alphabetical order. Raises OSError."""
        begin = f"{self._project}-"
        files = [file.stem for file in self._folder.glob("*.yaml") if file.stem.startswith(begin)]
        return sorted(name for file in files if _NAME.fullmatch(name := file.removeprefix(begin)))

    def path(self, name: str) -> Path:
        return self._folder / f"{self._project}-{name}.yaml"

    def save(self, name: str, weights: Mapping[str, float]) -> None:
        """Raises `UserError` for a name that is none, OSError where nothing can be written."""
        if not _NAME.fullmatch(name):
            raise UserError(f"{name!r} is not a valid preset name; use up to 40 letters, digits, dots and dashes.")
        make_directory(self._folder)
        content = {"project": self._project, "loss_weights": dict(weights)}
        replace_bytes(self.path(name), yaml12.write(content).encode())

    def load(self, name: str, heads: Mapping[str, float]) -> dict[str, float]:
        """The weights of those of its heads that the run has. Raises `UserError` with what is wrong in it."""
        path = self.path(name)
        try:
            tree, _ = yaml12.read(read_text(path))
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read as a preset ({error}).") from None
        weights = yaml12.find(tree, "loss_weights")
        if not isinstance(weights, Mapping):
            raise DataError(f"{path} has no weights; expected `loss_weights:` with a number for each head.")
        if (owner := tree.get("project", self._project)) != self._project:  # `a-b-x` of a-b looks like `b-x` of a
            raise DataError(f"{path} is a preset of the project {owner!r}; the run is of {self._project!r}.")
        for head, weight in weights.items():
            if head not in heads:
                raise DataError(
                    f"{path}: there is no head {head!r}{nearest(str(head), heads)}; the run has {', '.join(heads)}."
                )
            if isinstance(weight, bool) or typed_weight(str(weight)) is None:
                raise DataError(f"{path}: the weight of {head} is {weight!r}, expected a finite number of 0 or more.")
        return {str(head): float(weight) for head, weight in weights.items()}
