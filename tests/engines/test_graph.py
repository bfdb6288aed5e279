"""Steps that are replayed, on a CPU: what stands in for a CUDA graph records every operation with its numbers and its
tensors, undoes what that computed, and does the same operations on the same tensors again with each replay."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.backends.registry import lookup_backend
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from engines.basics.line_writer import append_line
from engines.contract import commands as cmd
from engines.contract.settings import Training
from engines.contract.steps import read_series
from engines.training import checkpoint, engine, loop
from engines.training.graph import StepGraph, why_not
from engines.training.precision import Precision
from engines.training.project import Batch
from tests.engines.toy import ToyProject, ToyRun, ToySource


def tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Every operation inside, and what was written over that had been there before."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[tuple[Any, Any, Any, list[Tensor]]] = []
        self.before: dict[int, tuple[Tensor, Tensor]] = {}
        self._made: list[torch.UntypedStorage] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        made = {storage.data_ptr() for storage in self._made}
        for declared, value in zip(func._schema.arguments, args, strict=False):
            if declared.alias_info is not None and declared.alias_info.is_write:
                for tensor in tensors(value):
                    key = tensor.untyped_storage().data_ptr()
                    if key not in made:
                        self.before.setdefault(key, (tensor, tensor.clone()))
        given = {tensor.untyped_storage().data_ptr() for tensor in tensors((args, kwargs))}
        out = func(*args, **kwargs)
        new = [tensor for tensor in tensors(out) if tensor.untyped_storage().data_ptr() not in given]
        self._made += [tensor.untyped_storage() for tensor in new]
        self.calls.append((func, args, kwargs, tensors(out) if new else []))
        return out


class RecordedCapture:
    """As a CUDA graph on a CPU."""

    def warm(self, compute: Callable[[], Tensor]) -> Tensor:
        return compute()

    def record(self, compute: Callable[[], Tensor]) -> tuple[Tensor, Callable[[], None]]:
        random = torch.get_rng_state()
        with Recorder() as recorder:
            row = compute()
        torch.set_rng_state(random)
        with torch.no_grad():
            for tensor, value in recorder.before.values():
                tensor.copy_(value)

        @torch.no_grad()
        def replay() -> None:
            for func, args, kwargs, outputs in recorder.calls:
                for held, value in zip(outputs, tensors(func(*args, **kwargs)), strict=False):
                    held.copy_(value)

        return row, replay


class NeverReplayed(StepGraph):
    """The same step, eager throughout."""

    def __call__(self, compute: Callable[[Batch], Tensor], batch: Batch) -> Tensor:
        return compute(batch)


class AheadOfTime:
    """A backend of torch.compile without a compiler of kernels; `calls` of it."""

    calls = 0

    def __call__(self, graph: Any, inputs: Any) -> Any:
        self.calls += 1
        return lookup_backend("aot_eager")(graph, inputs)


class BadSource(ToySource):
    """A batch that is not a number, once in a while."""

    def batch(self, *arguments: Any) -> Batch:
        made = super().batch(*arguments)
        return {**made, "x": made["x"] * torch.nan} if self.batches in (7, 13) else made


class Graphed(ToyProject):
    graph_safe = True

    def data(self, cfg: Any, device: torch.device) -> Any:
        split = super().data(cfg, device)
        return type(split)(BadSource(256, 1), split.validation)


@pytest.fixture(params=[True, False], ids=["replayed", "eager"])
def made(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(monkeypatch, replayed=request.param)


def prepared(monkeypatch: pytest.MonkeyPatch, *, replayed: bool) -> None:
    monkeypatch.setattr(loop, "why_not", lambda *_: "")
    monkeypatch.setattr(loop, "CudaCapture", lambda device: RecordedCapture())
    monkeypatch.setattr(loop, "StepGraph", StepGraph if replayed else NeverReplayed)


STAGES = [{"name": "one", "epochs": 1, "heads": ["all"]}, {"name": "both", "restart_optimizer": True}]
EDITS = (
    cmd.SetLossWeights(attempt=1, at_step=12, weights={"rare": 3.0}),
    cmd.SetLrScale(attempt=1, at_step=20, scale=0.3),
)


def run(folder: Path, *edits: cmd.Command, **training: Any) -> ToyRun:
    toy = ToyRun(folder, Graphed(), graph=True, epochs=4, stages=STAGES, **training)
    for edit in edits:
        append_line(toy.run.commands, cmd.encode(edit))
    return toy


def outcome(toy: ToyRun) -> tuple[Any, Any]:
    content = toy.trainer.checkpoints.content()
    series = [read_series(toy.run.steps, name)[1].tolist() for name in ("all", "grad_norm", "skipped", "lr")]
    return {part: content[part] for part in ("model", "optimizer", "sums")}, repr(series)


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_replayed_steps_are_the_eager_ones_to_the_bit(
    compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With dropout, a rate that changes every step, edits of weights and rate, skipped steps, and two stages.

    A compiled model is compiled once a stage, before the capture.
    """
    found, plain = [], torch.compile
    for replayed in (True, False):
        prepared(monkeypatch, replayed=replayed)
        compiler = AheadOfTime()
        monkeypatch.setattr(torch, "compile", functools.partial(plain, backend=compiler))
        toy = run(tmp_path / str(replayed), *EDITS, compile=compiled)
        assert toy.train() == "finished"
        found.append(outcome(toy))
        assert compiler.calls == 2 * compiled
        if replayed:
            graph = toy.trainer.step._graph
            assert graph is not None
            assert graph.captures == 2  # one a stage
    (ours, our_steps), (theirs, their_steps) = found
    assert checkpoint.same(ours, theirs)
    assert our_steps == their_steps
    assert read_series(toy.run.steps, "skipped")[1].sum() == 2


