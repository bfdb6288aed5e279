"""The configs that come with the program, and how it was installed."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import engines
from engines.contract.rundir import RunDirectory

ROOT = Path(engines.__file__).parent.parent
CLONE = (ROOT / "pyproject.toml").is_file()
"""Whether this is a clone, not an installed wheel."""


def _shipped() -> Path:
    """The folder of the configs that come with the program: of a clone its own, else where the wheel put them."""
    if CLONE:
        return ROOT / "configs"
    try:
        files = metadata.files("cockpit") or ()
    except metadata.PackageNotFoundError:  # a copy of the packages alone
        files = ()
    found = [file for file in files if file.match("share/cockpit/configs/*.yaml")]
    return Path(str(found[0].locate())).resolve().parent if found else ROOT / "configs"


SHIPPED = _shipped()


def instead_of(path: Path) -> str:
    """What to do where the config file at `path` is not there, as the rest of a sentence."""
    run = RunDirectory(path.parent)
    if path.absolute() == run.config and run.info_file.is_file():
        return f"{run.path.name} cannot be resumed or evaluated without it: put it back, or start a new run"
    same = SHIPPED / path.name
    if same.is_file():
        return f"{same} comes with the program"
    return "`cockpit init` writes one" + (f", and examples are in {SHIPPED}" if SHIPPED.is_dir() else "")
