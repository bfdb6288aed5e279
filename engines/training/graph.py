"""The whole step as one CUDA graph: its kernels are launched together instead of one by one.

A graph holds what was launched when it was captured, numbers included. So whatever changes from step to step is a
tensor: the batch (copied into the graph's own), the learning rate, the loss weights, random numbers (which torch
advances with each replay). What changes more makes it be captured again: another stage, a restore, a new optimizer
state, all of which come with `TrainStep.enter_stage`. The first steps after that are not captured: they make what is
made once, as the kernels of a compiled model. Those are of one shape of batches, so steps are counted by it; once there
is a graph, a batch of another shape is computed without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from engines.contract.settings import Training
from engines.training.precision import Precision
from engines.training.project import Batch, Project

WARM_UP = 3
"""Steps before a capture: the model is compiled, kernels are chosen, the state and constants of a stage are made."""
Compute = Callable[[Batch], Tensor]
Shape = tuple[tuple[str, torch.Size, torch.dtype], ...]
"""Name, shape and type of each tensor of a batch."""


class Capture(Protocol):
    """Records what a computation launches."""

    def warm(self, compute: Callable[[], Tensor]) -> Tensor:
        """The outcome of `compute`, done as a capture would."""
        ...

    def record(self, compute: Callable[[], Tensor]) -> tuple[Tensor, Callable[[], None]]:
        """The tensor that `compute` gives, and what fills it: nothing is computed before that is called."""
        ...


class CudaCapture:
    """Records CUDA graphs. Warm-up steps are on a stream of their own, as torch's documentation asks."""

    def __init__(self, device: torch.device) -> None:
        self._side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def warm(self, compute: Callable[[], Tensor]) -> Tensor:
        main = torch.cuda.current_stream()
        self._side.wait_stream(main)
        with torch.cuda.stream(self._side):
            row = compute()
        main.wait_stream(self._side)
        row.record_stream(main)
        return row

    def record(self, compute: Callable[[], Tensor]) -> tuple[Tensor, Callable[[], None]]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self._side, capture_error_mode="thread_local"):
            row = compute()
        return row, graph.replay


class StepGraph:
    """Does steps, replayed where that is possible."""

    captures = 0

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self.reset()

    def reset(self) -> None:
        """Forget what was captured: a tensor it uses, or a number in it, is another one now."""
        self._warmed: Counter[Shape] = Counter()
        self._shape: Shape = ()
        self._static: Batch = {}
        self._row: Tensor | None = None
        self._replay: Callable[[], None] | None = None

    def __call__(self, compute: Compute, batch: Batch) -> Tensor:
        """One step by `compute`, which gives its row."""
        shape = tuple((name, tensor.shape, tensor.dtype) for name, tensor in batch.items())
        if self._replay is None:
            if self._warmed[shape] < WARM_UP:
                self._warmed[shape] += 1
                return self._capture.warm(lambda: compute(batch))
            self._shape, self._static = shape, {name: tensor.clone() for name, tensor in batch.items()}
            self._row, self._replay = self._capture.record(lambda: compute(self._static))
            self.captures += 1
        elif shape != self._shape:
            return compute(batch)
        for name, tensor in self._static.items():
            tensor.copy_(batch[name])
        self._replay()
        assert self._row is not None
        return self._row.clone()  # the next replay writes over it


def why_not(
    project: Project[Any],
    optimizer: torch.optim.Optimizer,
    precision: Precision,
    training: Training,
    device: torch.device,
) -> str:
    """Why the steps of a run cannot be a graph, in a few words; empty where they can."""
    if device.type != "cuda":
        return "it needs a GPU"
    if not project.graph_safe:
        return f"{type(project).__name__} does not say that its losses can be replayed (graph_safe)"
    if training.micro_batches != 1:
        return "it does not work with micro-batches"
    if precision.scaler.is_enabled():
        return "the loss scale of fp16 is kept on the host"
    if not getattr(optimizer, "_step_supports_amp_scaling", False):
        return f"{type(optimizer).__name__} is not fused"
    return ""
