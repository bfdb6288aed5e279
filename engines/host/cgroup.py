"""What the control groups of this process allow and use: of versions 1 and 2, at every level up to the root."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
UNLIMITED = 1 << 60
"""From here on version 1 says that there is no limit."""


@dataclass(frozen=True)
class CpuLimit:
    cores: float
    used_seconds: float
    """Of processor time by the group with the limit."""


def memory_limit(root: Path = CGROUP, own: Path = OWN) -> tuple[int, int] | None:
    """Bytes used and allowed, of the level with the smallest limit; None without a limit. Page cache counts as free."""
    found = []
    for group in control_groups("memory", root, own):
        for limit_in, used_in, cache in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            limit, used = number(group / limit_in), number(group / used_in)
            if limit is not None and used is not None and 0 < limit < UNLIMITED:
                found.append((limit, max(0, used - statistic(group / "memory.stat", cache))))
    if not found:
        return None
    limit, used = min(found)
    return used, limit


def cpu_limit(root: Path = CGROUP, own: Path = OWN) -> CpuLimit | None:
    """The smallest limit on processor time, and what was used under it; None without a limit."""
    found = []
    for group in control_groups("cpu", root, own):
        with contextlib.suppress(OSError, ValueError):
            quota, period = (int(part) for part in (group / "cpu.max").read_text().split())
            found.append(CpuLimit(quota / period, statistic(group / "cpu.stat", "usage_usec") / 1e6))
    for group in control_groups("cpu", root, own):
        quota_us, period_us = number(group / "cpu.cfs_quota_us"), number(group / "cpu.cfs_period_us")
        if quota_us is not None and quota_us > 0 and period_us:
            used = number(_beside(group, root) / "cpuacct.usage") or 0
            found.append(CpuLimit(quota_us / period_us, used / 1e9))
    return min(found, key=lambda limit: limit.cores, default=None)


def _beside(group: Path, root: Path) -> Path:
    """The same group of the controller that counts processor time, which may be mounted by itself."""
    if (group / "cpuacct.usage").is_file():
        return group
    return root.joinpath("cpuacct", *group.relative_to(root).parts[1:])


def control_groups(controller: str, root: Path = CGROUP, own: Path = OWN) -> Iterator[Path]:
    """Folders of the groups that this process is in, as `own` lists them, each before its parents up to the mount.

    A container may see its own group as the mount, and its path as that on the host: missing folders are passed over.
    """
    places = [(root, "/")]
    with contextlib.suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = [*line.split(":", 2), "", ""][:3]
            if not controllers:
                places += [(mount, path) for mount in (root, root / "unified")]
            elif controller in controllers.split(","):
                places += [(root / mount, path) for mount in (controllers, controller)]
    seen: set[Path] = set()
    for mount, path in places:
        folder = mount.joinpath(*(part for part in Path(path).parts[1:] if part != ".."))
        for group in (folder, *folder.parents):
            if group.is_dir() and group.resolve() not in seen:
                seen.add(group.resolve())
                yield group
            if group == mount:
                break


def number(file: Path) -> int | None:
    """The number in a one-line file, None for `max`, a missing or another file."""
    with contextlib.suppress(OSError, ValueError):
        return int(file.read_text())
    return None


def statistic(file: Path, key: str) -> int:
    """The number after `key` in a file of `key number` lines, 0 where absent."""
    with contextlib.suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == key:
                return int(value)
    return 0


def process_limit(root: Path = CGROUP, own: Path = OWN) -> tuple[int, int] | None:
    """Processes and threads that run and that may run, of the level with the least left; None without a limit."""
    found = []
    for group in control_groups("pids", root, own):
        limit, used = number(group / "pids.max"), number(group / "pids.current")
        if limit is not None and used is not None:
            found.append((limit - used, used, limit))
    return min(found)[1:] if found else None
