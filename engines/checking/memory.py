"""Memory that training takes, by part, and what is free."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from engines.basics.amounts import size
from engines.host import machine
from engines.host.cgroup import CGROUP
from engines.training.order import step_generator
from engines.training.precision import Precision
from engines.training.project import Context, Project, Split

ADAM_MOMENTS = 2
SMALLER = "lower training.batch_size, or set training.micro_batches=auto."


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


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The most bytes that what is computed inside has held at once; a view takes none."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now, self.most = 0, 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {t.untyped_storage()._cdata for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in given | self._known:
                    self._count(storage)
        return made

    def _count(self, storage: torch.UntypedStorage) -> None:
        size, key = storage.nbytes(), storage._cdata

        def freed() -> None:
            self.now -= size
            self._known.discard(key)

        self._known.add(key)
        weakref.finalize(storage, freed)
        self.now += size
        self.most = max(self.most, self.now)


def evaluation_size(project: Project[Any], cfg: Any, model: nn.Module, data: Split, parts: int, ctx: Context) -> int:
    """Bytes that one validation batch takes while it is computed."""
    size = max(1, project.validation_batch(cfg) // parts)
    indices = torch.arange(min(size, len(data.validation)))
    evaluation = project.evaluation(cfg, data)
    model.eval()
    with torch.inference_mode(), LiveBytes() as live:
        losses = evaluation.add(model, data.validation.batch(indices, None, ctx), ctx)
    assert losses
    model.train()
    return int(live.most)


def memory_needed(
    model: nn.Module, trained: Sequence[nn.Parameter], moments: int, data: int, activations: int, evaluation: int
) -> dict[str, int]:
    """Bytes that training takes beyond what this process took before; `moments`: of the optimizer, so far.

    No gradients and no activations are kept while a validation batch is computed: `total` has what takes more.
    """
    parts = {
        "model": size_of(model.parameters()) + size_of(model.buffers()),
        "gradients": size_of(trained),
        "optimizer": moments,
        "activations": activations,
        "data": data,
    }
    whole = sum(parts.values())
    in_step = parts["gradients"] + activations
    return {**parts, "evaluation": evaluation, "total": whole + max(0, evaluation - in_step)}


def of_rank(
    parts: Mapping[str, int], strategy: str, ranks: int, model: nn.Module, blocks: Sequence[nn.Module]
) -> dict[str, int]:
    """What each of `ranks` takes where a whole process takes `parts`: activations are those of its rows.

    With fsdp2 it has its part of model, gradients and optimizer, and for a while whole parameters: in a step those
    outside `blocks` and of two of these (one is gathered while the one before it is computed); in an evaluation all.
    """
    activations = parts["activations"] // ranks
    if strategy == "ddp":
        found = {**parts, "activations": activations}
        in_step, in_evaluation = parts["gradients"] + activations, parts["evaluation"]
    else:
        sizes = sorted(size_of(block.parameters()) for block in blocks)
        gathered = size_of(model.parameters()) - sum(sizes) + sum(sizes[-2:])
        own = {name: parts[name] // ranks for name in ("model", "gradients", "optimizer")}
        found = {**parts, **own, "activations": activations + 2 * gathered}  # with their gradients
        in_step = found["gradients"] + found["activations"]
        in_evaluation = size_of(model.parameters()) + parts["evaluation"]
    whole = found["model"] + found["optimizer"] + found["data"]
    return {**found, "total": whole + max(in_step, in_evaluation)}


def fits(device: torch.device, needed: Mapping[str, int], faults: list[str]) -> dict[str, int]:
    """`needed` with the bytes that are free; too few are a fault."""
    available = _available(device, needed)
    if needed["total"] > available:
        wanted = f"training needs about {size(needed['total'])} of memory on {device}"
        faults.append(f"{wanted} and {size(available)} are free; {SMALLER}")
    return {**needed, "available": available}


def is_room(device: torch.device, needed: Mapping[str, int]) -> bool:
    """Whether `needed` fits into what is free."""
    return needed["total"] <= _available(device, needed)


def _available(device: torch.device, needed: Mapping[str, int]) -> int:
    """The model and the data are there already, so what is free has to hold only the rest."""
    return free_memory(device) + needed["model"] + needed["data"]


def in_use(device: torch.device) -> int:
    """Bytes this process holds on `device`."""
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else psutil.Process().memory_info().rss


def free_memory(device: torch.device, cgroup: Path = CGROUP) -> int:
    """Bytes still free on `device`; on the CPU within the limit of the container, if it has one."""
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # by torch, for later
        return torch.cuda.mem_get_info(device)[0] + kept
    used, usable = machine.memory(cgroup)
    return min(int(psutil.virtual_memory().available), max(0, usable - used))