@pytest.mark.usefixtures("made")
def test_a_stopped_run_resumes_to_the_same_bits(tmp_path: Path) -> None:
    straight = run(tmp_path / "straight")
    assert straight.train() == "finished"
    stopped = run(tmp_path / "stopped", cmd.Stop(attempt=1, at_step=21))
    assert stopped.train() == "stopped"
    groups = checkpoint.load(stopped.run.last)["optimizer"]["param_groups"]
    assert all(isinstance(group["lr"], float) and not group["capturable"] for group in groups)
    again = ToyRun(tmp_path / "stopped", Graphed(), attempt=2, graph=True, epochs=4, stages=STAGES)
    again.data.train.batches = 21  # type: ignore[attr-defined]  # as many as were gathered
    engine.resume(again.run, again.trainer)
    with again.listener:
        assert again.trainer.train() == "finished"
    assert checkpoint.same(outcome(again)[0], outcome(straight)[0])


def test_a_shape_is_warmed_up_before_it_is_captured_and_others_are_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiled model compiles each shape once, which a capture does not survive."""
    graph, captured = StepGraph(RecordedCapture()), list[int]()
    sums: list[float] = []
    record = RecordedCapture.record

    def noted(capture: RecordedCapture, computed: Callable[[], Tensor]) -> tuple[Tensor, Callable[[], None]]:
        captured.append(len(sums))
        return record(capture, computed)

    monkeypatch.setattr(RecordedCapture, "record", noted)

    def compute(batch: Batch) -> Tensor:
        return batch["x"].sum()

    for size in (4, 4, 4, 3, 4, 3, 4):
        sums.append(float(graph(compute, {"x": torch.arange(float(size)) + len(sums)})))
    assert sums == [6.0, 10.0, 14.0, 12.0, 22.0, 18.0, 30.0]
    assert (graph.captures, captured) == (1, [4])


def test_why_a_step_is_no_graph_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, training, cpu = torch.device("cuda", 0), Training(), torch.device("cpu")
    weight = [torch.nn.Parameter(torch.zeros(1))]
    adam, sgd = torch.optim.AdamW(weight, fused=True), torch.optim.SGD(weight)
    plain = Precision("off", cpu)
    assert why_not(Graphed(), adam, plain, training, cpu) == "it needs a GPU"
    assert why_not(Graphed(), adam, plain, training, gpu) == ""
    assert why_not(ToyProject(), adam, plain, training, gpu).startswith("ToyProject does not say")
    assert why_not(Graphed(), sgd, plain, training, gpu) == "SGD is not fused"
    cut = Training(micro_batches="auto")
    assert "micro-batches" in why_not(Graphed(), adam, plain, cut, gpu)
