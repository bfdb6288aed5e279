"""The line above the list of runs: how many there are in which state, and what they have cost lately."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cockpit.core.runs.summary import RunSummary
from cockpit.core.states import Shown
from cockpit.core.times import first_of_month, midnight
from cockpit.widgets.heading import heading
from cockpit.widgets.steady import Steady
from engines.basics.amounts import money
from engines.runs import spending

RUNNING: frozenset[Shown] = frozenset({"running", "stopping"})
COUNTED: tuple[tuple[str, frozenset[Shown]], ...] = (
    ("running", RUNNING),
    ("starting", frozenset({"starting"})),
    ("queued", frozenset({"queued"})),
    ("paused", frozenset({"paused"})),
    ("done", frozenset({"finished", "early-stopped"})),
    ("stopped", frozenset({"stopped", "out-of-budget"})),
    ("failed", frozenset({"failed", "lost", "broken"})),
    ("stale", frozenset({"stale"})),
    ("reading", frozenset({"reading"})),
)


class RunsTitle(Steady):
    def __init__(self) -> None:
        super().__init__(id="title", markup=False)
        self._states: Counter[Shown] = Counter()
        self._tasks: Counter[Shown] = Counter()
        self._priced: list[spending.Span] = []
        """What has cost money this month."""
        self._has_price = False

    def take(self, rows: Sequence[RunSummary], now: float) -> None:
        """Count all runs again."""
        self._states = Counter(row.state for row in rows if not row.is_task)
        self._tasks = Counter(row.state for row in rows if row.is_task)
        spans = [span for row in rows for span in row.spans if span.usd_per_hour]
        month = first_of_month(now)
        self._priced = [span for span in spans if span.ended is None or span.ended > month]
        self._has_price = bool(spans)

    def show(self, now: float, *, reading: bool, hosts: Sequence[str] = ()) -> None:
        """As much as fits: first today's money goes, then the tasks, then this month's money.

        `hosts`: what is wrong with other machines, which always stays.
        """
        trainings, tasks, none = self._counts(), self._task_count(), "reading …" if reading else "none"
        today, month = self._money(now) if self._has_price else ("", "")
        for counted, spent in (
            ([*trainings, *tasks], today + month),
            ([*trainings, *tasks], month),
            (trainings, month),
            (trainings, ""),
        ):
            words = " · ".join([" · ".join(counted) or none, *hosts])
            title = heading("Runs", words) + (f"   {spent.removeprefix(' · ')}" if spent else "")
            if title.cell_length < self.screen.size.width - 1:
                break
        self.update(title, layout=False)

    def _counts(self) -> list[str]:
        counts = [(name, sum(self._states[state] for state in states)) for name, states in COUNTED]
        return [f"{number:,} {name}" for name, number in counts if number]

    def _task_count(self) -> list[str]:
        if not (tasks := self._tasks.total()):
            return []
        running = sum(self._tasks[state] for state in RUNNING)
        return [f"{tasks:,} task{'' if tasks == 1 else 's'}" + (f" ({running:,} running)" if running else "")]

    def _money(self, now: float) -> tuple[str, str]:
        """What was spent today and this month, in words."""
        today, month = (
            money(spending.usd_since(self._priced, moment, now)) for moment in (midnight(now), first_of_month(now))
        )
        return f"today {today}", f" · month {month}"
