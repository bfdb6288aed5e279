"""What differs between a run's config and the defaults, its parent or another run."""

from __future__ import annotations

from typing import Any

from cockpit.cli import codes
from cockpit.cli.printing import say, show_json, show_table
from cockpit.core.config.diff import ABSENT, KeyRow, words
from cockpit.core.config.run_config import Edited, differences, edited_settings, read_config
from engines.contract.rundir import RunDirectory
from engines.runs.state import RunReader


def show_differences(run: RunDirectory, against: str, *, json: bool) -> int:
    """Print a row a key that differs: the other value, the run's, and what it is now if it was edited live."""
    config = read_config(run)
    reader = RunReader(run)
    reader.poll()
    edited = edited_settings(config.tree, reader.history.edits_in_force)
    other, rows = differences(run, config, against)
    if json:
        show_json([_facts(row, edited.get(row.key)) for row in rows])
    elif not rows:
        say(f"the config of {run.path.name} does not differ from {other}")
    else:
        cells = [
            (row.key, *map(words, row.values), edited[row.key].words() if row.key in edited else "") for row in rows
        ]
        show_table(("key", other, "this run", ""), cells)
    return codes.DONE


def _facts(row: KeyRow, edit: Edited | None) -> dict[str, Any]:
    """A row for JSON: a side that has no such key is left out."""
    sides = {side: value for side, value in zip(("other", "run"), row.values, strict=True) if value is not ABSENT}
    return {"key": row.key, **sides, **({"now": edit.value, "since_step": edit.step} if edit else {})}
