"""A part of the world drawn with characters: lines in braille dots, text, pixels.

Braille's dots are square, so a circle stays round. What lies outside is clipped; what cannot be drawn is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len

from cockpit.core import braille
from cockpit.core.braille import ACROSS, DOWN
from cockpit.core.scenes.cells import BLANK, Cell, Row
from cockpit.core.text import plain
from engines.contract.scenes import Box, Image, Line, Point, Text, View

Places = npt.NDArray[np.int64]
NOWHERE: Places = np.empty(0, dtype=np.int64)
_FARTHEST = 1e12
"""Coordinates beyond are as good as infinite: no picture needs them and their differences overflow."""


@dataclass(frozen=True)
class Frame:
    """Where the world lies on the canvas: the same scale both ways, what is in sight in the middle."""

    scale: float
    left: float
    top: float

    @classmethod
    def fit(cls, view: View, dots_wide: int, dots_high: int) -> Frame | None:
        """The largest scale at which all of `view` can be seen; None where it has no extent or no sane one."""
        (x0, y0), (x1, y1) = view.low, view.high
        if not all(abs(value) < _FARTHEST for value in (x0, y0, x1, y1)) or x1 <= x0 or y1 <= y0:
            return None
        scale = min((dots_wide - 1) / (x1 - x0), (dots_high - 1) / (y1 - y0))
        left = (dots_wide - 1) / 2 - scale * (x0 + x1) / 2
        top = (dots_high - 1) / 2 + scale * (y0 + y1) / 2
        return cls(scale, left, top) if math.isfinite(scale) and scale > 0 else None

    def dot(self, point: Point) -> Point:
        """The place of a point of the world, in dots from the upper left corner."""
        return self.left + self.scale * point[0], self.top - self.scale * point[1]


def draw(view: View, width: int, height: int) -> list[Row]:
    """`view` in `height` rows of `width` cells."""
    if width < 1 or height < 1:
        return []
    canvas = Canvas(width, height)
    if frame := Frame.fit(view, width * ACROSS, height * DOWN):
        for item in view.items:
            canvas.add(item, frame)
    return canvas.rows()


class Canvas:
    """`width` × `height` cells to draw on."""

    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = width, height
        self._dots = np.zeros((height * DOWN, width * ACROSS), dtype=np.bool_)
        self._kinds = np.full((height, width), "plain", dtype=np.object_)
        self._over: dict[tuple[int, int], Cell] = {}
        """Text and pixels, by row and column: whole characters that lie over the dots."""

    def rows(self) -> list[Row]:
        lines = zip(braille.characters(self._dots).tolist(), self._kinds.tolist(), strict=True)
        return [
            [self._over.get((y, x)) or ((chr(code), kind) if code else BLANK) for x, (code, kind) in enumerate(line)]
            for y, line in enumerate(zip(codes, kinds, strict=True) for codes, kinds in lines)
        ]

    def add(self, item: Line | Box | Text | Image, frame: Frame) -> None:
        match item:
            case Line(points, kind):
                self._line(points, kind, frame)
            case Box():
                self._box(item, frame)
            case Text(x, y, text, kind):
                self._text(frame.dot((x, y)), plain(text), kind)
            case Image():
                self._image(item, frame)

    def _line(self, points: list[Point], kind: str, frame: Frame) -> None:
        dots = [frame.dot(point) for point in points]
        for start, end in zip(dots, dots[1:] or dots, strict=False):
            x, y = _between(start, end, self._width * ACROSS, self._height * DOWN)
            self._dots[y, x] = True
            self._kinds[y // DOWN, x // ACROSS] = kind

    def _box(self, box: Box, frame: Frame) -> None:
        x0, y0, x1, y1 = box.x, box.y, box.x + box.width, box.y + box.height
        if not box.filled:
            self._line([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)], box.kind, frame)
            return
        rows = (
            max(1, min(math.ceil(abs(y1 - y0) * frame.scale), self._height * DOWN)) if abs(y1 - y0) < _FARTHEST else 1
        )
        for row in range(rows + 1):
            y = y0 + (y1 - y0) * row / rows
            self._line([(x0, y), (x1, y)], box.kind, frame)

    def _text(self, middle: Point, text: str, kind: str) -> None:
        if not all(abs(value) < _FARTHEST for value in middle):
            return
        row, column = int(middle[1] // DOWN), int(middle[0] // ACROSS) - cell_len(text) // 2
        for character in text:
            width = cell_len(character)
            if width == 1 and 0 <= row < self._height and 0 <= column < self._width:
                self._over[row, column] = (character, kind)
            column += width

    def _image(self, image: Image, frame: Frame) -> None:
        """Two pixels a cell, one above the other."""
        rows = len(image.pixels) // (3 * image.columns) if image.columns > 0 else 0
        left, top = frame.dot((image.x, image.y + image.height))
        right, bottom = frame.dot((image.x + image.width, image.y))
        sane = all(abs(value) < _FARTHEST for value in (left, top, right, bottom))
        if not (rows and sane and left < right and top < bottom):
            return

        def pixel(x: float, y: float) -> tuple[int, int, int]:
            """The pixel under a dot."""
            column = min(int((x - left) / (right - left) * image.columns), image.columns - 1)
            start = 3 * (min(int((y - top) / (bottom - top) * rows), rows - 1) * image.columns + column)
            red, green, blue = image.pixels[start : start + 3]
            return red, green, blue

        for row in range(max(0, math.floor(top / DOWN)), min(self._height, math.ceil(bottom / DOWN))):
            for column in range(max(0, math.floor(left / ACROSS)), min(self._width, math.ceil(right / ACROSS))):
                x = min(max(column * ACROSS + 1.0, left), right)
                upper, lower = (pixel(x, min(max(row * DOWN + y, top), bottom)) for y in (1.0, 3.0))
                self._over[row, column] = ("▀", "rgb:#{:02x}{:02x}{:02x}:#{:02x}{:02x}{:02x}".format(*upper, *lower))


def _between(start: Point, end: Point, wide: int, high: int) -> tuple[Places, Places]:
    """Columns and rows of the dots of a straight line that lie on a canvas of `wide` × `high` dots."""
    clipped = _clip(start, end, wide - 1, high - 1)
    if clipped is None:
        return NOWHERE, NOWHERE
    (x0, y0), (x1, y1) = clipped
    steps = max(1, math.ceil(max(abs(x1 - x0), abs(y1 - y0))))
    part = np.arange(steps + 1) / steps
    return np.rint(x0 + (x1 - x0) * part).astype(np.int64), np.rint(y0 + (y1 - y0) * part).astype(np.int64)


def _clip(start: Point, end: Point, right: float, bottom: float) -> tuple[Point, Point] | None:
    """The part of a line inside [0, right] × [0, bottom] (Liang and Barsky), None where there is none."""
    (x0, y0), (x1, y1) = start, end
    if not all(abs(value) < _FARTHEST for value in (x0, y0, x1, y1)):
        return None
    dx, dy = x1 - x0, y1 - y0
    enter, leave = 0.0, 1.0
    for towards, distance in ((-dx, x0), (dx, right - x0), (-dy, y0), (dy, bottom - y0)):
        if towards == 0:
            if distance < 0:
                return None
            continue
        at = distance / towards
        if towards < 0:
            enter = max(enter, at)
        else:
            leave = min(leave, at)
    if enter > leave:
        return None
    return (x0 + enter * dx, y0 + enter * dy), (x0 + leave * dx, y0 + leave * dy)
