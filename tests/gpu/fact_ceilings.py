"""What the device can do at most: the cost of a launch, bytes and products a second."""

from __future__ import annotations

import dataclasses
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from engines.host.machine import LocalMachine
from engines.training.precision import choices, choose_device, numeric_flags


def chosen(wanted: str) -> torch.device:
    """The device, as the engine chooses it."""
    return choose_device(wanted)


def seconds_of(what: Callable[[], Any], device: torch.device, times: int) -> float:
    """Of one call, from `times` of them after three, with one wait at the end."""
    for _ in range(3):
        what()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    began = time.perf_counter()
    for _ in range(times):
        what()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return (time.perf_counter() - began) / times


class Ceilings:
    """Facts of the device alone."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def versions(self) -> dict[str, Any]:
        return {
            "python": platform.python_version(), "torch": torch.__version__, "cuda": torch.version.cuda,
            "numpy": np.__version__, "device": str(self._device), "threads": torch.get_num_threads(),
            "flags": numeric_flags(),
        }  # fmt: skip

    def card(self) -> dict[str, Any]:
        """As torch and as the driver sees it."""
        properties = torch.cuda.get_device_properties(self._device)
        free, total = torch.cuda.mem_get_info(self._device)
        reading = LocalMachine().read(Path.cwd())
        return {
            "name": properties.name, "capability": torch.cuda.get_device_capability(self._device),
            "multiprocessors": properties.multi_processor_count, "free": free, "total": total,
            "driver": [dataclasses.asdict(gpu) for gpu in reading.gpus], "why none": reading.no_gpu,
            "precisions": choices(self._device),
        }  # fmt: skip

    def launch(self) -> dict[str, float]:
        """Of an operation on one number: by itself, and one of a hundred in a graph."""
        one = torch.zeros(1, device=self._device)
        found = {"eager": 1e6 * seconds_of(lambda: one.add_(1), self._device, 2000)}
        if self._device.type == "cuda":
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(100):
                    one.add_(1)
            found["in a graph"] = 1e6 * seconds_of(graph.replay, self._device, 100) / 100
        return found

    def copy(self) -> dict[str, float]:
        """Bytes read and written on the device, and from the host's pinned memory."""
        size = 1 << (30 if self._device.type == "cuda" else 26)
        source = torch.zeros(size, dtype=torch.uint8, device=self._device)
        target = torch.empty_like(source)
        found = {"device": 2 * size / seconds_of(lambda: target.copy_(source), self._device, 10) / 1e9}
        if self._device.type == "cuda":
            host = torch.zeros(1 << 28, dtype=torch.uint8, pin_memory=True)
            part = target[: 1 << 28]
            took = seconds_of(lambda: part.copy_(host, non_blocking=True), self._device, 5)
            found["from the host"] = (1 << 28) / took / 1e9
        return found

    def product(self) -> dict[str, float]:
        """Of square matrices of random numbers, in each precision."""
        size, found = (8192 if self._device.type == "cuda" else 512), {}
        kinds = {"fp32": (torch.float32, "highest")}
        if self._device.type == "cuda":
            kinds |= {
                "tf32": (torch.float32, "high"),
                "bf16": (torch.bfloat16, "highest"),
                "fp16": (torch.float16, "highest"),
            }
        before = torch.get_float32_matmul_precision()
        try:
            for name, (dtype, precision) in kinds.items():
                torch.set_float32_matmul_precision(precision)
                one = torch.randn(size, size, device=self._device).to(dtype)
                found[name] = 2 * size**3 / seconds_of(partial(torch.matmul, one, one), self._device, 10) / 1e12
        finally:
            torch.set_float32_matmul_precision(before)
        return found

    def attention(self) -> dict[str, Any]:
        """Which of torch's kernels take the windows of controls, masked and with dropout, and the µs of each.

        cuDNN is asked too, which the engine turns off.
        """
        backends = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION,
                    "cudnn": SDPBackend.CUDNN_ATTENTION, "math": SDPBackend.MATH}  # fmt: skip
        found: dict[str, Any] = {}
        for dtype in (torch.float32, torch.bfloat16) if self._device.type == "cuda" else (torch.float32,):
            query = torch.randn(64, 8, 30, 32, device=self._device, dtype=dtype)
            mask = torch.ones(64, 1, 1, 30, dtype=torch.bool, device=self._device)

            def attend(query: torch.Tensor = query, mask: torch.Tensor = mask) -> torch.Tensor:
                return F.scaled_dot_product_attention(query, query, query, attn_mask=mask, dropout_p=0.3)

            for name, backend in backends.items():
                try:
                    with sdpa_kernel(backend):
                        took: Any = 1e6 * seconds_of(attend, self._device, 50)
                except RuntimeError as error:
                    took = f"not taken: {str(error).splitlines()[0][:80]}"
                found[f"{name}, {str(dtype).removeprefix('torch.')}"] = took
        return found
