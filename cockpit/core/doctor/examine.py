"""Everything that `cockpit doctor` looks at, in the order in which it matters."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.core.doctor.container import container_findings, read_container
from cockpit.core.doctor.disk import disk_findings, read_disk
from cockpit.core.doctor.finding import Finding
from cockpit.core.doctor.gpu import gpu_findings, read_gpu
from cockpit.core.doctor.terminal import read_terminal, terminal_findings
from engines.runs.store import runs_folder


def examine() -> Iterator[Finding]:
    """Findings about this machine, each as soon as it is known: torch takes seconds to answer."""
    yield from disk_findings(read_disk(runs_folder()))
    yield from container_findings(read_container())
    yield from terminal_findings(read_terminal())
    yield from gpu_findings(read_gpu())
