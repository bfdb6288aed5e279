"""The part of the x axis in view: all of it, or a window that was zoomed and moved."""

from __future__ import annotations

from dataclasses import dataclass, replace

DEEPEST = 1e-6
"""The smallest window, as a share of the whole axis."""


@dataclass(frozen=True)
class Viewport:
    """`[start, end]` of the axis `[first, last]`. Every change gives a new one."""

    first: float
    last: float
    window: tuple[float, float] | None = None

    @property
    def start(self) -> float:
        return self.first if self.window is None else self.window[0]

    @property
    def end(self) -> float:
        return self.last if self.window is None else self.window[1]

    @property
    def whole(self) -> bool:
        return self.window is None

    def zoom(self, factor: float, at: float | None) -> Viewport:
        """Show `1 / factor` of what is shown, keeping `at` (the middle where None or out of view) in its place."""
        at = at if at is not None and self.start <= at <= self.end else (self.start + self.end) / 2
        share = (at - self.start) / (self.end - self.start)
        span = max((self.end - self.start) / factor, (self.last - self.first) * DEEPEST)
        return self._show(at - share * span, span)

    def pan(self, share: float) -> Viewport:
        """Move by a share of what is shown, right if positive, as far as there is something."""
        span = self.end - self.start
        return self._show(self.start + share * span, span)

    def grow(self, first: float, last: float) -> Viewport:
        """The axis has become `[first, last]`; a window at its end goes along with it."""
        if self.window is None or (first, last) == (self.first, self.last):
            return Viewport(first, last, self.window)
        moved = last - self.last if self.end >= self.last else 0.0
        return Viewport(first, last)._show(self.start + moved, self.end - self.start)

    def _show(self, start: float, span: float) -> Viewport:
        if span >= self.last - self.first:
            return replace(self, window=None)
        start = min(max(start, self.first), self.last - span)
        return replace(self, window=(start, start + span))
