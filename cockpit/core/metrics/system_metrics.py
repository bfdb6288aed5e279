"""The machine over time, as the run's supervisor recorded it, and how fast the training went: metrics for charts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from cockpit.core.metrics.steps import StepFollower, Steps
from cockpit.core.series import Floats, Series
from engines.basics import yaml12
from engines.basics.reading import read_text
from engines.contract.rundir import RunDirectory
from engines.contract.steps import ABSENT, DATA_WAIT, logged

GAP_SECONDS = 30.0
"""Readings further apart have a time between them when nothing ran; they come every five seconds."""
RATE_SECONDS = 5.0
PLACES = ("step", "attempt", "time", "epoch")
UNITS = {
    "utilisation": ("busy %", 100.0), "memory_used": ("memory GB", 1e-9), "watts": ("power W", 1.0),
    "celsius": ("temperature °C", 1.0), "cores_busy": ("CPU cores busy", 1.0),
    "engine_memory": ("engine memory GB", 1e-9), "disk_free": ("disk free GB", 1e-9),
}  # fmt: skip
"""Title with its unit, and what a recorded number is multiplied with for it."""
_GPU = re.compile(r"gpu(\d+)\.(.+)")


class SystemMetrics:
    """A `MetricSource` over `metrics/system`: places are times, since the supervisor knows no steps."""

    def __init__(self, run: RunDirectory, title: str = "System") -> None:
        self.title = title
        self._run = run
        self._readings = StepFollower(run.system, everything=True)
        self._steps = StepFollower(run.steps)
        self._batch_size: float | None = None
        self._problem = ""
        self._polled = False

    @property
    def missing(self) -> bool:
        """Whether no reading was found, as in runs of other programs and of older versions; not before a look."""
        return self._polled and self._readings.steps.table.size == 0

    def poll(self) -> bool:
        """Read what is new; whether anything changed."""
        before, self._problem, changed = self._problem, "", False
        try:
            changed = self._readings.poll()
            changed |= self._steps.poll()
        except OSError as error:
            self._problem = str(error)
        if changed and self._batch_size is None:
            self._batch_size = _batch_size(self._run)
        self._polled = True
        return changed or self._problem != before

    def problems(self) -> Sequence[str]:
        return [self._problem] if self._problem else []

    def series(self) -> Mapping[str, Series]:
        """GPUs first, then processor, memory and disk, then samples a second and the share of time spent on data."""
        readings = self._readings.steps
        names = [name for name in readings.names if name not in PLACES]
        made = [_recorded(readings, name) for name in sorted(names, key=lambda name: not _GPU.fullmatch(name))]
        made += _speed(self._steps.steps, self._batch_size)
        return {one.name: one for one in made if len(one.time)}


def _recorded(readings: Steps, name: str) -> Series:
    values = readings.column(name)
    there = logged(values)
    title, scale = _title(name)
    return _over_time(title, readings.column("step")[there], values[there] * scale, GAP_SECONDS)


def _title(name: str) -> tuple[str, float]:
    """What a chart calls a recorded column, and the factor to its unit; another program's column as it is."""
    gpu = _GPU.fullmatch(name)
    title, scale = UNITS.get(gpu[2] if gpu else name, (name, 1.0))
    return (f"GPU {gpu[1]} {title}" if gpu else title), scale


def _speed(steps: Steps, batch_size: float | None) -> list[Series]:
    """Samples a second (steps, where no batch size is known) and the share of the time in which steps waited for their
    batches, each over five seconds or, if that takes longer, one step."""
    step, time, wait = steps.column("step"), steps.column("time"), steps.column(DATA_WAIT)
    timed = np.isfinite(time)
    step, time, wait = step[timed], time[timed], wait[timed]
    kept = np.flatnonzero(np.diff(time // RATE_SECONDS, prepend=-1.0))
    waited = np.diff(np.cumsum(np.nan_to_num(wait))[kept])
    step, time = step[kept], time[kept]
    seconds = np.diff(time)
    usual = float(np.median(seconds)) if len(seconds) else 0.0
    gap = max(GAP_SECONDS, 4 * usual)
    going = seconds <= gap  # else it was stopped meanwhile
    ends = time[1:][going]
    per_second = np.diff(step)[going] / seconds[going] * (batch_size or 1.0)
    made = [_over_time("samples/s" if batch_size else "steps/s", ends, per_second, gap)]
    if np.isfinite(wait).any():
        made.append(_over_time("data wait %", ends, 100 * waited[going] / seconds[going], gap))
    return made


def _over_time(name: str, time: Floats, value: Floats, gap: float) -> Series:
    """A series by time alone, broken where nothing was recorded for longer than `gap` seconds."""
    breaks = np.flatnonzero(np.diff(time) > gap) + 1
    time = np.insert(time, breaks, time[breaks - 1])
    value = np.insert(value, breaks, ABSENT)
    unknown = np.full(len(time), np.nan)
    return Series(name, unknown, unknown, time, value, limits=_limits(name))


def _limits(name: str) -> tuple[float | None, float | None]:
    """Shares go from 0 to 100, amounts begin at 0; a temperature is drawn as it is."""
    if name.endswith("%"):
        return 0.0, 100.0
    return (None, None) if name.endswith("°C") or _is_other(name) else (0.0, None)


def _is_other(name: str) -> bool:
    """Whether it is no measure of ours."""
    return not name.endswith(("/s", *(title for title, _ in UNITS.values())))


def _batch_size(run: RunDirectory) -> float | None:
    """Samples a step, as the resolved config says."""
    try:
        tree, _ = yaml12.read(read_text(run.config))
        size = tree["training"]["batch_size"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return float(size) if isinstance(size, int) else None
