"""MLflow's folder of a run: `metrics/` with a file a metric, whose lines are `milliseconds value step`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from cockpit.core.foreign.folder import FolderReader
from cockpit.core.foreign.places import seconds
from cockpit.core.foreign.reader import LineReader
from cockpit.core.foreign.rows import LARGEST_PLACE, NUMBER, Row

_LINE = re.compile(r"(\d{12,13}) (\S+)(?: (-?\d+))?(?: .*)?")
"""Newer versions write the data set behind the step; the oldest wrote no step."""


class MetricParser:
    """Parses one metric's file. A program that logs without steps writes 0 each time: these are numbered."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._zeros = 0

    def __call__(self, line: bytes) -> Row:
        """Raises ValueError."""
        moment, value, written = _parts(line)
        step = float(written or 0)
        if not abs(step) < LARGEST_PLACE:
            raise ValueError("a step is a count")
        self._zeros = self._zeros + 1 if step == 0 else 0
        return Row({self._name: float(value)}, step=step or self._zeros - 1.0, time=seconds(float(moment)))


def _parts(line: bytes) -> tuple[str, str, str | None]:
    """Milliseconds, value and step of a line, as written. Raises ValueError."""
    found = _LINE.fullmatch(line.decode("utf-8", "replace").strip())
    if found is None or not NUMBER.fullmatch(found[2]):
        raise ValueError("expected milliseconds, value and step")
    return found[1], found[2], found[3]


def holds_metric(head: bytes) -> bool:
    """Whether a file begins with lines of a metric."""
    lines = head[: head.rfind(b"\n") + 1].splitlines()[:3]
    try:
        return bool(lines and [_parts(line) for line in lines])
    except ValueError:
        return False


def metric_reader(path: Path, name: str = "") -> LineReader:
    return LineReader(path, lambda: MetricParser(name or path.name))


def is_run(folder: Path) -> bool:
    return (folder / "meta.yaml").is_file() and (folder / "metrics").is_dir()


def run_reader(run: Path) -> FolderReader:
    """All metrics of a run; one called `val/loss` lies in a folder `val`."""
    metrics = run / "metrics"
    return FolderReader(metrics, _files, lambda file: metric_reader(file, file.relative_to(metrics).as_posix()))


def _files(metrics: Path) -> Iterator[Path]:
    for folder, _, names in sorted(os.walk(metrics)):
        yield from (Path(folder, name) for name in sorted(names) if not name.startswith("."))
