"""Metrics of runs as one chart of plain characters, for CI logs, issues and narrow links; with `--svg` as a picture."""

from __future__ import annotations

import shutil
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cockpit.cli import codes
from cockpit.cli.metrics import chosen
from cockpit.cli.printing import say, show
from cockpit.core.plot.axis import AxisName, coordinates, x_ticks
from cockpit.core.plot.reduce import points_of, reduce
from cockpit.core.series import Floats, Series
from cockpit.core.text import plain
from cockpit.core.times import zone
from engines.basics.errors import UserError
from engines.runs.store import find_training

WIDTHS, HEIGHTS = (40, 400), (8, 200)
"""Columns and lines that a chart may have."""
PICTURE = (110, 30)
"""Columns and lines of a picture in a bundle."""
LINES_SHARE = 2
"""Of the terminal's height a chart takes one part in so many."""
COLOURS = ("cyan", "orange", "green", "magenta", "red", "blue", "gray")
DOTS_WIDE = 2
"""Dots of a braille character from left to right."""
MARKERS = "*+ox#%@"
"""With `--ascii`, of each curve in turn."""


def plot(arguments: Namespace) -> int:
    """Print one chart of metrics, of one run or several. Raises `UserError`."""
    runs = [find_training(name) for name in (arguments.run, *arguments.with_)]
    curves: dict[str, Series] = {}
    for run in runs:
        for name, series in chosen(run, arguments.metrics).items():
            curves[f"{run.info.id.rsplit('-', 1)[-1]} {name}" if len(runs) > 1 else name] = series
    drawn = _lines(curves, arguments.x)
    if not drawn:
        raise UserError(f"{' and '.join(arguments.metrics)}: no finite values, so there is nothing to draw.")
    title = ", ".join(run.info.label or run.info.id for run in runs)
    coloured = arguments.svg is not None or (sys.stdout.isatty() and not arguments.ascii)
    text = _chart(drawn, arguments.x, _size(arguments), title, colours=coloured, ascii_only=arguments.ascii)
    if arguments.svg is None:
        for line in text.splitlines():
            show(line.rstrip())
    else:
        _write_svg(Path(arguments.svg), text, title)
        say(f"wrote {arguments.svg}")
    return codes.DONE


def _size(arguments: Namespace) -> tuple[int, int]:
    """Columns and lines: as given, else the terminal's width and half its height. Raises `UserError`."""
    terminal = shutil.get_terminal_size((100, 48))
    width = arguments.width or min(max(terminal.columns, WIDTHS[0]), WIDTHS[1])
    height = arguments.height or min(max(terminal.lines // LINES_SHARE, HEIGHTS[0]), HEIGHTS[1])
    for name, value, (least, most) in (("--width", width, WIDTHS), ("--height", height, HEIGHTS)):
        if not least <= value <= most:
            raise UserError(f"{name} {value}: expected {least} to {most}.")
    return width, height


def _lines(curves: Mapping[str, Series], axis: AxisName) -> dict[str, tuple[Floats, Floats]]:
    """What of each curve can be drawn: finite values in order, on an axis of time from the curve's own beginning."""
    lines = {}
    for name, series in curves.items():
        at = coordinates(series, axis)
        there = np.isfinite(at)
        at, value = at[there], series.value[there]
        points = points_of(at - at[0] if axis == "time" and len(at) else at, value)
        if len(points.x):
            lines[name] = (points.x, points.y)
    return lines


def _chart(
    lines: Mapping[str, tuple[Floats, Floats]], axis: AxisName, size: tuple[int, int], title: str, *,
    colours: bool, ascii_only: bool,
) -> str:  # fmt: skip
    """The picture as plotext draws it; a curve of more points than columns as the lowest and highest of each."""
    import plotext

    start = min(float(x[0]) for x, _ in lines.values())
    end = max(float(x[-1]) for x, _ in lines.values())
    plotext.clear_figure()
    plotext.plotsize(*size)
    plotext.theme("clear")
    plotext.title(plain(title))
    names = {"time": "time since the first value", "clock": f"time ({zone(end)})"}
    plotext.xlabel(names.get(axis, axis))
    for place, (name, (x, y)) in enumerate(lines.items()):
        marker = MARKERS[place % len(MARKERS)] if ascii_only else "braille"
        colour = COLOURS[place % len(COLOURS)] if colours else None
        xs, ys = _reduced(x, y, DOTS_WIDE * size[0], start, end)
        draw = plotext.plot if len(xs) > 1 else plotext.scatter
        draw(xs, ys, label=plain(name), marker=marker, color=colour)
    ticks = x_ticks(axis, start, end, size[0] // 16)
    plotext.xticks([at for at, _ in ticks], [words for _, words in ticks])
    picture: str = plotext.build()
    return _ascii(plotext.uncolorize(picture)) if ascii_only else picture if colours else plotext.uncolorize(picture)


def _reduced(x: Floats, y: Floats, columns: int, start: float, end: float) -> tuple[list[float], list[float]]:
    if len(x) <= columns or end <= start:
        return x.tolist(), y.tolist()
    kept = reduce(points_of(x, y), columns, start, end)
    at = start + (kept.place + 0.5) * (end - start) / columns
    return np.repeat(at, 2).tolist(), np.stack([kept.low, kept.high], axis=1).ravel().tolist()


def _ascii(picture: str) -> str:
    """The frame in plain characters too."""
    return picture.translate(str.maketrans("┌┐└┘│─┤├┬┴┼", "++++|-+++++"))


def _write_svg(file: Path, text: str, title: str) -> None:
    """The chart as the picture of a terminal. Raises `UserError` where it cannot be written."""
    try:
        file.write_text(_svg(text, title), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file} cannot be written ({error.strerror}); choose another file.", exit_code=1) from None


def svg_of(curves: Mapping[str, Series], title: str) -> str:
    """A chart over steps as a picture; empty where nothing can be drawn."""
    drawn = _lines(curves, "step")
    return _svg(_chart(drawn, "step", PICTURE, title, colours=True, ascii_only=False), title) if drawn else ""


def _svg(text: str, title: str) -> str:
    import io

    from rich.console import Console
    from rich.text import Text

    picture = Text.from_ansi(text)
    width = max((len(line) for line in picture.plain.splitlines()), default=1)
    console = Console(record=True, width=width, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    console.print(picture, no_wrap=True, crop=False)
    return console.export_svg(title=plain(title))
