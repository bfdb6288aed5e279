"""A device out of memory: how that is recognised, what the user reads, and micro-batches that fit by themselves."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

from engines.basics.amounts import size
from engines.contract.events import Alert
from engines.host.machine import memory
from engines.training.precision import random_state, restore_random_state
from engines.training.work import Work

T = TypeVar("T")
SIGNS = ("out of memory", "_STATUS_ALLOC_FAILED", "can't allocate memory", "cudaErrorMemoryAllocation")
"""Of errors that are no `OutOfMemoryError`: of the CUDA driver, cuBLAS, cuDNN, a compiled kernel, the CPU allocator."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that a device, or the machine, is out of memory."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in SIGNS)


def sentence(error: BaseException) -> str:
    """What the user can do about it. The first note of `error`, as `while evaluating`, says what the run did."""
    while_ = "".join(f" {note}" for note in getattr(error, "__notes__", [])[:1])
    place, others = _place(error)
    return (
        f"{place[0]} is out of memory{while_}{place[1]}; resume with --set training.micro_batches=auto, start a new "
        f"run with a smaller training.batch_size, or stop other programs {others}."
    )


def _place(error: BaseException) -> tuple[tuple[str, str], str]:
    """Which memory is full, how full, and where other programs take some of it."""
    on_cpu = isinstance(error, MemoryError) or "can't allocate memory" in str(error)
    if on_cpu or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        used, usable = memory()
        return ("the machine", f": of {size(usable)}, {size(usable - used)} are free"), "on it"
    name = f"cuda:{torch.cuda.current_device()} ({torch.cuda.get_device_name()})"
    try:
        free, total = torch.cuda.mem_get_info()
        held = f": of {size(total)}, this run holds {size(torch.cuda.memory_reserved())} and {size(free)} are free"
    except RuntimeError:  # the driver has no memory for an answer either
        held = ""
    return (name, held), "on that GPU"


def more_parts(parts: int, batch_size: int) -> int | None:
    """Twice as many, or the next number that divides a batch; None when each part is one sample already."""
    return next((n for n in range(2 * parts, batch_size + 1) if batch_size % n == 0), None)


class Fit:
    """Cuts batches into more parts when one does not fit, where `training.micro_batches` is auto.

    The number holds from then on and is in the checkpoints (`TrainState.micro_batches`). The gradient stays that of the
    whole batch, and what was computed before the memory was full leaves no trace: a run that was cut gives what one
    with that number from the start gives.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self.auto = work.settings.training.micro_batches == "auto"

    def compute(self, what: Callable[[], T], batch_size: int) -> T:
        """The outcome of `what`, which computes a batch in `state.micro_batches` parts. Raises any other error."""
        if not self.auto:
            return what()
        before = _Before(self._work.model)
        while True:
            failure = ""
            try:
                return what()
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or not self._cut(batch_size):
                    raise
                failure = str(error).splitlines()[0]
            # outside the handler: the error's traceback holds the tensors that did not fit
            before.restore()
            print(
                f"out of memory ({failure}): {self._work.state.micro_batches} parts per batch from now on", flush=True
            )

    def _cut(self, batch_size: int) -> bool:
        """Take more parts; False when each is one sample already."""
        state, room = self._work.state, self._work.room
        if (parts := more_parts(state.micro_batches, batch_size)) is None:
            return False
        state.micro_batches = parts
        text = (
            f"out of memory at step {state.step}: each batch of {batch_size} is computed in {parts} parts from now on, "
            "with the same gradient"
        )
        room.write(Alert(code="micro-batches", level="warning", text=text, step=state.step))
        return True


class _Before:
    """Random state, buffers and gradients as they were, to be put back."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._random: dict[str, Any] = random_state()
        self._buffers = [buffer.clone() for buffer in model.buffers()]

    @torch.no_grad()
    def restore(self) -> None:
        for buffer, value in zip(self._model.buffers(), self._buffers, strict=True):
            buffer.copy_(value)
        self._model.zero_grad(set_to_none=True)
        restore_random_state(self._random)
        gc.collect()
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.empty_cache()
