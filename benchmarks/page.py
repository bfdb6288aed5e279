"""Every benchmark on one page, each in a process of its own: docs/performance.md."""

from __future__ import annotations

import ast
import importlib.metadata
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.measure import Measurement, machine
from cockpit.core.text import plain

HEAD = """# Performance

What `python -m benchmarks all --out docs/performance.md` wrote: both sides of each comparison, from one run, and what
is wanted of their ratio. The ratio says how many times better ours is; for overheads it is ours / theirs. Where nobody
else does the same, theirs is what was promised; where `—` is wanted, there is no bar. The command needs the extra
`benchmarks` and, on PATH, W&B LEET (`pip install 'wandb>=0.31'` into an environment of its own).

{machine}, torch {torch}
"""
COLUMNS = "| | ours | theirs | unit | ratio | wanted |\n|---|--:|--:|---|--:|---|"
WORDS = 200
"""Of a benchmark that failed, at most so many characters of what it said last."""


def write_page(names: Sequence[str], out: Path) -> None:
    """Write the page of these benchmarks, again after each; one that fails is named with its last words."""
    parts = [HEAD.format(machine=machine(), torch=importlib.metadata.version("torch"))]
    for name in names:
        print(name, file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "benchmarks", name, "--json"]
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        parts.append(f"## {name}\n\n{_about(name)}\n\n{_section(answer)}\n")
        out.write_text("\n".join(parts))


def _about(name: str) -> str:
    """What a benchmark measures, in its own words."""
    return ast.get_docstring(ast.parse(Path(__file__).with_name(f"{name}.py").read_text())) or ""


def _section(answer: subprocess.CompletedProcess[str]) -> str:
    """A table of the measurements that were printed, with notes; the reason where it failed or printed none."""
    lines = [line for line in answer.stdout.splitlines() if line.startswith("{")]
    if answer.returncode or not lines:
        return f"Not measured: {_last_words(answer)}"
    found = [msgspec.json.decode(line, type=Measurement) for line in lines]
    rows = [f"| {m.name} | {m.ours:.4g} | {m.theirs:.4g} | {m.unit} | {m.ratio:.3f} | {m.reach} |" for m in found]
    notes = [f"\n{m.name}: {m.note}" for m in found if m.note]
    return "\n".join([COLUMNS, *rows, *notes])


def _last_words(answer: subprocess.CompletedProcess[str]) -> str:
    if answer.returncode < 0:
        return f"ended by {signal.Signals(-answer.returncode).name}"
    return plain((answer.stderr.strip().splitlines() or ["it said nothing"])[-1])[:WORDS]
