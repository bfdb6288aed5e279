import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from engines.host import cgroup, machine
from engines.host.machine import Gpu, LocalMachine, memory


class FakeNvml:
    """NVML as far as it is asked. `fails` names calls that raise: of every device, or `CALL 1` of the second alone."""

    class NVMLError(Exception):
        pass

    NVML_TEMPERATURE_GPU = 0

    def __init__(self, *fails: str, cards: int = 1) -> None:
        self._fails, self._cards = fails, cards

    def __getattr__(self, name: str) -> Any:
        answers = {
            "nvmlInit": None,
            "nvmlDeviceGetCount": self._cards,
            "nvmlDeviceGetName": b"NVIDIA H100 80GB HBM3",
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=41 * 10**9, total=80 * 10**9),
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=97),
            "nvmlDeviceGetPowerUsage": 604_000,
            "nvmlDeviceGetTemperature": 71,
            "nvmlDeviceGetMigMode": (0, 0),
        }

        def call(*arguments: object) -> object:
            if name in self._fails or " ".join(map(str, (name, *arguments[:1]))) in self._fails:
                raise self.NVMLError(name)
            return arguments[0] if name == "nvmlDeviceGetHandleByIndex" else answers[name]

        return call


@pytest.mark.behaviour("container-gpu-s-totals")
def test_without_a_driver_that_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml("nvmlInit"))
    reading = LocalMachine().read(tmp_path)
    assert (reading.gpus, reading.no_gpu) == ((), "no NVIDIA driver")


def test_a_device_is_read_as_a_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    reading = LocalMachine().read(tmp_path)
    assert reading.gpus == (Gpu("NVIDIA H100 80GB HBM3", 0.97, 41 * 10**9, 80 * 10**9, 604.0, 71),)
    assert reading.no_gpu == ""


@pytest.mark.behaviour("container-gpu-s-totals", "mute-card-hides-no-other")
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


class Divided(FakeNvml):
    """Card 1 of two is divided; of its three places for instances the second is empty."""

    def __init__(self) -> None:
        super().__init__("nvmlDeviceGetUtilizationRates mig", "nvmlDeviceGetPowerUsage mig", cards=2)

    def nvmlDeviceGetMigMode(self, card: int) -> tuple[int, int]:
        return (int(card == 1), 0)

    def nvmlDeviceGetMaxMigDeviceCount(self, card: int) -> int:
        return 3

    def nvmlDeviceGetMigDeviceHandleByIndex(self, card: int, place: int) -> str:
        if place == 1:
            raise self.NVMLError("not found")
        return "mig"

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> SimpleNamespace:
        return SimpleNamespace(used=10**9, total=(10 if handle == "mig" else 80) * 10**9)


def test_the_instances_of_a_divided_card_follow_the_cards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Divided())
    gpus = LocalMachine().read(tmp_path).gpus
    assert [(gpu.part_of, gpu.memory_total, gpu.utilisation) for gpu in gpus] == [
        (None, 80 * 10**9, 0.97), (None, 80 * 10**9, 0.97), (1, 10 * 10**9, None), (1, 10 * 10**9, None),
    ]  # fmt: skip


H100 = Gpu("NVIDIA H100 80GB HBM3", 0.97, 41 * 10**9, 80 * 10**9, 604.0, 71)


@pytest.mark.behaviour("mute-card-hides-no-other")
@pytest.mark.parametrize(
    ("fails", "second"),
    [
        ("nvmlDeviceGetHandleByIndex 1",
         Gpu("", None, None, None, None, None, "does not answer (nvmlDeviceGetHandleByIndex)")),
        ("nvmlDeviceGetMemoryInfo 1",
         replace(H100, memory_used=None, memory_total=None, problem="memory not reported (nvmlDeviceGetMemoryInfo)")),
        ("nvmlDeviceGetName 1", replace(H100, name="")),
        ("nvmlDeviceGetTemperature 1", replace(H100, celsius=None)),
    ],
)  # fmt: skip
def test_a_card_that_refuses_hides_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fails: str, second: Gpu
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(fails, cards=3))
    reading = LocalMachine().read(tmp_path)
    assert (reading.gpus, reading.no_gpu) == ((H100, second, H100), "")
    assert {"gpu0.memory_used", "gpu2.memory_used"} <= set(machine.measures(reading))


@pytest.mark.behaviour("mute-card-hides-no-other")
def test_a_driver_that_answers_again_is_believed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nvml = FakeNvml("nvmlDeviceGetCount")
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    local = LocalMachine()
    assert local.read(tmp_path).gpus == ()
    nvml._fails = ()
    reading = local.read(tmp_path)
    assert (reading.gpus, reading.no_gpu) == ((H100,), "")


