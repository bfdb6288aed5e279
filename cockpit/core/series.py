"""Series of a run: every logged step followed without reading a byte twice, and reduction to what a screen can show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
WIDE = ("step", "time", "loss", "lr", "grad_norm")
"""What is kept of each step, NaN where a segment lacks the column."""
BLOCKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Steps:
    """One value a step, in step order: an immutable view `(n, columns)` of what has been read."""

    rows: Floats

    def column(self, name: str) -> Floats:
        column: Floats = self.rows[:, WIDE.index(name)]
        return column

    @property
    def newest(self) -> int:
        """Steps done; 0 before the first is logged."""
        return int(self.rows[-1, 0]) + 1 if len(self.rows) else 0

    def rate(self, recent: int = 50) -> float | None:
        """Steps a second over the last `recent` steps."""
        rows = self.rows[-recent:]
        seconds = float(rows[-1, 1] - rows[0, 1]) if len(rows) > 1 else 0.0
        return float(rows[-1, 0] - rows[0, 0]) / seconds if seconds > 0 else None


NO_STEPS = Steps(np.empty((0, len(WIDE))))


class StepFollower:
    """Reads the records appended to `metrics/steps` since the last call; attempts supersede as in `read_series`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._segment = 0
        self._offset = 0
        self._rows = NO_STEPS.rows
        self._count = 0

    @property
    def steps(self) -> Steps:
        return Steps(self._rows[: self._count])

    def poll(self) -> bool:
        """Read what is new and say whether anything changed. Raises OSError."""
        segments = sorted((int(file.stem), file) for file in self._folder.glob("*.f64") if file.stem.isdigit())
        changed = False
        if self._vanished(dict(segments)):
            self._segment, self._offset, self._count, changed = 0, 0, 0, True
        for number, file in segments:
            if number > self._segment:
                self._segment, self._offset = number, 0
            if number == self._segment:
                changed |= self._read(file)
        return changed

    def _vanished(self, segments: dict[int, Path]) -> bool:
        """Whether what was read is there no more, as when someone replaced the folder."""
        if not self._segment:
            return False
        file = segments.get(self._segment)
        return file is None or file.stat().st_size < self._offset

    def _read(self, file: Path) -> bool:
        try:
            names = json.loads(file.with_suffix(".json").read_text())
            width = 8 * len(names)
            size = file.stat().st_size
        except (ValueError, TypeError, FileNotFoundError):
            return False  # not written yet, or damaged: its records mean nothing without their names
        if not width or size - self._offset < width:
            return False
        with open(file, "rb") as stream:
            stream.seek(self._offset)
            data = stream.read((size - self._offset) // width * width)
        data = data[: len(data) // width * width]
        self._offset += len(data)
        self._take(names, np.frombuffer(data).reshape(-1, len(names)))
        return True

    def _take(self, names: Sequence[str], records: Floats) -> None:
        rows = np.full((len(records), len(WIDE)), np.nan)
        for place, name in enumerate(WIDE):
            if name in names:
                rows[:, place] = records[:, names.index(name)]
        rows = rows[np.isfinite(rows[:, 0])]
        if not len(rows):
            return
        # Backwards in time a record counts only while its step is below everything seen since.
        lowest = np.minimum.accumulate(rows[::-1, 0])[::-1]
        kept = int(np.searchsorted(self._rows[: self._count, 0], lowest[0]))
        rows = rows[rows[:, 0] < np.append(lowest[1:], np.inf)]
        total = kept + len(rows)
        if total > len(self._rows) or kept < self._count:  # never write into what a reader may hold
            grown = np.empty((max(1024, 2 * total), len(WIDE)))
            grown[:kept] = self._rows[:kept]
            self._rows = grown
        self._rows[kept:total] = rows
        self._count = total


@dataclass(frozen=True)
class Curve:
    """A series as `columns` pixel columns can show it: unbroken pieces of (x, y), and where values were not finite."""

    pieces: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]
    bad: tuple[float, ...]
    """x of values that are NaN or infinite, one a pixel column at most."""
    bad_count: int


def reduce_curve(x: Floats, y: Floats, columns: int, start: float, end: float) -> Curve:
    """Reduce `x, y: (n,)`, x ascending, to at most four points a pixel column of the range [start, end].

    First, lowest, highest and last of each column, in order, so that a one-step spike shows at every zoom. A value that
    is not finite breaks the line.
    """
    finite = np.isfinite(y)
    pixel = _pixels(x, columns, start, end)
    bad_pixels = np.unique(pixel[~finite])
    width = (end - start) / columns
    bad = tuple(float(start + (place + 0.5) * width) for place in bad_pixels)
    breaks = np.cumsum(~finite)[finite]
    x, y, pixel = x[finite], y[finite], pixel[finite]
    if not len(x):
        return Curve((), bad, int((~finite).sum()))
    starts = np.flatnonzero(np.diff(pixel, prepend=-1))
    picked, broken = _extremes(y, starts, breaks)
    pieces = tuple((tuple(x[piece].tolist()), tuple(y[piece].tolist())) for piece in np.split(picked, broken))
    return Curve(pieces, bad, int((~finite).sum()))


def _pixels(x: Floats, columns: int, start: float, end: float) -> npt.NDArray[np.int64]:
    span = (end - start) or 1.0
    return np.clip((x - start) / span * columns, 0, columns - 1).astype(np.int64)


def _extremes(
    y: Floats, starts: npt.NDArray[np.int64], breaks: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Indices into `y` to draw, and the places among them where a new piece begins (at pixel columns' edges)."""
    ends = np.append(starts[1:], len(y))
    chosen: list[npt.NDArray[np.int64]] = []
    places: list[int] = []
    length = 0
    for index, (first, stop) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        group = y[first:stop]
        points = np.unique([first, first + int(group.argmin()), first + int(group.argmax()), stop - 1])
        if index and breaks[first] != breaks[first - 1]:
            places.append(length)
        chosen.append(points)
        length += len(points)
    return np.concatenate(chosen), np.array(places, dtype=np.int64)


def sparkline(values: Sequence[float | None], width: int) -> str:
    """The whole series in at most `width` block characters, the highest filled; a gap where there is no value."""
    if width <= 0 or not values:
        return ""
    numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    groups = np.array_split(numbers, min(width, len(numbers)))
    tops = [group[np.isfinite(group)].max() if np.isfinite(group).any() else np.nan for group in groups]
    finite = [top for top in tops if np.isfinite(top)]
    if not finite:
        return " " * len(tops)
    low, span = min(finite), (max(finite) - min(finite)) or 1.0
    scale = len(BLOCKS) - 1
    return "".join(" " if np.isnan(top) else BLOCKS[round((top - low) / span * scale)] for top in tops)
