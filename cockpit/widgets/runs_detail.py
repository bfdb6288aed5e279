"""The line below the list of runs: what is too long for the lines of the list."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from cockpit.core.run.alerts import sentence
from cockpit.core.runs.summary import RunSummary
from cockpit.core.text import plain
from cockpit.core.text_filter import TextFilter
from cockpit.widgets.steady import Steady


class RunsDetail(Steady):
    def __init__(self, key_of: Callable[[str], str]) -> None:
        """`key_of`: the key of an action, for what an alert advises."""
        super().__init__(id="detail", markup=False)
        self._key_of = key_of

    def show(self, row: RunSummary | None, chosen: TextFilter, *, is_baseline: bool, hint: str) -> None:
        """Of the run under the cursor; without one, or with a filter that is none, why. `hint`: how to move one that
        waits."""
        words = self._words_on(row, is_baseline, hint) if row else ""
        if chosen.problem:
            words = f"{chosen.problem}; showing all runs."
        elif row is None and chosen.active:
            words = f"No run matches {plain(chosen.text)}; escape shows all."
        self.update(Text(words), layout=False)

    def _words_on(self, row: RunSummary, is_baseline: bool, hint: str) -> str:
        """Of one that waits first its position, and the keys that change it."""
        if row.alert is not None:
            return f"! {sentence(row.alert, self._key_of)}"
        parts = ["baseline" * is_baseline, row.label, row.notes, row.title]
        parts = [row.detail, hint, *parts] if row.queued else [*parts, row.detail]
        return " · ".join(plain(part) for part in (*parts, row.id) if part)
