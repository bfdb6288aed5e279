"""What a config's device means on this host."""

from __future__ import annotations

import pytest

from cockpit.core.launch.devices import Devices
from engines.host import facts as host


@pytest.mark.parametrize(
    ("device", "visible", "name"),
    [
        ("cpu", None, "cpu"),
        ("cuda", None, "cuda:0"),
        ("cuda:3", None, "cuda:3"),
        ("cuda:0", "2,3", "cuda:2"),
        ("cuda:1", "2, 3", "cuda:3"),
        ("cuda:2", "2,3", "cuda:2-hidden"),  # no such card: the engine says so, and the queue of cuda:2 is free
        ("cuda:0", "", "cuda:0-hidden"),
        ("cuda:0", "GPU-8f2c/1", "cuda:GPU-8f2c_1"),
        ("auto", "1", "cuda:1"),
        ("auto", "", "cpu"),
        ("auto", "-1", "cpu"),
        ("mps", None, "mps"),
        ("../../etc", None, "______etc"),
    ],
)
def test_the_card_that_torch_calls_by_another_number(device: str, visible: str | None, name: str) -> None:
    assert host.device_name(device, {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}) == name


@pytest.mark.parametrize(("gpu", "name"), [(True, "cuda:0"), (False, "cpu")])
def test_auto_is_the_first_gpu_there_is(monkeypatch: pytest.MonkeyPatch, gpu: bool, name: str) -> None:
    monkeypatch.setattr(host, "_has_gpu", lambda: gpu)
    assert host.device_name("auto", {}) == host.device_name("", {}) == name


def test_a_host_without_a_driver_has_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    import pynvml

    def fail() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)
    assert not host._has_gpu()
    assert host.gpu_model("cuda:0") == ""


def test_the_model_of_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    import pynvml

    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda number: number)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByUUID", lambda uuid: uuid)
    names = {0: b"NVIDIA A100", 1: "NVIDIA H200", "MIG-8f2c-1": "NVIDIA H200 MIG 1g.18gb"}
    monkeypatch.setattr(pynvml, "nvmlDeviceGetName", names.__getitem__)
    assert [host.gpu_model(device) for device in ("cuda:0", "cuda:1", "cpu", "mps", "cuda:MIG-8f2c-1")] == [
        "NVIDIA A100", "NVIDIA H200", "", "", "NVIDIA H200 MIG 1g.18gb",
    ]  # fmt: skip


def test_a_run_is_offered_the_cards_that_are_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = Devices(("A", "B", "C", "D"), {"cuda:3": "mine"})
    for visible, offered in ((None, 4), ("2,3", 2), ("", 0), ("0,1,2,3,4", 4)):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert devices.choices == ("auto", "cpu", *(f"cuda:{place}" for place in range(offered)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    assert devices.words("cuda:1") == "cuda:3 · D · busy with mine"
