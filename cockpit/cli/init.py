"""Writing a first config."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from cockpit.cli import codes
from cockpit.cli.printing import say
from cockpit.core.config.starter import starter_text
from engines.basics.errors import DataError, UserError
from engines.contract import spec as specs
from engines.contract.spec import Spec


def init(arguments: Namespace) -> int:
    """Write a commented config of a project into a new file. Raises `UserError`."""
    spec = specs.find(arguments.project) if arguments.project else _only()
    file = Path(arguments.file or f"{spec.name}.yaml")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(file, "x", encoding="utf-8") as opened:
            opened.write(starter_text(spec))
    except FileExistsError:
        raise UserError(f"{file} already exists: name another, as in `cockpit init {spec.name} mine.yaml`.") from None
    except OSError as error:
        raise DataError(f"{file} cannot be written ({error.strerror}); choose another file.") from None
    say(f"wrote {file}: set data.path, then `cockpit check {file}` and `cockpit train {file}`")
    return codes.DONE


def _only() -> Spec:
    found = [spec for spec in specs.installed().values() if isinstance(spec, Spec)]
    if len(found) == 1:
        return found[0]
    raise UserError(f"init: name a project: {', '.join(spec.name for spec in found) or 'none is installed'}.")
