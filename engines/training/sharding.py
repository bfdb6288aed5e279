"""A model that several ranks hold together: each has a part of every parameter, its gradient and its moments (FSDP2).

A block's parameters are gathered when it runs, forward and backward, and freed after it; its gradients are added up
over the ranks as soon as they are there. Evaluations, reports and exports get a copy with all weights.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.utils._pytree import tree_map_only

from engines.basics.errors import UserError
from engines.contract.rundir import RunDirectory
from engines.training import checkpoint, shards
from engines.training.precision import Precision
from engines.training.ranks import Together, local

Value = TypeVar("Value")


class _Whole(nn.Module):
    """The root of what is sharded: what is computed inside its call has the parameters of no block gathered."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, compute: Callable[[], Value]) -> Value:
        return compute()


class Sharding:
    """Divides `model` among `ranks`, in place. Every rank keeps single numbers, which have no dimension to divide.

    Raises `UserError` for a parameter of two blocks.

    blocks: modules that are gathered one after the other; all other parameters are gathered for the whole step.
    """

    def __init__(self, model: nn.Module, blocks: Sequence[nn.Module], precision: Precision, ranks: Together) -> None:
        refuse_shared(model, blocks)
        self.model, self._ranks = model, ranks
        absent = {id(one): nn.Parameter(one.to("meta"), one.requires_grad) for one in model.parameters()}
        shared = {id(one): one for one in model.buffers()}
        self._copy = copy.deepcopy(model, {**absent, **shared})
        """Of the same shape, with buffers in common; has parameters only inside `whole`."""
        self._device = device = next(model.parameters()).device
        self.mesh = DeviceMesh.from_group(dist.group.WORLD, device.type)  # type: ignore[arg-type]
        half = precision.half
        policy = MixedPrecisionPolicy(param_dtype=half, reduce_dtype=half and torch.float32, cast_forward_inputs=False)
        single = {one for one in model.parameters() if one.ndim == 0}
        for block in blocks:
            fully_shard(block, mesh=self.mesh, mp_policy=policy, ignored_params=single)
        self._root = _Whole(model)
        fully_shard(self._root, mesh=self.mesh, ignored_params=single)
        for module in (self._root, *blocks):  # losses are sums over the whole batch, and so are gradients
            assert isinstance(module, FSDPModule)
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)

    def inside(self, compute: Callable[[], Value]) -> Value:
        """What `compute` gives, tensors in tuples and lists, with the model's parameters in place.

        A backward pass from there adds up its gradients over the ranks.
        """
        with self._ranks.computing():
            found: Value = self._root(compute)
        return found

    def backward(self, loss: Tensor) -> None:
        """Put the sums over the ranks into the gradients."""
        with self._ranks.computing():
            loss.backward()  # type: ignore[no-untyped-call]

    def norm(self, gradients: Sequence[Tensor | None]) -> Tensor:
        """The L2 norm of all of them together, the same on every rank."""
        there = [gradient for gradient in gradients if gradient is not None]
        parts = nn.utils.get_total_norm([local(one) for one in there if local(one) is not one])
        parts = parts.to(self._device).double().square()  # that of none is on the CPU, where NCCL adds nothing up
        self._ranks.add_up([parts])
        wholes = nn.utils.get_total_norm([one for one in there if local(one) is one]).to(self._device)
        return (parts + wholes.double().square()).sqrt().float()

    @contextlib.contextmanager
    def whole(self) -> Iterator[nn.Module]:
        """A copy of the model with all weights on every rank, which no rank needs the others for.

        All ranks enter; each may leave when it is done.
        """
        found: dict[int, nn.Parameter] = {}
        pairs = list(zip(self._copy.modules(), self.model.modules(), strict=True))
        absent = dict(self._copy.named_parameters(remove_duplicate=False))
        with self._ranks.computing(), torch.no_grad():
            for plain, module in pairs:
                vars(plain).update((key, value) for key, value in vars(module).items() if _is_own(key, value))
                for name, buffer in module.named_buffers(recurse=False):
                    setattr(plain, name, buffer)
                for name, parameter in module.named_parameters(recurse=False):
                    if id(parameter) not in found:
                        found[id(parameter)] = nn.Parameter(full(parameter.detach()), parameter.requires_grad)
                    setattr(plain, name, found[id(parameter)])
        found.clear()
        try:
            yield self._copy
        finally:
            for name, parameter in absent.items():
                place, _, last = name.rpartition(".")
                setattr(self._copy.get_submodule(place), last, parameter)

    def saved(self, run: RunDirectory, content: Mapping[str, Any], *, whole: bool) -> dict[str, Any]:
        """The `content` of a checkpoint as rank 0 writes it: naming shards that are written, or `whole`.

        It is whole too where the shards could not be written. All ranks do it.
        """
        if not whole:
            try:
                return shards.write(run, content, self._ranks)
            except OSError as error:
                print(f"the shards of a checkpoint could not be written ({error}): it is gathered", flush=True)
        return self._gathered(content)

    def _gathered(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """`content` with whole tensors on the host, on rank 0; on the others they are empty."""
        first = self._ranks.first

        def gather(tensor: Tensor) -> Tensor:
            whole = full(tensor.detach())
            return whole.cpu() if first else torch.empty(0)

        with self._ranks.computing():
            return tree_map_only(DTensor, gather, dict(content))  # type: ignore[no-any-return]

    def read(self, path: Path, model: Mapping[str, Tensor], optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """The content of a checkpoint, whole or in shards, divided as the tensors of `model` and `optimizer` are.

        Raises `DataError` for one that is damaged.
        """
        trained: list[Tensor] = [parameter for group in optimizer.param_groups for parameter in group["params"]]

        def like(name: str, shape: torch.Size, dtype: torch.dtype) -> Tensor:
            part, _, key = name.partition(".")
            place = key.partition(".")[0]
            held = model.get(key) if part == "model" else dict(enumerate(trained)).get(int(place))
            if isinstance(held, DTensor) and held.shape == shape:
                return torch.empty_like(held, dtype=dtype)
            return torch.empty(shape, dtype=dtype)

        content = checkpoint.load(path, like)
        content["model"] = {name: self._divided(value, model.get(name)) for name, value in content["model"].items()}
        state = content["optimizer"]["state"]
        for place, held in enumerate(trained):
            if place in state:
                state[place] = {key: self._divided(value, held) for key, value in state[place].items()}
        return content

    def _divided(self, value: Any, like: Tensor | None) -> Any:
        """A whole tensor divided as `like` is, where it is divided and has the same shape."""
        if not isinstance(like, DTensor) or not isinstance(value, Tensor) or isinstance(value, DTensor):
            return value
        if value.shape != like.shape:
            return value
        return distribute_tensor(value.to(like.device), self.mesh, like.placements, src_data_rank=None)


def refuse_shared(model: nn.Module, blocks: Sequence[nn.Module]) -> None:
    """Raises `UserError` for a parameter that would be divided twice: of two blocks, or of one and what is outside."""
    names = [name for name, module in model.named_modules() if any(module is block for block in blocks)]
    places: dict[int, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        place = next((block for block in names if name.startswith(f"{block}.")), "")
        if places.setdefault(id(parameter), place) != place:
            raise UserError(
                f"launch.strategy fsdp2: the parameter {name} is in two of the project's blocks, or in one and "
                "outside; expected a single place: leave those out of Project.blocks, or use ddp."
            )


def _is_own(name: str, value: Any) -> bool:
    """Whether it is what a project's module may set beside tensors while it trains."""
    return isinstance(value, bool | int | float | str | frozenset) and "fsdp" not in name


def full(tensor: Tensor) -> Tensor:
    """A copy of all of it; every rank asks for it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor.clone()
