"""Which precision a run computes in, and the random state it computes with."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from engines.basics.errors import UserError
from engines.training.draws import Share


def choose_device(wanted: str) -> torch.device:
    """The device a config asks for; `auto` is the first GPU there is, else the CPU. Raises `UserError`.

    A GPU comes with its number and is the current one from then on, so that what is made for no particular GPU
    (pinned memory, random state) touches no other.
    """
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # cards are numbered as the driver tells them
    try:
        device = torch.empty(1, device=_first_there_is() if wanted == "auto" else wanted).device  # with its number
        if device.type == "cuda":
            torch.cuda.set_device(device)
            torch.backends.cuda.enable_cudnn_sdp(False)  # not deterministic, and wrong for some lengths of masks
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].partition(". ")[0][:120]
        raise UserError(f"launch.device {wanted!r} cannot be used here ({reason}); use auto, cpu or cuda:0.") from None
    return device


def _first_there_is() -> str:
    if torch.cuda.is_available():
        return "cuda:0"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def has_bf16(device: torch.device) -> bool:
    """Whether the GPU computes in bf16 itself; older ones emulate it, slower than fp16."""
    with torch.cuda.device(device):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))


def cpu_has_bf16(flags: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor multiplies in bf16 itself: one that does not takes a hundred times as long.

    Where that cannot be read (no Linux, no x86) it is taken to do so.
    """
    try:
        text = flags.read_text()
    except OSError:
        return True
    return "flags" not in text or "avx512_bf16" in text or "amx_bf16" in text


def has_tf32(device: torch.device) -> bool:
    """Whether the GPU multiplies in TF32: from the Ampere generation on."""
    return torch.cuda.get_device_capability(device) >= (8, 0)


def choices(device: torch.device) -> tuple[str, ...]:
    """The values of `training.amp` but `auto` that compute otherwise on `device`."""
    if device.type != "cuda":
        return ("off", "bf16") if device.type != "cpu" or cpu_has_bf16() else ("off",)
    return ("off", *["tf32"] * has_tf32(device), *["bf16"] * has_bf16(device), "fp16")


class Precision:
    """Autocast and, for fp16 only, loss scaling. Off on CPU and MPS unless asked for."""

    def __init__(self, wanted: str, device: torch.device) -> None:
        kind = wanted
        if wanted == "auto":
            kind = "off" if device.type != "cuda" else "bf16" if has_bf16(device) else "fp16"
        if kind in ("fp16", "tf32") and device.type != "cuda":
            raise UserError(f"training.amp {kind} needs a GPU, and the device is {device}; use auto, bf16 or off.")
        if kind == "tf32" and not has_tf32(device):
            print("training.amp tf32 is off: this GPU has none", flush=True)
            kind = "off"
        if kind == "bf16" and device.type == "cpu" and not cpu_has_bf16():
            print("training.amp bf16 is off: this processor is about a hundred times slower in it", flush=True)
            kind = "off"
        self.name = kind
        self._device = device
        self.scaler = torch.amp.GradScaler(device.type, enabled=kind == "fp16")

    @property
    def half(self) -> torch.dtype | None:
        """The half-precision type that autocast computes in, where it is on."""
        return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.name)

    def multiplying(self) -> AbstractContextManager[Any]:
        """Context of a whole step: in TF32 where that is chosen. Outside it, as in evaluations, fp32 is fp32."""
        return _multiplying_in_tf32() if self.name == "tf32" else contextlib.nullcontext()

    def autocast(self) -> AbstractContextManager[Any]:
        """Context of the forward pass and the losses."""
        return contextlib.nullcontext() if self.half is None else torch.autocast(self._device.type, self.half)


@contextlib.contextmanager
def _multiplying_in_tf32() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch on every device."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def numeric_flags() -> dict[str, str]:
    """Switches of torch and versions of its libraries that make it compute otherwise."""
    attention = {
        "flash": torch.backends.cuda.flash_sdp_enabled(),  # type: ignore[no-untyped-call]
        "efficient": torch.backends.cuda.mem_efficient_sdp_enabled(),  # type: ignore[no-untyped-call]
        "cudnn": torch.backends.cuda.cudnn_sdp_enabled(),  # type: ignore[no-untyped-call]
        "math": torch.backends.cuda.math_sdp_enabled(),  # type: ignore[no-untyped-call]
    }
    of_gpu = {}
    if _on_gpu():
        of_gpu = {
            "cuda": str(torch.version.cuda),
            "cudnn": str(torch.backends.cudnn.version()),  # type: ignore[no-untyped-call]
            "compute capability": "{}.{}".format(*torch.cuda.get_device_capability()),
            "attention": ", ".join(name for name, on in attention.items() if on),
        }
    return {
        **of_gpu,
        "deterministic algorithms": str(torch.are_deterministic_algorithms_enabled()),
        "float32 matmul precision": torch.get_float32_matmul_precision(),
        "cudnn deterministic": str(torch.backends.cudnn.deterministic),
        "cudnn benchmark": str(torch.backends.cudnn.benchmark),
    }


def _on_gpu() -> bool:
    """Whether this process uses one, not merely could."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def random_state() -> dict[str, Any]:
    """State of every random generator, as tensors and plain numbers that load without running code.

    Of GPUs only the run's own: a process on the CPU that asked for theirs would claim memory on them.
    """
    version, words, gauss = random.getstate()
    numpy_state: dict[str, Any] = np.random.get_state(legacy=False)
    return {
        "python": {"version": version, "words": list(words), "gauss": gauss},
        "numpy": {
            "key": torch.from_numpy(numpy_state["state"]["key"].astype(np.int64)),
            "pos": int(numpy_state["state"]["pos"]),
            "has_gauss": int(numpy_state["has_gauss"]),
            "gauss": float(numpy_state["gauss"]),
        },
        "torch": torch.get_rng_state(),
        "cuda": [torch.cuda.get_rng_state()] if _on_gpu() else [],
    }


def restore_random_state(state: dict[str, Any]) -> None:
    """Put `random_state` back. A GPU's is left alone where the state was taken, or is put back, without one."""
    python = state["python"]
    random.setstate((python["version"], tuple(python["words"]), python["gauss"]))
    numpy_state = state["numpy"]
    np.random.set_state(
        {
            "bit_generator": "MT19937",
            "state": {"key": numpy_state["key"].numpy().astype(np.uint32), "pos": numpy_state["pos"]},
            "has_gauss": numpy_state["has_gauss"],
            "gauss": numpy_state["gauss"],
        }
    )
    torch.set_rng_state(state["torch"])
    if _on_gpu() and state["cuda"]:
        torch.cuda.set_rng_state(state["cuda"][0])


@contextlib.contextmanager
def no_trace(model: nn.Module, share: Share | None = None) -> Iterator[None]:
    """Whatever is computed with `model` inside leaves random numbers and buffers (as of batch norm) as they were.

    share: of a rank beside others, whose common draws are put back as well.
    """
    before = [buffer.clone() for buffer in model.buffers()]
    drawn = None if share is None else share.generator.get_state()
    with random_state_kept():
        try:
            yield
        finally:
            if share is not None and drawn is not None:
                share.generator.set_state(drawn)
            with torch.no_grad():
                for buffer, value in zip(model.buffers(), before, strict=True):
                    buffer.copy_(value)


@contextlib.contextmanager
def random_state_kept() -> Iterator[None]:
    """Whatever random numbers are drawn inside, those drawn after are the same."""
    before = random_state()
    try:
        yield
    finally:
        restore_random_state(before)
