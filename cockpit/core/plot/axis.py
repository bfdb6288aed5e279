"""The x axes a chart can have: steps, epochs, hours since the first point, or the time of day."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import numpy as np

from cockpit.core import times
from cockpit.core.plot.scale import height, label, multiples, nice_step
from cockpit.core.series import Floats, Series

AxisName = Literal["step", "epoch", "time", "clock"]
AXES: tuple[AxisName, ...] = ("step", "epoch", "time", "clock")
SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
HOUR, DAY = 3600, 86400
FEW_DECADES = 3
"""A logarithmic axis of fewer has ticks between its powers of ten."""


def coordinates(series: Series, axis: AxisName) -> Floats:
    """`(n,)`: where the points of `series` lie on the axis; of `clock`, and of `time` in most logs, Unix seconds."""
    if axis == "clock":
        return series.time + series.start if series.start else series.time
    return {"step": series.step, "epoch": series.epoch, "time": series.time}[axis]


def along(places: Floats, origin: float, log: bool) -> Floats:
    """`(n,)`: where places are drawn, `origin` being 0; as decimal logarithm NaN where there is none."""
    return height(places - origin if origin else places, log)


def _all(one: Series, axis: AxisName) -> list[Floats]:
    """Its places on the axis, those of what came before it, and on that of steps those of superseded branches."""
    before = [] if one.before is None else [coordinates(one.before, axis)]
    return [coordinates(one, axis), *before, *(steps for steps, _ in one.old if axis == "step")]


def first_time(series: Iterable[Series]) -> float:
    """The earliest time of all, where the axis of hours begins; 0 when none is known."""
    times = [time for one in series for time in _all(one, "time")]
    firsts = [float(np.nanmin(time)) for time in times if np.isfinite(time).any()]
    return min(firsts, default=0.0)


def extent(series: Iterable[Series], axis: AxisName, origin: float = 0.0, *, log: bool = False) -> tuple[float, float]:
    """Where the first and last of all points are drawn, and of what led to them; [0, 1] where there is none."""
    found = [x for one in series for x in _all(one, axis)]
    places = {id(x): x for x in found if len(x)}  # metrics of a log share arrays
    drawn = [along(x, origin, log) for x in places.values()]
    known = [x for x in drawn if np.isfinite(x).any()]
    lows, highs = [float(np.nanmin(x)) for x in known], [float(np.nanmax(x)) for x in known]
    return (min(lows), max(highs)) if known else (0.0, 1.0)


def x_ticks(axis: AxisName, start: float, end: float, count: int, *, log: bool = False) -> list[tuple[float, str]]:
    """About `count` labelled places in [start, end]; of a logarithmic axis these are logarithms."""
    if log:
        return _powers(axis, start, end)
    least = (end - start) / max(count, 1)
    if axis == "clock":
        return _moments(start, end, least)
    if axis == "time":
        step = next((float(s) for s in SECONDS if s >= least), DAY * nice_step(least / DAY, whole=True))
        return [(x, clock(x)) for x in multiples(start, end, step)]
    step = nice_step(least, whole=True)
    return [(x, label(x, step)) for x in multiples(start, end, step)]


def _powers(axis: AxisName, start: float, end: float) -> list[tuple[float, str]]:
    """Powers of ten, and 2 and 5 of them where these are few; of time the usual lengths."""
    if axis == "time":
        lengths = (*SECONDS, *(DAY * days for days in (2, 5, 10, 20, 50, 100)))
        return [(math.log10(x), clock(x)) for x in lengths if start <= math.log10(x) <= end]
    digits = (1, 2, 5) if end - start < FEW_DECADES else (1,)
    found = (digit * 10.0**power for power in range(math.floor(start), math.floor(end) + 1) for digit in digits)
    return [(math.log10(x), label(x, 0.0)) for x in found if start <= math.log10(x) <= end]


def _moments(start: float, end: float, least: float) -> list[tuple[float, str]]:
    """Round moments of the day, at least `least` seconds apart, each in summer time or not as it is then."""
    step = next((float(s) for s in SECONDS if s >= least), DAY * nice_step(least / DAY, whole=True))
    label_of = times.day if step >= DAY else times.clock if step < 60 else times.minute
    found: list[float] = []
    for moment in sorted(
        local - east
        for east in {times.seconds_east(start + part * (end - start) / 12) for part in range(13)}
        for local in multiples(start + east, end + east, step)
        if times.seconds_east(local - east) == east
    ):
        if not found or moment - found[-1] >= least:
            found.append(moment)
    return [(moment, label_of(moment)) for moment in found]


def clock(seconds: float) -> str:
    """Time since the first point: `45s`, `12m`, `1h20`, `2d 3h`."""
    whole = round(seconds)
    if whole < 0:
        return "-" + clock(-seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < HOUR:
        return f"{whole // 60}m" + (f"{whole % 60:02d}" if whole % 60 else "")
    if whole < DAY:
        return f"{whole // HOUR}h" + (f"{whole % HOUR // 60:02d}" if whole % HOUR // 60 else "")
    return f"{whole // DAY}d" + (f" {whole % DAY // HOUR}h" if whole % DAY // HOUR else "")


def place_name(axis: AxisName, x: float, *, log: bool = False) -> str:
    """A place on the axis in words: `step 412`, `epoch 3.25`, `1h20 in`, `2026-11-27 20:41:07 CET`."""
    if log:
        return place_name(axis, 10.0**x)
    if axis == "clock":
        return times.date_and_clock(x)
    if axis == "time":
        return f"{clock(x)} in"
    if axis == "epoch":
        return f"epoch {x:.2f}".rstrip("0").rstrip(".") if x != round(x) else f"epoch {x:.0f}"
    return f"step {x:,.0f}"


def roomy_end(start: float, end: float) -> float:
    """An end a little further on, so that the axis of a growing curve moves seldom: by 1 to 10 % of its length."""
    span = end - start
    if span <= 0:
        return start + 1.0
    grain = 10.0 ** (math.floor(math.log10(span)) - 1)
    return start + math.ceil(span / grain - 1e-9) * grain
