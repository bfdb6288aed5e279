import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from engines.host import machine
from engines.host.machine import Gpu, LocalMachine, memory


class FakeNvml:
    """NVML as far as it is asked, with one device; `fails` names calls that raise."""

    class NVMLError(Exception):
        pass

    NVML_TEMPERATURE_GPU = 0

    def __init__(self, *fails: str) -> None:
        self._fails = fails

    def __getattr__(self, name: str) -> Any:
        answers = {
            "nvmlInit": None,
            "nvmlDeviceGetCount": 1,
            "nvmlDeviceGetHandleByIndex": "handle",
            "nvmlDeviceGetName": b"NVIDIA H100 80GB HBM3",
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=41 * 10**9, total=80 * 10**9),
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=97),
            "nvmlDeviceGetPowerUsage": 604_000,
            "nvmlDeviceGetTemperature": 71,
        }

        def call(*arguments: object) -> object:
            if name in self._fails:
                raise self.NVMLError(name)
            return answers[name]

        return call


def test_without_a_driver_that_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml("nvmlInit"))
    reading = LocalMachine().read(tmp_path)
    assert (reading.gpus, reading.no_gpu) == ((), "no NVIDIA driver")


def test_a_device_is_read_as_a_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    reading = LocalMachine().read(tmp_path)
    assert reading.gpus == (Gpu("NVIDIA H100 80GB HBM3", 0.97, 41 * 10**9, 80 * 10**9, 604.0, 71),)
    assert reading.no_gpu == ""


def test_what_a_device_does_not_tell_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    silent = "nvmlDeviceGetPowerUsage", "nvmlDeviceGetTemperature", "nvmlDeviceGetUtilizationRates"
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(*silent))
    reading = LocalMachine().read(tmp_path)
    (gpu,) = reading.gpus
    assert (gpu.watts, gpu.celsius, gpu.utilisation) == (None, None, None)
    assert {name for name in machine.measures(reading) if name.startswith("gpu")} == {"gpu0.memory_used"}


def test_a_driver_that_falls_silent_ends_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml("nvmlDeviceGetCount"))
    reading = LocalMachine().read(tmp_path)
    assert reading.gpus == ()
    assert "no longer answers" in reading.no_gpu


def test_in_a_container_its_own_limit_counts(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("700000\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 200000\n")
    assert memory(tmp_path) == (500_000, 1_000_000)
    (tmp_path / "memory.max").write_text("max\n")
    assert memory(tmp_path)[1] == psutil.virtual_memory().total
    assert memory(tmp_path / "none")[1] == psutil.virtual_memory().total


def test_busy_cores_are_processor_seconds_a_second(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("400000 100000\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 5000000\n")
    assert machine._cpu_seconds(tmp_path) == 5.0
    clock, used = iter([10.0, 12.0]), iter([100.0, 103.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(machine, "_cpu_seconds", lambda: next(used))
    local = LocalMachine()
    assert local.read(tmp_path).cores_busy == 0.0
    assert local.read(tmp_path).cores_busy == 1.5


def test_the_disk_is_that_of_the_nearest_folder_there_is(tmp_path: Path) -> None:
    assert LocalMachine().read(tmp_path / "not" / "yet").disk_total == psutil.disk_usage(str(tmp_path)).total
