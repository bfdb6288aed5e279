"""Questions to the torch side, with a line on the terminal while they are answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cockpit.cli.printing import StatusLine
from cockpit.core.engine_question import EngineQuestion

TRY = "try: "
"""How a line begins that shows the progress of a try."""


def ask_engine(module: str, arguments: Sequence[str], *, doing: str) -> Any:
    """What `python -P -m module` prints. Raises `UserError` with the sentences it wrote instead, and its exit code.

    `doing` is shown on a terminal while it works, which may take a minute, then how far a try is.
    """
    line = StatusLine()
    line.show(doing)
    try:
        return EngineQuestion(module, arguments).answer(lambda said: line.show(said) if said.startswith(TRY) else None)
    finally:
        line.clear()
