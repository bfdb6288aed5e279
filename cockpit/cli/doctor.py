"""What is wrong with this machine, and how to mend it."""

from __future__ import annotations

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
    show(f"{SIGNS[finding.level]}  {fit_left(finding.name, WIDTH)}  {plain(finding.text)}")
    if finding.fix:
        show(f"      {' ' * WIDTH}  → {plain(finding.fix)}")
