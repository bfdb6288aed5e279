"""The lines of one chart, made of its series: on an axis, smoothed, each with its look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cockpit.core.plot.axis import AxisName, along, coordinates
from cockpit.core.plot.groups import RUN_ROLES, Role
from cockpit.core.plot.reduce import Points, points_of
from cockpit.core.plot.scale import height
from cockpit.core.plot.smooth import Smoother
from cockpit.core.series import Floats, Series
from engines.contract.steps import logged

NOWHERE = np.empty(0)
Member = tuple[Role, Series]


@dataclass(frozen=True)
class Look:
    """How all charts are drawn."""

    axis: AxisName = "step"
    origin: float = 0.0
    """What is taken off every place: the first time on the axis of hours."""
    far: bool = False
    """Whether the axis is logarithmic, where it can be (`log_x`)."""
    smoothing: float = 0.0
    """Weight of the past; 0 smooths nothing. Values per epoch are never smoothed."""
    log: bool = False
    trimmed: bool = False
    """Whether rare values are left out of the range, and drawn at its edge."""

    @property
    def log_x(self) -> bool:
        """A moment has no logarithm."""
        return self.far and self.axis != "clock"


@dataclass(frozen=True, eq=False)
class Line:
    """`x, raw: (n,)`, x finite and ascending: what was logged. `points` are drawn: smoothed, on the scale.

    Of what cannot be drawn the places: `bad` (NaN, infinite) and `hidden` (not above 0, on a logarithmic scale). Where
    nothing was logged (`steps.ABSENT`) the line is broken, and no more.
    """

    name: str
    """What it is in its chart: its role, or `step` for every step behind epochs; empty where it lies behind."""
    style: str
    dash: str
    x: Floats
    raw: Floats
    points: Points
    bad: Floats
    hidden: Floats
    behind: bool
    """Whether it lies behind the others, without a value of its own: raw values, superseded branches."""
    raw_behind: bool = False
    """Whether it is what a smoothed line was made of: it is faint, and the range of the chart is not its."""
    limits: tuple[float | None, float | None] = (None, None)
    band: tuple[Floats, Floats, Floats] | None = None
    """x, lower and upper edge, `(m,)` each, as `points`: how far the runs spread of which this is the mean."""


LOOKS: dict[str, tuple[str, str]] = {
    "step": ("step", "thin"), "logged": ("train", "solid"), "train": ("train", "solid"),
    "validation": ("validation", "dashed"), "test": ("test", "dotted"), "score": ("score", "solid"),
    **{role: (role, dash) for role, dash in zip(RUN_ROLES, ("solid", "dashed", "dotted") * 3, strict=False)},
}  # fmt: skip
"""Style and dash by role, in the order of drawing. Never told apart by colour alone: runs have signs."""
FAINT = {"step": "old", "train": "train-faint", "validation": "validation-faint", "test": "old"}
"""The style of the raw values behind a smoothed line, by the style of that. Among runs they would hide the others."""


class ChartLines:
    """Makes the lines of one chart; of a series that has grown it smooths only what is new."""

    def __init__(self) -> None:
        self._on_axis: dict[str, tuple[Series, tuple[AxisName, float, bool], Placed]] = {}
        self._smoothers: dict[str, Smoother] = {}
        self._look = Look()
        self._asked: tuple[object, ...] = ()
        self._series: list[Series] = []
        self._lines: tuple[Line, ...] = ()

    def make(self, members: Sequence[Member], look: Look) -> tuple[Line, ...]:
        """Lines behind come first."""
        asked = (look, len(members))
        series = [one for _, one in members]
        if asked == self._asked and all(a is b for a, b in zip(series, self._series, strict=True)):
            return self._lines
        if self._look.smoothing != look.smoothing:
            self._smoothers.clear()
        self._asked, self._series, self._look = asked, series, look
        roles = {role for role, _ in members}
        made: list[tuple[str, Line]] = []
        for role, one in members:
            kind = "step" if role == "logged" and "train" in roles else role
            made += [(kind, line) for line in self._of_series(one, kind)]
        order = list(LOOKS)
        made.sort(key=lambda pair: (not pair[1].behind, order.index(pair[0])))
        self._lines = tuple(line for _, line in made)
        return self._lines

    def _of_series(self, one: Series, kind: str) -> list[Line]:
        look, (style, dash) = self._look, LOOKS[kind]
        lines = []
        if (before := one.before) is not None:
            x = self._places(before)
            lines.append(self._line("", "old", "thin", placed(*on_axis(x, before.value))))
        if look.axis == "step":  # a superseded branch knows no other place
            branches = ((along(step, look.origin, look.log_x), value) for step, value in one.old)
            lines += [self._line("", "old", "thin", placed(*on_axis(step, value))) for step, value in branches]
        on = self._placed(one)
        smooth = bool(look.smoothing) and not one.by_epoch
        if smooth and style in FAINT:
            lines.append(replace(self._line("", FAINT[style], "thin", on), raw_behind=True))
        line = self._line(kind, style, dash, on, smoother=one.name if smooth else "")
        band = None if one.band is None else self._band(one, one.band, smooth)
        return [*lines, replace(line, limits=one.limits, band=band)]

    def _band(self, one: Series, edges: tuple[Floats, Floats], smooth: bool) -> tuple[Floats, Floats, Floats]:
        """Its edges where both can be drawn, smoothed and scaled as the line between them."""
        look, made = self._look, []
        x = self._places(one)
        for name, edge in zip(("lower", "upper"), edges, strict=True):
            at, y = on_axis(x, edge)
            if smooth:
                y = self._smoothers.setdefault(f"{one.name} {name}", Smoother(look.smoothing)).smooth(y)
            made.append(height(y, look.log))
        there = np.isfinite(made[0]) & np.isfinite(made[1])
        return at[there], made[0][there], made[1][there]

    def _placed(self, one: Series) -> Placed:
        """What smoothing and scale do not change, found once."""
        known, place, on = self._on_axis.get(one.name, (None, None, None))
        asked = self._look.axis, self._look.origin, self._look.log_x
        if on is None or known is not one or place != asked:
            on = placed(*on_axis(self._places(one), one.value))
            self._on_axis[one.name] = one, asked, on
        return on

    def _places(self, one: Series) -> Floats:
        return along(coordinates(one, self._look.axis), self._look.origin, self._look.log_x)

    def _line(self, name: str, style: str, dash: str, on: Placed, *, smoother: str = "") -> Line:
        """Smoothed first, then brought to the scale; what lies behind is drawn as it was logged."""
        x, y, log = on.x, on.raw, self._look.log
        if smoother:
            y = self._smoothers.setdefault(smoother, Smoother(self._look.smoothing)).smooth(y)
        hidden = x[np.isfinite(on.raw) & (on.raw <= 0)] if log and not on.positive else NOWHERE
        masked = log or len(on.points.x) < len(x)
        points = points_of(x, height(y, log)) if masked else Points(x, y, on.points.gap)
        return Line(name, style, dash, x, on.raw, points, on.bad, hidden, behind=not name)


@dataclass(frozen=True, eq=False)
class Placed:
    """A series on an axis: `x, raw: (n,)`, its finite points, the places of what is `bad`; whether all is above 0."""

    x: Floats
    raw: Floats
    points: Points
    bad: Floats
    positive: bool


def placed(x: Floats, raw: Floats) -> Placed:
    points = points_of(x, raw)
    bad = x[~np.isfinite(raw) & logged(raw)] if len(points.x) < len(x) else NOWHERE
    return Placed(x, raw, points, bad, bool((raw > 0).all()))


def on_axis(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The points whose place is known, in the order of the axis (those at one place as they were logged)."""
    if not np.isfinite(x).all():
        known = np.isfinite(x)
        x, y = x[known], y[known]
    if (x[1:] < x[:-1]).any():
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
    return x, y


def nearest(line: Line, x: float) -> int:
    """Index of the point of `line` nearest to `x`, the later one of two; the line has points."""
    after = int(np.searchsorted(line.x, x, "right"))
    if after == 0 or after == len(line.x):
        return max(after - 1, 0)
    return after if line.x[after] - x < x - line.x[after - 1] else after - 1
