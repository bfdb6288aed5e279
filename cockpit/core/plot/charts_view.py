"""How the charts of a log are looked at: part of the axis, cursor, smoothing, scale, and which of them are shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cockpit.core.plot.axis import AXES, AxisName, along, coordinates, extent, first_time, roomy_end
from cockpit.core.plot.frame import View
from cockpit.core.plot.lines import Look
from cockpit.core.plot.scale import Ends
from cockpit.core.plot.viewport import Viewport
from cockpit.core.series import Mark, Series
from engines.basics.errors import UserError

SMOOTHING = (0.0, 0.6, 0.9, 0.98)
USUAL_SMOOTHING = 0.9
"""Of steps, until the user chooses another one."""
ZOOM = 1.5
PAN = 0.2
AS_LOGGED = Look()
EMPTY = Viewport(0.0, 1.0)
AUTOMATIC = "auto"


@dataclass(frozen=True)
class ChartsView:
    """The same for all charts of a log. Every change gives a new one."""

    look: Look = AS_LOGGED
    viewport: Viewport = EMPTY
    cursor: float | None = None
    words: tuple[str, ...] = ()
    """Of the filter: what a chart's name must have to be shown, in lower case."""
    enlarged: str | None = None
    """The name of the chart that is shown alone."""
    ranges: Mapping[str, Ends] = field(default_factory=dict)
    """Of charts by name, where the user has set them."""

    # -- the log ---------------------------------------------------------------------------------------------------

    def over(self, series: Sequence[Series]) -> ChartsView:
        """With all that the log tells by now on its axis; by another one where it tells no place on this."""
        view = self if _tells(series, self.look.axis) else self.next_axis(series)
        origin = first_time(series) if view.look.axis == "time" else 0.0
        look = replace(view.look, origin=origin)
        first, last = extent(series, look.axis, origin, log=look.log_x)
        return replace(view, look=look, viewport=view.viewport.grow(first, roomy_end(first, last)))

    def next_axis(self, series: Sequence[Series]) -> ChartsView:
        """By the next axis of which the log tells anything, all of it; take in its extent by `over`."""
        place = AXES.index(self.look.axis)
        told = (axis for axis in (*AXES[place + 1 :], *AXES[:place]) if _tells(series, axis))
        if (axis := next(told, None)) is None:
            return self
        return replace(self, look=replace(self.look, axis=axis), viewport=EMPTY, cursor=None)

    def place(self, mark: Mark) -> float:
        """Where a mark stands on the axis."""
        places = {"step": mark.step, "epoch": mark.epoch, "time": mark.time, "clock": mark.time}
        return float(along(np.array([places[self.look.axis]]), self.look.origin, self.look.log_x)[0])

    # -- the axis --------------------------------------------------------------------------------------------------

    @property
    def part(self) -> View:
        """What a chart draws of the axis."""
        return View(self.look.axis, self.viewport.start, self.viewport.end, self.cursor, log=self.look.log_x)

    def zoom(self, closer: bool, at: float | None) -> ChartsView:
        """Around `at`, or the middle where that is None."""
        return replace(self, viewport=self.viewport.zoom(ZOOM if closer else 1 / ZOOM, at))

    def pan(self, direction: int) -> ChartsView:
        """To the right (1) or left (-1), by a fifth of what is shown."""
        return replace(self, viewport=self.viewport.pan(direction * PAN))

    def point(self, x: float | None) -> ChartsView:
        """With the cursor there."""
        return replace(self, cursor=x)

    def reset(self) -> ChartsView:
        """The whole axis without a cursor."""
        return replace(self, viewport=replace(self.viewport, window=None), cursor=None)

    def other_axis_scale(self) -> ChartsView:
        """The axis logarithmic instead of linear, and back, all of it; take in its extent by `over`."""
        return replace(self, look=replace(self.look, far=not self.look.far), viewport=EMPTY, cursor=None)

    # -- the values ------------------------------------------------------------------------------------------------

    def next_smoothing(self) -> ChartsView:
        place = SMOOTHING.index(self.look.smoothing)
        return replace(self, look=replace(self.look, smoothing=SMOOTHING[(place + 1) % len(SMOOTHING)]))

    def other_scale(self) -> ChartsView:
        """Logarithmic instead of linear, and back."""
        return replace(self, look=replace(self.look, log=not self.look.log))

    def trim(self) -> ChartsView:
        """Rare values left out of the ranges, and back."""
        return replace(self, look=replace(self.look, trimmed=not self.look.trimmed))

    def limit(self, name: str, text: str) -> ChartsView:
        """With the range of a chart as typed: `0.2 0.9`, `0.2 auto`; empty: that of its values.

        Raises `UserError` for anything else.
        """
        others = {chart: ends for chart, ends in self.ranges.items() if chart != name}
        ends = parse_range(text)
        return replace(self, ranges=others if ends == (None, None) else {**others, name: ends})

    def range_text(self, name: str) -> str:
        """The range of a chart as it is typed; empty where it is that of its values."""
        ends = self.ranges.get(name)
        return " ".join(AUTOMATIC if end is None else f"{end:g}" for end in ends) if ends else ""

    # -- which charts ----------------------------------------------------------------------------------------------

    def filter(self, text: str) -> ChartsView:
        """Of charts whose names have all words of `text`, in either case."""
        return replace(self, words=tuple(text.lower().split()))

    def enlarge(self, name: str | None) -> ChartsView:
        """Of one chart alone; None: of all again."""
        return replace(self, enlarged=name)

    def matching(self, names: Iterable[str]) -> list[str]:
        """The charts that the filter leaves."""
        return [name for name in names if all(word in name.lower() for word in self.words)]

    def shown(self, names: Iterable[str]) -> list[str]:
        """The charts that filter and enlarging leave; one that is enlarged is shown whatever the filter says."""
        names = list(names)
        return [self.enlarged] if self.enlarged is not None and self.enlarged in names else self.matching(names)


def parse_range(text: str) -> Ends:
    """Two numbers, or `auto` for an end that the values give. Raises `UserError`."""
    words = text.split() or [AUTOMATIC, AUTOMATIC]
    try:
        low, high = (None if word.lower() == AUTOMATIC else float(word) for word in words)
    except ValueError:
        low = high = math.nan
    if any(end is not None and not math.isfinite(end) for end in (low, high)) or (
        low is not None and high is not None and low >= high
    ):
        raise UserError(f"{text!r} is not a range; expected lowest and highest value, as in 0.2 0.9 or 0.2 auto.")
    return low, high


def _tells(series: Iterable[Series], axis: AxisName) -> bool:
    """Whether the log says where any of its points lies on this axis."""
    return any(np.isfinite(coordinates(one, axis)).any() for one in series)
