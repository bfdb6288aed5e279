"""Runs side by side, followed together: their metrics over one another, how they stand, and their configs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from cockpit.core.config.run_config import in_force, in_our_names, read_config
from cockpit.core.metrics.overlay import MOST, Overlay
from cockpit.core.metrics.run_metrics import RunMetrics
from cockpit.core.series import Series
from cockpit.core.states import Shown
from cockpit.core.text import plain, run_word
from engines.basics.errors import DataError, UserError
from engines.contract.rundir import RunDirectory
from engines.runs.state import RunReader

State = Shown | Literal["gone"]


@dataclass(frozen=True)
class RunFacts:
    """How one of the runs stands. `config` is None where it cannot be read; `problem` then says why."""

    id: str
    name: str
    """Its label, else its word; in a comparison no two have the same."""
    project: str
    state: State
    epochs: int = 0
    planned: int = 0
    best: tuple[int, float] | None = None
    """The epoch that the engine marked as best, and its score."""
    config: Mapping[str, Any] | None = None
    problem: str = ""


@dataclass(frozen=True)
class Comparison:
    """All that is compared, as it was at one moment; `series` has one mapping a run, in the order of `runs`."""

    runs: tuple[RunFacts, ...]
    series: tuple[Mapping[str, Series], ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Score first, then validation, then training, then the rest; of several projects only what they share."""
        names = dict.fromkeys(name for series in self.series for name in series)
        if self.several_projects:
            with_any = [series for series in self.series if series]
            names = {name: None for name in names if all(name in series for series in with_any)}
        order = ("score", "validation.", "train.")
        place = {
            name: next((n for n, start in enumerate(order) if name.startswith(start)), len(order)) for name in names
        }
        return tuple(sorted(names, key=lambda name: place[name]))

    @property
    def several_projects(self) -> bool:
        return len({run.project for run in self.runs if run.project}) > 1


class CompareSource(Overlay):
    """A `MetricSource` of up to eight runs, with what else is compared; runs that are hidden have no lines."""

    def __init__(self, runs: Sequence[RunDirectory]) -> None:
        """Raises `ValueError` for more than `overlay.MOST` runs."""
        self._readers = [_Reader(run) for run in runs]
        facts = told_apart([reader.facts for reader in self._readers])
        super().__init__([RunMetrics(reader.run, one.name) for reader, one in zip(self._readers, facts, strict=True)])
        self._hidden: frozenset[int] = frozenset()
        self._shown_hidden = self._hidden
        self.comparison = Comparison(facts, tuple({} for _ in runs))

    @property
    def hidden(self) -> frozenset[int]:
        """Places, from 0, of runs without lines. Replaced, never changed: the thread that polls reads it too."""
        return self._hidden

    def toggle(self, place: int) -> None:
        """Hide a run's lines, or show them again, from the next poll on."""
        self._hidden ^= {place}

    def poll(self) -> bool:
        """Read what is new in all runs; whether anything changed. Never raises for what their files hold."""
        stood = [reader.poll() for reader in self._readers]
        hidden, before = self._hidden, self._shown_hidden
        self._shown_hidden = hidden
        grown = super().poll()
        if grown or any(stood):
            facts = told_apart([reader.facts for reader in self._readers])
            self.comparison = Comparison(facts, tuple(dict(series) for series in self._series))
        return grown or any(stood) or hidden != before

    def series(self) -> Mapping[str, Series]:
        """The lines of the charts: of metrics that are compared, and of runs that are not hidden."""
        compared, hidden = set(self.comparison.metrics), self._shown_hidden
        return {
            name: one
            for name, one in super().series().items()
            if name.partition(":")[2] in compared and int(name.partition(":")[0]) - 1 not in hidden
        }


def require_comparable(runs: Sequence[RunDirectory]) -> None:
    """Raises `UserError` for the same run twice, and for more than can be told apart."""
    if not 2 <= len({run.path.resolve() for run in runs}) == len(runs) <= MOST:
        raise UserError(f"{len(runs)} runs were given; expected 2 to {MOST} different ones to compare.")


def compare(runs: Sequence[RunDirectory]) -> Comparison:
    """The runs as they are now. Raises `UserError` where they cannot be compared."""
    require_comparable(runs)
    source = CompareSource(runs)
    source.poll()
    return source.comparison


class _Reader:
    """How one run stands, read again and again."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self._events = RunReader(run)
        self._config: Mapping[str, Any] | None = None
        self._config_problem = ""
        self._config_time = -1
        self.facts = RunFacts(run.path.name, called(run), "", "reading")
        """Until the first poll by its small record alone: the rest may take a while to read."""

    def poll(self) -> bool:
        before, self.facts = self.facts, self._look()
        return self.facts != before

    def _look(self) -> RunFacts:
        known = self.facts
        if not self.run.path.is_dir():
            return _standing(known, "gone", "it was deleted")
        try:
            info, status = self.run.info, self._events.status()
        except (UserError, OSError) as error:
            return _standing(known, "broken", str(error))
        self._read_config()
        history = self._events.history
        best = history.to_beat
        return RunFacts(
            id=info.id, name=called(self.run), project=info.project, state=status.state,
            epochs=history.done, planned=history.planned,
            best=None if best is None or best.score is None else (best.epoch, best.score),
            config=None if self._config is None else in_force(self._config, history.edits_in_force),
            problem=self._config_problem,
        )  # fmt: skip

    def _read_config(self) -> None:
        """Only when it was written anew: a resume may change it."""
        try:
            changed = self.run.config.stat().st_mtime_ns
        except OSError:
            changed = 0
        if changed != self._config_time:
            self._config_time = changed
            try:
                self._config, self._config_problem = in_our_names(read_config(self.run).tree), ""
            except DataError as error:
                self._config, self._config_problem = None, str(error)


def called(run: RunDirectory) -> str:
    """A run's label, else its word."""
    try:
        info = run.info
    except UserError:
        return run_word(run.path.name)
    return plain(info.label) or run_word(info.id)


def told_apart(runs: Sequence[RunFacts]) -> tuple[RunFacts, ...]:
    """Runs of the same name by their words too, which come first: a long name is cut. If that is not enough, by id."""
    longer: tuple[Callable[[RunFacts], str], ...] = (
        lambda run: f"{run_word(run.id)} · {run.name}",
        lambda run: plain(run.id),
    )
    for name in longer:
        often = Counter(run.name for run in runs)
        runs = [replace(run, name=name(run)) if often[run.name] > 1 else run for run in runs]
    return tuple(runs)


def _standing(known: RunFacts, state: State, problem: str) -> RunFacts:
    """What was known stays, of a run that cannot be read any more."""
    return replace(known, state=state, problem=problem)