@pytest.mark.behaviour("container-gpu-s-totals")
def test_in_a_container_its_own_limit_counts(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("700000\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 200000\n")
    assert memory(tmp_path, tmp_path / "none") == (500_000, 1_000_000)
    (tmp_path / "memory.max").write_text("max\n")
    assert memory(tmp_path, tmp_path / "none")[1] == psutil.virtual_memory().total
    assert memory(tmp_path / "none", tmp_path / "none")[1] == psutil.virtual_memory().total


def test_busy_cores_are_processor_seconds_a_second(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("400000 100000\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 5000000\n")
    assert machine._cpu_seconds(tmp_path, tmp_path / "none") == 5.0
    clock, used = iter([10.0, 12.0]), iter([100.0, 103.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(machine, "_cpu_seconds", lambda: next(used))
    local = LocalMachine()
    assert local.read(tmp_path).cores_busy == 0.0
    assert local.read(tmp_path).cores_busy == 1.5


def test_the_disk_is_that_of_the_nearest_folder_there_is(tmp_path: Path) -> None:
    assert LocalMachine().read(tmp_path / "not" / "yet").disk_total == psutil.disk_usage(str(tmp_path)).total


MEMORY_1 = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
MEMORY_2 = "memory.max", "memory.current", "inactive_file"


def write(folder: Path, **files: object) -> None:
    """Files named as `memory__max`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


def group(folder: Path, names: tuple[str, str, str], limit: object, used: int, cache: int) -> None:
    write(folder, **{names[0]: limit, names[1]: used, "memory.stat": f"anon 1\n{names[2]} {cache}"})


@pytest.mark.behaviour("smallest-cgroup-limit")
@pytest.mark.parametrize(
    ("own", "mount", "names"),
    [("0::/pod/job", "", MEMORY_2), ("9:cpu:/x\n4:memory:/pod/job", "memory", MEMORY_1),
     ("1:name=systemd:/s\n4:blkio,memory:/pod/job", "blkio,memory", MEMORY_1),
     ("0::/pod/job\n4:cpu:/else", "unified", MEMORY_2)],
)  # fmt: skip
def test_the_smallest_memory_limit_up_to_the_root_counts(
    tmp_path: Path, own: str, mount: str, names: tuple[str, str, str]
) -> None:
    """Also where it is the parent's; `max` and what version 1 says for no limit are none."""
    root = tmp_path / mount
    (tmp_path / "own").write_text(own + "\n")
    group(root / "pod/job", names, "max" if names is MEMORY_2 else 0x7FFFFFFFFFFFF000, 600, 100)
    assert cgroup.memory_limit(tmp_path, tmp_path / "own") is None
    group(root / "pod", names, 8000, 900, 200)
    assert cgroup.memory_limit(tmp_path, tmp_path / "own") == (700, 8000)
    group(root, names, 9000, 5000, 0)
    assert cgroup.memory_limit(tmp_path, tmp_path / "own") == (700, 8000)
    group(root / "pod/job", names, 1000, 600, 100)
    assert cgroup.memory_limit(tmp_path, tmp_path / "own") == (500, 1000)


@pytest.mark.behaviour("smallest-cgroup-limit")
def test_a_container_that_sees_its_group_as_the_mount_has_its_limit(tmp_path: Path) -> None:
    """Its path is that on the host, or outside of its namespace; odd lines say nothing."""
    group(tmp_path / "memory", MEMORY_1, 8 << 30, 1 << 30, 0)
    for own in ("4:memory:/docker/0123", "4:memory:/../../x", "odd\n4:memory:/", "4:memory"):
        (tmp_path / "own").write_text(own + "\n")
        assert cgroup.memory_limit(tmp_path, tmp_path / "own") == (1 << 30, 8 << 30)


@pytest.mark.behaviour("smallest-cgroup-limit")
def test_the_smallest_share_of_processors_counts_with_what_was_used_of_it(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/pod/job\n")
    write(tmp_path / "pod/job", cpu__max="max 100000", cpu__stat="usage_usec 1000000")
    assert cgroup.cpu_limit(tmp_path, own) is None
    write(tmp_path / "pod", cpu__max="150000 100000", cpu__stat="usage_usec 3000000")
    write(tmp_path, cpu__max="400000 100000", cpu__stat="usage_usec 9000000")
    assert cgroup.cpu_limit(tmp_path, own) == cgroup.CpuLimit(1.5, 3.0)


@pytest.mark.behaviour("smallest-cgroup-limit")
@pytest.mark.parametrize("counted", ["cpu,cpuacct", "cpuacct"])
def test_version_1_counts_processors_where_its_controllers_are(tmp_path: Path, counted: str) -> None:
    own, quota = tmp_path / "own", tmp_path / ("cpu,cpuacct" if "," in counted else "cpu")
    own.write_text(f"3:{'cpu,cpuacct' if ',' in counted else 'cpu'}:/pod\n")
    write(quota, cpu__cfs_quota_us=-1, cpu__cfs_period_us=100000)
    write(quota / "pod", cpu__cfs_quota_us=200000, cpu__cfs_period_us=100000)
    write(tmp_path / counted / "pod", cpuacct__usage=7_000_000_000)
    assert cgroup.cpu_limit(tmp_path, own) == cgroup.CpuLimit(2.0, 7.0)
