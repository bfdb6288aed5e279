"""Memory that training takes, by part, and what is free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import Tensor, nn

from engines.basics.amounts import size
from engines.host import machine
from engines.host.cgroup import CGROUP
from engines.training.order import step_generator
from engines.training.precision import Precision
from engines.training.project import Context, Project, Split

ADAM_MOMENTS = 2
SMALLER = "lower training.batch_size, or raise training.micro_batches."


def size_of(tensors: Iterable[Tensor]) -> int:
    """Bytes."""
    return sum(tensor.nbytes for tensor in tensors)


def activation_size(
    project: Project[Any],
    model: nn.Module,
    data: Split,
    indices: Tensor,
    ctx: Context,
    precision: Precision,
    seed: int,
) -> int:
    """Bytes that the losses of the samples `indices: (micro_batch,) int64` keep for their backward pass."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    batch = data.train.batch(indices, step_generator(seed, 0, 0), ctx)
    model.train()
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor), precision.autocast():
        losses = project.losses(model, batch, ctx)
    assert losses  # alive until here, so that no storage was freed and its address given to another
    return sum(kept.values())


def memory_needed(
    model: nn.Module, trained: Sequence[nn.Parameter], moments: int, data: int, activations: int
) -> dict[str, int]:
    """Bytes that training takes beyond what this process took before; `moments`: of the optimizer, so far."""
    parts = {
        "model": size_of(model.parameters()) + size_of(model.buffers()),
        "gradients": size_of(trained),
        "optimizer": moments,
        "activations": activations,
        "data": data,
    }
    return {**parts, "total": sum(parts.values())}


def fits(device: torch.device, needed: Mapping[str, int], faults: list[str]) -> dict[str, int]:
    """`needed` with the bytes that are free; too few are a fault."""
    # the model and the data are there already, so what is free has to hold only the rest
    available = free_memory(device) + needed["model"] + needed["data"]
    if needed["total"] > available:
        wanted = f"training needs about {size(needed['total'])} of memory on {device}"
        faults.append(f"{wanted} and {size(available)} are free; {SMALLER}")
    return {**needed, "available": available}


def in_use(device: torch.device) -> int:
    """Bytes this process holds on `device`."""
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else psutil.Process().memory_info().rss


def free_memory(device: torch.device, cgroup: Path = CGROUP) -> int:
    """Bytes still free on `device`; on the CPU within the limit of the container, if it has one."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    used, usable = machine.memory(cgroup)
    return min(int(psutil.virtual_memory().available), max(0, usable - used))
