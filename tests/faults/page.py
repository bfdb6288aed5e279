"""The page that the suite writes: a row per kind of fault."""

from __future__ import annotations

from collections.abc import Sequence

from tests.faults.suite import Result
from tests.faults.trainings import TRAININGS

HEAD = """\
# Reliability

The output of `python -m tests.faults --out docs/reliability.md`, never edited by hand. A fault is injected into a small
real training of each project, under its real supervisor; the run is resumed until it finishes. A fault counts as *lost*
if any of this fails:

- every checkpoint and epoch that was reported as saved is there and can be read, and no log lost a byte it had;
- the recorded state of the run is true, and `cockpit ls` shows it;
- after the resume every tensor of every checkpoint, the epoch table, the edits with their steps, the logged steps and
  the review arrays equal those of an undisturbed run, bit for bit.

Faults come from outside the product: a wrapper counts the calls by which a process changes the run directory (`open`
for writing, `write`, `fsync`, `rename`, `link`, `unlink`, `truncate`, `mkdir`) and strikes at the n-th. Small and
read-only disks are real ones, in a mount namespace of their own; where a write is *refused*, and for *disk full for n
writes*, the wrapper raises the error. The clock is patched in the process. Processes are forked with torch already
imported, except those *started as by the command*. A run is stopped after its last epoch unless the fault comes in its
report or export: those take longer than such a training.
"""


def page(results: Sequence[Result], planned: int) -> str:
    """The text with its tables, of what is done of so many planned faults."""
    reached = [one for one in results if one.injected]
    lost = [one for one in reached if one.lost]
    kinds = sorted({one.kind for one in results})
    lines = [
        HEAD,
        f"{len(results)} of {planned} planned faults were carried out.\n",
        f"**{len(reached)} faults injected, {len(reached) - len(lost)} survived, {len(lost)} lost.** "
        f"{len(results) - len(reached)} more ended before the call that was to be hit.\n",
        "| fault | projects | injected | survived | lost |",
        "|---|---|--:|--:|--:|",
    ]
    for kind in kinds:
        mine = [one for one in reached if one.kind == kind]
        if not mine:
            continue
        bad = sum(bool(one.lost) for one in mine)
        projects = ", ".join(name for name in TRAININGS if any(one.project == name for one in mine))
        lines.append(f"| {kind} | {projects} | {len(mine)} | {len(mine) - bad} | {bad} |")
    lines += ["", "| project | injected | survived | lost |", "|---|--:|--:|--:|"]
    for project in TRAININGS:
        mine = [one for one in reached if one.project == project]
        if mine:
            bad = sum(bool(one.lost) for one in mine)
            lines.append(f"| {project} | {len(mine)} | {len(mine) - bad} | {bad} |")
    for one in lost:
        lines += ["", f"Lost: {one.name}", "", *(f"- {sentence}" for sentence in one.lost)]
    return "\n".join(lines) + "\n"
