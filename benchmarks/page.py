"""Every benchmark on one page, each in a process of its own: docs/performance.md."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Sequence

import msgspec

from benchmarks.measure import Measurement, machine

HEAD = """# Performance

What `python -m benchmarks all --out docs/performance.md` wrote: both sides of each comparison, from one run, and what
is wanted of their ratio. The ratio says how many times better ours is; for overheads it is ours / theirs.

{machine}, torch {torch}
"""
COLUMNS = "| | ours | theirs | unit | ratio | wanted |\n|---|--:|--:|---|--:|---|"


def page(names: Sequence[str]) -> str:
    """The page of these benchmarks; one that fails is named with its last words."""
    parts = [HEAD.format(machine=machine(), torch=importlib.metadata.version("torch"))]
    for name in names:
        print(name, file=sys.stderr, flush=True)
        answer = subprocess.run(
            [sys.executable, "-m", "benchmarks", name, "--json"], capture_output=True, text=True, check=False
        )
        parts.append(f"## {name}\n\n{_section(answer)}\n")
    return "\n".join(parts)


def _section(answer: subprocess.CompletedProcess[str]) -> str:
    if answer.returncode:
        words = (answer.stderr.strip().splitlines() or ["no word"])[-1]
        return f"Not measured: {words[:200]}"
    found = [msgspec.json.decode(line, type=Measurement) for line in answer.stdout.splitlines() if line.strip()]
    rows = [f"| {m.name} | {m.ours:.4g} | {m.theirs:.4g} | {m.unit} | {m.ratio:.3f} | {m.reach} |" for m in found]
    notes = [f"\n{m.name}: {m.note}" for m in found if m.note]
    return "\n".join([COLUMNS, *rows, *notes])
