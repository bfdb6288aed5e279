"""The processes that train one model together, each with its rows of every batch: its ranks.

Rank 0 decides, writes and speaks with the user; the others do the same steps. What has to be agreed on goes through
the host (gloo), what has to be summed through the devices (NCCL on GPUs).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from engines.basics.errors import UserError
from engines.contract.settings import Training
from engines.runtime.following import LOST, MARK
from engines.training.draws import Share
from engines.training.precision import random_state, restore_random_state

Value = TypeVar("Value")
PATIENCE = timedelta(days=7)
"""How long ranks wait for each other: a pause or a full disk on rank 0 holds all of them. Who dies is seen at once."""
LARGE = 4096
"""Numbers from which on a sum is one of gradients, not of counts."""


class RankLost(UserError):
    """Another rank has ended, so this one cannot go on."""

    def __init__(self) -> None:
        super().__init__("another rank ended, so this one cannot continue.", exit_code=LOST)


@dataclass(eq=False)
class Ranks:
    """One process that trains alone; `Together` is one of several."""

    number: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this rank decides and writes."""
        return self.number == 0

    @property
    def alone(self) -> bool:
        return self.count == 1

    def from_first(self, value: Value) -> Value:
        """The `value` that rank 0 gives, on every rank."""
        return value

    def gathered(self, value: Value) -> list[Value]:
        """The values of all ranks in order, on every rank."""
        return [value]

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Put the sum over the ranks into each of `tensors`, in one transfer for each of their types."""

    @contextlib.contextmanager
    def computing(self) -> Iterator[None]:
        """Around computations that exchange tensors as they go. Raises `RankLost` where another rank has ended."""
        yield

    def take_waited(self) -> tuple[float, int]:
        """Seconds spent in sums over the ranks since this was asked last, and how many of these were measured."""
        return 0.0, 0

    def whole(self, rows: Tensor, size: int) -> Tensor:
        """`(size, …)`: the rows that the ranks have of a batch, each of them its share."""
        return rows

    def make_equal(self, model: nn.Module) -> None:
        """Give every rank the parameters and buffers of rank 0."""

    def share(self, size: int) -> Share | None:
        """The rows of a batch of `size` that this rank has; None where it has all of them."""
        return None


ALONE = Ranks()


@dataclass(eq=False)
class Together(Ranks):
    """One of several ranks, after `join`."""

    shared: torch.Generator = field(default_factory=torch.Generator)
    """Draws for whole batches: in the same state on every rank."""
    control: Any = None
    """The group whose messages go from host to host."""
    _waited: float = 0.0
    _measured: tuple[torch.cuda.Event, torch.cuda.Event] | None = None
    """On a GPU around the newest large sum: the host does not wait for it."""

    def from_first(self, value: Value) -> Value:
        box = [value]
        with self._with_others():
            dist.broadcast_object_list(box, src=0, group=self.control)
        return box[0]

    def gathered(self, value: Value) -> list[Value]:
        boxes: list[Any] = [None] * self.count
        with self._with_others():
            dist.all_gather_object(boxes, value, group=self.control)
        return boxes

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        for kind in dict.fromkeys(
            tensor.dtype for tensor in tensors
        ):  # in the same order on every rank: a set has none
            some = [tensor for tensor in tensors if tensor.dtype == kind]
            flat = torch.cat([tensor.detach().flatten() for tensor in some])
            with self._with_others(), self._measuring(flat):
                dist.all_reduce(flat)
            parts = flat.split([tensor.numel() for tensor in some])  # type: ignore[no-untyped-call]
            for tensor, part in zip(some, parts, strict=True):
                tensor.detach().copy_(part.view_as(tensor))

    @contextlib.contextmanager
    def computing(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            if not _says_lost(error):
                raise
            print(f"rank {self.number}: {str(error).splitlines()[0].partition('. ')[0]}", flush=True)
            raise RankLost from None

    def take_waited(self) -> tuple[float, int]:
        waited, self._waited = self._waited, 0.0
        if self._measured is None:
            return waited, 0
        began, ended = self._measured
        self._measured = None
        ended.synchronize()
        return began.elapsed_time(ended) / 1000, 1

    @contextlib.contextmanager
    def _measuring(self, flat: Tensor) -> Iterator[None]:
        if not flat.is_cuda or flat.numel() < LARGE:
            yield
            return
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        began.record()
        yield
        ended.record()
        self._measured = began, ended

    def whole(self, rows: Tensor, size: int) -> Tensor:
        each, rest = divmod(size, self.count)
        padded = rows.new_zeros((each + bool(rest), *rows.shape[1:]))
        padded[: len(rows)] = rows
        parts = [torch.empty_like(padded) for _ in range(self.count)]
        with self._with_others():
            dist.all_gather(parts, padded)
        return torch.cat([part[: each + (number < rest)] for number, part in enumerate(parts)])

    def make_equal(self, model: nn.Module) -> None:
        with self._with_others(), torch.no_grad():
            for tensor in (*model.parameters(), *model.buffers()):
                value = tensor.detach().contiguous()
                dist.broadcast(value, src=0)
                tensor.detach().copy_(value)

    def share(self, size: int) -> Share:
        """Whole rows, as even as they can be. Raises `UserError` where a rank would have none."""
        if size < self.count:
            raise UserError(
                f"a batch of {size} samples cannot be divided among {self.count} ranks; expected one for each: set "
                "launch.devices lower, or take more data."
            )
        each, rest = divmod(size, self.count)
        start = self.number * each + min(self.number, rest)
        return Share(start, start + each + (self.number < rest), size, self, self.shared)

    @contextlib.contextmanager
    def _with_others(self) -> Iterator[None]:
        """Raises `RankLost` where one of them has ended; what is wrong with this rank alone passes."""
        began = time.perf_counter()
        with self.computing():
            yield
        self._waited += time.perf_counter() - began


def join(device: torch.device) -> Ranks:
    """Meet the other ranks, where `torchrun` has said in the environment that there are some. Raises `RankLost`."""
    if not is_rank() or os.environ["WORLD_SIZE"] == "1":
        return ALONE
    try:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
        control = dist.new_group(backend="gloo", timeout=PATIENCE)
    except RuntimeError as error:
        if not _says_lost(error):
            raise
        print(f"the ranks did not meet: {str(error).splitlines()[0]}", flush=True)
        raise RankLost from None
    return Together(dist.get_rank(), dist.get_world_size(), shared=torch.Generator(device), control=control)


def _says_lost(error: RuntimeError) -> bool:
    """Whether torch raised it because another rank, or the way to it, is gone.

    NCCL and the store have types for that, which NCCL also uses where this rank's device is out of memory; gloo has
    none, and says where its transport failed.
    """
    if isinstance(error, dist.DistError):
        return "out of memory" not in str(error)
    return "/gloo/" in str(error)


def check_batches(training: Training, ranks: int) -> None:
    """Raises `UserError` where so many ranks cannot divide a batch evenly."""
    if ranks == 1:
        return
    if training.micro_batches == "auto":
        raise UserError(
            f"training.micro_batches auto needs one rank, and launch asks for {ranks}; set a number, or "
            "launch.devices to 1."
        )
    parts = ranks * training.micro_batches
    for batch in (training.batch_size, *(stage.batch_size for stage in training.stages if stage.batch_size)):
        if batch % parts:
            raise UserError(
                f"training.batch_size {batch} must be a multiple of {parts}: {ranks} ranks with "
                f"{training.micro_batches} micro-batches each; change launch.devices or the batch size."
            )


def take_own_random(ranks: Ranks, seed: int) -> None:
    """Let each rank draw numbers of its own (dropout), and what they share be drawn as on one rank."""
    if isinstance(ranks, Together):
        ranks.shared.set_state(_torch_state(random_state()))
        torch.manual_seed(seed + ranks.number)


def random_of_ranks(ranks: Ranks) -> dict[str, Any]:
    """What a checkpoint holds of random numbers: `random` of rank 0, and of several ranks all."""
    own = random_state()
    if not isinstance(ranks, Together):
        return {"random": own}
    return {"random": own, "ranks": {"random": ranks.gathered(own), "shared": ranks.shared.get_state()}}


def restore_random_of_ranks(content: dict[str, Any], ranks: Ranks) -> None:
    """Put them back, on as many ranks or on others: what is shared goes on, what each draws for itself may not."""
    several = content.get("ranks")
    if not isinstance(ranks, Together):
        restore_random_state(content["random"])
        if several is not None:
            _set_torch_state(several["shared"])
        return
    if several is not None and ranks.number < len(several["random"]):
        restore_random_state(several["random"][ranks.number])
    shared = _torch_state(content["random"]) if several is None else several["shared"]
    if len(shared) == len(ranks.shared.get_state()):  # else it was saved on another kind of device
        ranks.shared.set_state(shared)


def _torch_state(state: dict[str, Any]) -> Tensor:
    """Of the generator that a run on its device draws from."""
    found: Tensor = state["cuda"][0] if state["cuda"] else state["torch"]
    return found


def _set_torch_state(state: Tensor) -> None:
    if len(state) == len(torch.get_rng_state()):
        torch.set_rng_state(state)
    elif torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.set_rng_state(state)


def leave() -> None:
    """Take leave of the other ranks, where there are any."""
    if dist.is_initialized():
        dist.destroy_process_group()


def local(tensor: Tensor) -> Tensor:
    """This rank's part of one that the ranks hold together, in the same memory; of another one all."""
    part: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part


def is_rank() -> bool:
    """Whether this process is one that our `torchrun` has started: the names alone may be another program's."""
    return MARK in os.environ


def local_count() -> int:
    """Ranks of this machine."""
    return int(os.environ["LOCAL_WORLD_SIZE"]) if is_rank() else 1


def own_device(wanted: str) -> str:
    """Of the GPUs that `launch.device` means the one of this rank."""
    if is_rank() and (wanted == "cuda" or (wanted == "auto" and torch.cuda.is_available())):
        return f"cuda:{os.environ['LOCAL_RANK']}"
    return wanted
