"""Objects by name, `package.module:Name` or `path/to/file.py:Name`; and why one cannot be had, in a sentence.

Nothing here shows a traceback of the import system: it says nothing to who lacks a package.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import re
import shlex
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from engines.basics.errors import UserError, nearest

PIP_INSTALL = f"{shlex.quote(sys.executable)} -m pip install"
"""Of this interpreter: a `pip` on PATH may be of another, as where pipx has installed the program."""
_OF_EXTRA = re.compile(r"""([\w.-]+).*\bextra == ['"]([\w-]+)['"]""")


def load(reference: str, beside: Path | None = None) -> Any:
    """The object that `reference` names; a file's path may be relative to the folder `beside`, else to the current one.

    Raises `UserError`, with exit code 1 where what is named cannot be imported.
    """
    place, _, name = reference.rpartition(":")
    if not place or not all(part.isidentifier() for part in name.split(".")):
        raise UserError(f"{reference!r}: expected package.module:Name or path/to/file.py:Name.")
    is_file = place.endswith(".py")
    path = (beside or Path()).joinpath(Path(place).expanduser()).absolute()
    if is_file and not path.is_file():
        raise UserError(f"{reference}: no file {path}.")
    try:
        module = _file(path) if is_file else importlib.import_module(place)
    except (Exception, SystemExit) as error:  # whatever the code of somebody else does when it is read
        raise UserError(f"{reference} cannot be imported: {why_not(error)}.", exit_code=1) from None
    try:
        return functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        raise UserError(f"{reference}: {place} has no {name!r}{nearest(name, vars(module))}.") from None


def why_not(error: BaseException) -> str:
    """Why an import failed, with the command that installs what is missing, or the line that is wrong."""
    if isinstance(error, ModuleNotFoundError):
        return missing(error)
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {error.msg}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if len(frames) > 1 else ""
    return f"{type(error).__name__}: {error}{where}"


def missing(error: ModuleNotFoundError) -> str:
    """What is not there, and how to get it: from an extra of ours where one has it."""
    module = error.name or str(error)
    package = module.partition(".")[0]
    if package != module and package in sys.modules:
        return f"there is no module {module}; check its name and the version of its package"
    if extra := _extra_with(package):
        return (
            f"the package {package} is not installed; start with `COCKPIT_EXTRAS={extra} ./run …`, "
            f"or `{PIP_INSTALL} 'cockpit[{extra}]'`"
        )
    return f"the package {package} is not installed; install it, as with `{PIP_INSTALL} {package}`"


def _extra_with(package: str) -> str:
    """The extra of the cockpit's own distribution that brings `package`; empty where none does."""
    from importlib import metadata

    def plain(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    try:
        wanted = metadata.requires("cockpit") or []
    except metadata.PackageNotFoundError:
        return ""
    found = [match.groups() for one in wanted if (match := _OF_EXTRA.match(one))]
    brings = (extra for name, extra in found if extra != "test" and f"{plain(name)}-".startswith(f"{plain(package)}-"))
    return next(brings, "")


def _file(path: Path) -> ModuleType:
    """The module of a file, read once. Registered, since dataclasses look for the module of their class."""
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[name])
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
