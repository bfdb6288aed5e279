"""The volume that runs are written to: space, locks, clock, and whether it outlives the pod."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from cockpit.core.doctor.finding import Finding, fail, ok, warn
from cockpit.core.typed import program
from engines.basics.amounts import size
from engines.basics.lock import RunLock

LITTLE, SCARCE = 10 << 30, 1 << 30
LARGEST_SKEW = 2.0
POD_DISKS = ("overlay", "overlayfs", "aufs", "tmpfs")
"""File systems of a container's own disk: gone with the container."""
ANSWER_SECONDS = 30.0
_ASK = "import sys; from pathlib import Path; from engines.basics.lock import lock_holder; print(lock_holder(Path(sys.argv[1])))"  # noqa: E501
_OTHER = "a volume that outlives this machine, such as /workspace on a pod, as in export COCKPIT_RUNS=/workspace/runs"


@dataclass(frozen=True)
class DiskFacts:
    """Of the volume below the runs folder."""

    folder: Path
    place: Path
    """The nearest folder to it that exists."""
    kind: str
    """File system, as in the table of mounts."""
    free: int
    total: int
    error: str
    """Why nothing can be written there; empty where it can."""
    locks: bool
    """Whether another process sees a record lock."""
    lock_error: str
    skew: float
    """Seconds that the volume's clock is ahead of this machine's."""
    on_pod: bool


def read_disk(
    folder: Path, mounts: Path = Path("/proc/self/mounts"), environment: Mapping[str, str] = os.environ
) -> DiskFacts:
    """Look at the volume of `folder`; writes a small file there and removes it."""
    place = next(path for path in (folder, *folder.parents) if path.is_dir()).resolve()
    usage = psutil.disk_usage(str(place))
    error, locks, lock_error, skew = "", False, "", 0.0
    try:
        with tempfile.TemporaryDirectory(dir=place, prefix=".doctor-") as probe:
            file = Path(probe) / "clock"
            before = time.time()
            file.write_bytes(b"x")
            skew = file.stat().st_mtime - (before + time.time()) / 2
            locks, lock_error = _locks(Path(probe) / "lock")
    except OSError as problem:
        error = problem.strerror or str(problem)
    return DiskFacts(
        folder, place, file_system(place, mounts), usage.free, usage.total, error, locks, lock_error, skew,
        bool(environment.get("RUNPOD_POD_ID")),
    )  # fmt: skip


def _locks(path: Path) -> tuple[bool, str]:
    """Whether another process sees a lock at `path` that this one holds."""
    lock = RunLock(path)
    try:
        if not lock.acquire():
            return False, "a lock of a new file is refused"
        asked = subprocess.run(
            [sys.executable, "-c", _ASK, str(path)], capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False
        )
        seen = asked.stdout.strip() not in ("", "None")
        return seen and not lock.by_process, "" if seen else "another process does not see a lock"
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    finally:
        lock.release()


def file_system(place: Path, mounts: Path) -> str:
    """The kind of file system that `place` lies on; empty where the table of mounts does not say."""
    best, kind = -1, ""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        at = Path(parts[1].replace("\\040", " "))
        if place.is_relative_to(at) and len(at.parts) >= best:
            best, kind = len(at.parts), parts[2]
    return kind


def disk_findings(facts: DiskFacts) -> Iterator[Finding]:
    """Findings about the volume, most serious first."""
    where = f"the volume of {facts.folder}"
    if facts.error:
        yield fail("disk", f"Nothing can be written at {facts.place}: {facts.error}.", f"choose {_OTHER}")
        return
    words = f"{size(facts.free)} of {size(facts.total)} are free on {where}"
    if facts.free < SCARCE:
        yield fail("disk", f"{words}; a checkpoint may not fit.", f"{program()} prune")
    elif facts.free < LITTLE:
        yield warn("disk", f"{words}.", f"{program()} prune")
    else:
        yield ok("disk", f"{words}.")
    yield _outlives(facts)
    yield _lock_finding(facts, where)
    if abs(facts.skew) > LARGEST_SKEW:
        side = "ahead of" if facts.skew > 0 else "behind"
        text = f"The clock of {where} is {abs(facts.skew):.0f} s {side} this machine's; ages of files are wrong."
        yield warn("clock", text, "chronyc makestep  # or ask the provider of the volume")
    else:
        yield ok("clock", "The clocks of this machine and of the volume agree.")


def _outlives(facts: DiskFacts) -> Finding:
    if facts.on_pod and facts.kind in POD_DISKS:
        text = f"Runs are written to the pod's own disk ({facts.folder}) and are lost with the pod."
        return warn("volume", text, "export COCKPIT_RUNS=/workspace/runs")
    if facts.kind == "tmpfs":
        return warn("volume", f"{facts.folder} is in memory and is lost at a reboot.", "export COCKPIT_RUNS=~/runs")
    return ok("volume", f"Runs are written to {facts.folder}" + (f" ({facts.kind})." if facts.kind else "."))


def _lock_finding(facts: DiskFacts, where: str) -> Finding:
    if facts.locks:
        return ok("locks", f"Record locks work on {where}.")
    text = (
        f"Record locks do not work on {where}; the process id and its start time are used instead, which guard a run "
        "on this machine only: do not resume one run on two machines at once."
    )
    return warn("locks", text, "export COCKPIT_RUNS=~/runs  # a local disk, copied away afterwards")
