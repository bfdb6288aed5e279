"""What the machine does now: GPUs through NVML, processor and memory through psutil and the control group.

NVML sees the host's process numbers from inside a container, so only totals of a device are read, never processes.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import psutil

from engines.host.cgroup import CGROUP, OWN, cpu_limit, memory_limit

CPU_SECONDS = 0.5
"""The kernel counts in hundredths of a second: shares of less time than this are noise."""


@dataclass(frozen=True)
class Gpu:
    name: str
    utilisation: float | None
    """Between 0 and 1; absent for a part of a divided card."""
    memory_used: int | None
    memory_total: int | None
    """Bytes; absent for a card that shares the machine's memory."""
    watts: float | None
    celsius: int | None
    problem: str = ""
    """Why the card does not answer, or gives no memory; empty where it does."""
    part_of: int | None = None
    """Number of the card that this is an instance (MIG) of; None for a whole card."""


@dataclass(frozen=True)
class Reading:
    gpus: tuple[Gpu, ...]
    no_gpu: str
    """Why there is no GPU to show; empty when there is one."""
    cores_busy: float
    cores: float
    """That may be used at once: whole ones, or the share that a control group allows."""
    memory_used: int
    memory_total: int
    disk_free: int
    disk_total: int
    """Of the volume that runs are written to."""


def measures(reading: Reading) -> dict[str, float]:
    """The reading as it is recorded, by column: bytes, watts, degrees Celsius, cores; utilisation between 0 and 1."""
    columns: dict[str, float] = {
        "cores_busy": reading.cores_busy, "memory_used": reading.memory_used, "disk_free": reading.disk_free
    }  # fmt: skip
    for index, gpu in enumerate(reading.gpus):
        told = {
            "utilisation": gpu.utilisation,
            "memory_used": gpu.memory_used,
            "watts": gpu.watts,
            "celsius": gpu.celsius,
        }
        columns |= {f"gpu{index}.{name}": value for name, value in told.items() if value is not None}
    return columns


class Machine(Protocol):
    """Something that can be asked for a `Reading`; the real one is `LocalMachine`."""

    def read(self, folder: Path) -> Reading: ...


class LocalMachine:
    """This machine, or this container's share of it. Any thread may ask but that of a screen: NVML takes its time."""

    def __init__(self) -> None:
        self._nvml, self._no_gpu = open_nvml()
        self._cpu = (0.0, 0.0)
        self._busy = 0.0
        self._one_at_a_time = threading.Lock()

    def read(self, folder: Path) -> Reading:
        with self._one_at_a_time:
            used, total = memory()
            free, size = _disk(folder)
            limit = cpu_limit()
            cores = float(len(os.sched_getaffinity(0)))
            cores = cores if limit is None else min(cores, limit.cores)
            return Reading(self._gpus(), self._no_gpu, self._cores_busy(), cores, used, total, free, size)

    def _cores_busy(self) -> float:
        """Cores in use since the last call that was not too short ago to tell."""
        now, (then, used) = time.monotonic(), self._cpu
        if now - then >= CPU_SECONDS:
            self._cpu = now, _cpu_seconds()
            self._busy = max(0.0, self._cpu[1] - used) / (now - then) if then else 0.0
        return self._busy

    def _gpus(self) -> tuple[Gpu, ...]:
        if self._nvml is None:
            return ()
        try:
            count = self._nvml.nvmlDeviceGetCount()
        except self._nvml.NVMLError as error:
            self._no_gpu = f"the NVIDIA driver no longer answers ({error})"
            return ()
        self._no_gpu = ""
        cards = tuple(_read_gpu(self._nvml, index) for index in range(count))
        parts = tuple(part for index in range(count) for part in _read_instances(self._nvml, index))
        return cards + parts  # a card keeps its number


def open_nvml() -> tuple[Any, str]:
    """The NVML module ready for use, or None and the reason."""
    try:
        import pynvml
    except ImportError:
        return None, "nvidia-ml-py is not installed"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None, "no NVIDIA driver"
    return pynvml, ""


def _read_gpu(nvml: Any, index: int) -> Gpu:
    """A card by its number. One that is lost hides no other."""
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as error:
        return Gpu("", None, None, None, None, None, f"does not answer ({error})")
    return _read(nvml, handle)


def _read_instances(nvml: Any, index: int) -> Iterator[Gpu]:
    """The MIG instances of a card, if it is divided into some: of each its name and its memory."""
    with contextlib.suppress(nvml.NVMLError):
        card = nvml.nvmlDeviceGetHandleByIndex(index)
        current, _ = nvml.nvmlDeviceGetMigMode(card)
        for place in range(nvml.nvmlDeviceGetMaxMigDeviceCount(card) if current else 0):
            with contextlib.suppress(nvml.NVMLError):  # of this place there is none
                handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, place)
                yield replace(_read(nvml, handle), part_of=index)


def _read(nvml: Any, handle: Any) -> Gpu:
    """All that a card or an instance answers: each question may fail alone."""

    def asked(question: str, *more: Any) -> Any:
        with contextlib.suppress(nvml.NVMLError):
            return getattr(nvml, question)(handle, *more)

    problem, memory_info = "", None
    try:
        memory_info = nvml.nvmlDeviceGetMemoryInfo(handle)
    except nvml.NVMLError as error:
        problem = f"memory not reported ({error})"
    name, rates = asked("nvmlDeviceGetName"), asked("nvmlDeviceGetUtilizationRates")
    milliwatts = asked("nvmlDeviceGetPowerUsage")
    return Gpu(
        name.decode(errors="replace") if isinstance(name, bytes) else name or "",
        None if rates is None else rates.gpu / 100,
        memory_info and memory_info.used, memory_info and memory_info.total,
        None if milliwatts is None else milliwatts / 1000,
        asked("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU), problem,
    )  # fmt: skip


def memory(cgroup: Path = CGROUP, own: Path = OWN) -> tuple[int, int]:
    """Bytes used and usable: of the control group where it has a limit below the machine's, else of the machine."""
    host = psutil.virtual_memory()
    limit = memory_limit(cgroup, own)
    return limit if limit is not None and limit[1] < host.total else (host.total - host.available, host.total)


def _cpu_seconds(cgroup: Path = CGROUP, own: Path = OWN) -> float:
    """Processor seconds used so far: by the control group where it is limited, else by the machine."""
    if (limit := cpu_limit(cgroup, own)) is not None:
        return limit.used_seconds
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))


def _disk(folder: Path) -> tuple[int, int]:
    """Bytes free and in all on the volume of `folder` or its nearest parent that exists."""
    for place in (folder, *folder.parents):
        with contextlib.suppress(OSError):
            usage = psutil.disk_usage(str(place))
            return usage.free, usage.total
    return 0, 0
