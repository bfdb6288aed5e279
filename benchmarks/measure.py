"""What a benchmark gives, and how it is printed."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from pathlib import Path

import msgspec

from cockpit.core.text_table import TextTable
from engines.contract.tables import Table


class Measurement(msgspec.Struct, kw_only=True):
    """Both sides of one comparison, from the same run."""

    name: str
    ours: float
    theirs: float
    unit: str
    ratio: float
    """How many times better ours is; for overheads ours / theirs."""
    reach: str
    """What is wanted of `ratio`, in words."""
    note: str = ""


def machine() -> str:
    """The machine in a line: processor, usable cores."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return f"{model}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}"


def as_table(measurements: Iterable[Measurement]) -> str:
    lines = [machine(), f"{'name':<32}{'ours':>12}{'theirs':>12}  {'unit':<12}{'ratio':>8}  reach"]
    for m in measurements:
        lines.append(f"{m.name:<32}{m.ours:>12.4g}{m.theirs:>12.4g}  {m.unit:<12}{m.ratio:>8.3f}  {m.reach}")
        if m.note:
            lines.append(f"    {m.note}")
    return "\n".join(lines)


def as_text(table: Table) -> str:
    """A table of a report, with the machine above it."""
    text = TextTable.of(table.columns, table.rows)
    lines = ["  ".join(line).rstrip() for line in (text.header, text.rule, *text.rows)]
    return "\n".join([machine(), *lines, table.note])


def as_json_lines(measurements: Iterable[Measurement]) -> str:
    return "\n".join(msgspec.json.encode(measurement).decode() for measurement in measurements)
