"""Limits of the container or the shell: memory, cores, processes, open files, shared memory."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from cockpit.core.doctor.finding import Finding, ok, warn
from engines.basics.amounts import size
from engines.host.cgroup import CGROUP, OWN, cpu_limit, memory_limit, process_limit

LEAST_MEMORY, LEAST_SHARED = 4 << 30, 1 << 30
LEAST_FILES, LEAST_PROCESSES = 4096, 256
GPU_PROCESSES = 128
"""Threads that an engine on a GPU has beside those of each core, about: driver, NCCL, autograd, compiler."""


@dataclass(frozen=True)
class ContainerFacts:
    """Bytes, cores and counts; None where nothing limits them."""

    memory_used: int
    memory_total: int
    machine_memory: int
    cores: float
    machine_cores: int
    processes: tuple[int, int] | None
    """That run now, and that may run: threads count."""
    shared_memory: int | None
    """Size of /dev/shm."""
    open_files: int
    core_bytes: int
    """Largest core dump; -1: no limit."""


def read_container(cgroup: Path = CGROUP, own: Path = OWN, shared: Path = Path("/dev/shm")) -> ContainerFacts:
    """The limits of this process, by the control groups of version 1 or 2 below `cgroup`."""
    host = psutil.virtual_memory()
    limit = memory_limit(cgroup, own)
    used, total = limit if limit and limit[1] < host.total else (host.total - host.available, host.total)
    machine_cores = len(os.sched_getaffinity(0))
    cpu = cpu_limit(cgroup, own)
    return ContainerFacts(
        memory_used=used, memory_total=total, machine_memory=host.total,
        cores=min(machine_cores, cpu.cores) if cpu else machine_cores, machine_cores=machine_cores,
        processes=process_limit(cgroup, own),
        shared_memory=psutil.disk_usage(str(shared)).total if shared.is_dir() else None,
        open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        core_bytes=resource.getrlimit(resource.RLIMIT_CORE)[0],
    )  # fmt: skip


def container_findings(facts: ContainerFacts) -> Iterator[Finding]:
    """A finding for each limit."""
    free = facts.memory_total - facts.memory_used
    whose = f" (of the container; the machine has {size(facts.machine_memory)})"
    words = f"{size(free)} of {size(facts.memory_total)} of memory are free"
    words += whose if facts.memory_total < facts.machine_memory else ""
    if free < LEAST_MEMORY:
        yield warn("memory", f"{words}; the kernel kills a training that needs more.", "ps aux --sort=-rss | head")
    else:
        yield ok("memory", f"{words}.")
    yield _cores(facts)
    yield _processes(facts)
    yield _shared(facts.shared_memory)
    yield from _shell(facts)


def _cores(facts: ContainerFacts) -> Finding:
    if facts.cores < 0.9 * facts.machine_cores:
        threads = max(1, int(facts.cores))
        text = (
            f"{facts.cores:g} of the {facts.machine_cores} cores that programs see may be used; more threads than that "
            "slow each other down."
        )
        return warn("cores", text, f"export OMP_NUM_THREADS={threads}")
    return ok("cores", f"{facts.cores:g} cores may be used.")


def _processes(facts: ContainerFacts) -> Finding:
    if facts.processes is None:
        return ok("processes", "The number of processes is not limited.")
    used, limit = facts.processes
    words = f"{used} of at most {limit} processes and threads are running (pids.max)"
    if limit - used < max(LEAST_PROCESSES, GPU_PROCESSES + 2 * facts.machine_cores):
        fix = "docker update --pids-limit 4096 CONTAINER  # on the host; on RunPod choose a larger pod"
        return warn("processes", f"{words}; an engine on a GPU starts more than a hundred.", fix)
    return ok("processes", f"{words}.")


def _shared(bytes_: int | None) -> Finding:
    text = "; ranks of one run exchange gradients through it."
    fix = "export NCCL_SHM_DISABLE=1  # or start the container with --shm-size=8g"
    if bytes_ is None:
        return warn("/dev/shm", f"There is no /dev/shm{text}", fix)
    if bytes_ < LEAST_SHARED:
        return warn("/dev/shm", f"/dev/shm holds {size(bytes_)}{text}", fix)
    return ok("/dev/shm", f"/dev/shm holds {size(bytes_)}.")


def _shell(facts: ContainerFacts) -> Iterator[Finding]:
    count = facts.open_files
    if 0 <= count < LEAST_FILES:
        text = f"A process may open {count} files; data in many files needs more."
        yield warn("open files", text, "ulimit -n 65536")
    else:
        yield ok("open files", "A process may open " + (f"{count} files." if count >= 0 else "any number of files."))
    if facts.core_bytes:
        text = "A crash writes a core dump, which is as large as the engine's memory."
        yield warn("core dumps", text, "ulimit -c 0")
    else:
        yield ok("core dumps", "A crash writes no core dump.")
