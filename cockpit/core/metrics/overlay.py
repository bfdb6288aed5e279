"""Several logs in one set of charts: a line a log, each metric a chart of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cockpit.core.plot.axis import first_time
from cockpit.core.plot.groups import RUN_ROLES, Role, in_families
from cockpit.core.series import MetricSource, Series

MOST = len(RUN_ROLES)
"""Logs in one chart: more can no longer be told apart."""


class Overlay:
    """A `MetricSource` of up to eight others. Its metrics are called by their place and name there: `2:train.loss`.

    Every log's time begins at its own first point, so that runs of different days lie over one another; steps and
    epochs are as logged. Superseded branches are left out. Charts are grouped by `by_metric`.
    """

    def __init__(self, sources: Sequence[MetricSource]) -> None:
        """Raises `ValueError` for more than `MOST` sources."""
        if len(sources) > MOST:
            raise ValueError(f"{len(sources)} logs in one chart, of which {MOST} can be told apart")
        self.title = f"{len(sources)} runs"
        self._sources = sources
        self._series: list[Mapping[str, Series]] = [{} for _ in sources]
        self._known = False

    @property
    def names(self) -> dict[str, str]:
        """What each line means."""
        return {role: source.title for role, source in zip(RUN_ROLES, self._sources, strict=False)}

    def poll(self) -> bool:
        """Read what is new in all of them; whether anything changed."""
        changed = [source.poll() or not self._known for source in self._sources]
        self._known = True
        for place, source in enumerate(self._sources):
            if changed[place]:
                self._series[place] = from_start(source.series())
        return any(changed)

    def series(self) -> Mapping[str, Series]:
        return over_one_another(dict(enumerate(self._series, 1)))

    def problems(self) -> Sequence[str]:
        return [f"{source.title}: {problem}" for source in self._sources for problem in source.problems()]


def over_one_another(logs: Mapping[int, Mapping[str, Series]]) -> dict[str, Series]:
    """Every metric of every log (`2:loss` of the one at place 2), in order of appearance in the first that has it."""
    metrics = dict.fromkeys(name for series in logs.values() for name in series)
    return {f"{place}:{name}": series[name] for name in metrics for place, series in logs.items() if name in series}


def by_metric(names: Iterable[str]) -> dict[str, list[tuple[Role, str]]]:
    """Charts by metric, each with the (role, name) of the logs that have it; families of metrics stand together."""
    charts: dict[str, list[tuple[Role, str]]] = {}
    for name in names:
        place, _, metric = name.partition(":")
        charts.setdefault(metric, []).append((RUN_ROLES[int(place) - 1], name))
    return in_families(charts)


def from_start(series: Mapping[str, Series]) -> dict[str, Series]:
    """Times as seconds since the log's first point; its arrays stay shared where it shares them."""
    start = first_time(series.values())
    moved = {id(one.time): one.time - start for one in series.values()}
    return {
        name: replace(one, time=moved[id(one.time)], old=(), before=_moved(one.before, start), start=start)
        for name, one in series.items()
    }


def _moved(before: Series | None, start: float) -> Series | None:
    return None if before is None else replace(before, time=before.time - start, start=start)
