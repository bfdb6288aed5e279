"""A person's own words on a run: its label and notes, in its record; its directory keeps its name."""

from __future__ import annotations

import msgspec

from cockpit.core.text import plain
from engines.basics.errors import UserError
from engines.contract.rundir import RunDirectory

LONGEST_LABEL = 80
LONGEST_NOTES = 1000


def describe(run: RunDirectory, *, label: str | None = None, notes: str | None = None) -> None:
    """Give a run, live or not, a label or notes; None leaves what is there.

    Escape sequences and invisible marks are taken out. Raises `UserError` for what is too long, `DataError` for a run
    without a readable record, OSError where it cannot be written.
    """
    changes: dict[str, str] = {}
    for name, text, longest in (("label", label, LONGEST_LABEL), ("notes", notes, LONGEST_NOTES)):
        if text is None:
            continue
        changes[name] = plain(text).strip()
        if (length := len(changes[name])) > longest:
            raise UserError(f"The {name} of {run.path.name} has {length} characters; at most {longest} are allowed.")
    run.write_info(msgspec.structs.replace(run.info, **changes))
