"""What is wrong with this machine, and how to fix it."""

from __future__ import annotations

import shutil
import sys
import textwrap
from argparse import Namespace
from dataclasses import asdict

from rich.cells import cell_len

from cockpit.cli import codes
from cockpit.cli.printing import StatusLine, show, show_json
from cockpit.core.doctor.examine import examine
from cockpit.core.doctor.finding import Finding
from cockpit.core.text import fit_left, plain

SIGNS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}
WIDTH = 12


def doctor(arguments: Namespace) -> int:
    """Exit code 1 where a training would fail or be lost."""
    line = StatusLine()
    found: list[Finding] = []
    for finding in examine():
        found.append(finding)
        line.clear()
        if not arguments.json:
            _show(finding)
        line.show("asking torch …")
    line.clear()
    if arguments.json:
        show_json([asdict(finding) for finding in found])
    return codes.FAILED if any(finding.level == "fail" for finding in found) else codes.DONE


def _show(finding: Finding) -> None:
    assert cell_len(finding.name) <= WIDTH
    first, indent = f"{SIGNS[finding.level]}  {fit_left(finding.name, WIDTH)}  ", " " * (WIDTH + 8)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    for line in textwrap.wrap(plain(finding.text), max(40, width - len(indent)), break_long_words=False):
        show(first + line)
        first = indent
    if finding.fix:  # on one line, to be copied
        show(f"{indent}→ {plain(finding.fix)}")
