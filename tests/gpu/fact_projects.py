"""What the device does with each project: waits, speed, kernels, parity with the CPU, resumes, memory."""

from __future__ import annotations

import copy
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.autograd.profiler_util import EventList
from torch.utils._python_dispatch import TorchDispatchMode

from engines.training import checkpoint
from engines.training.engine import resume
from engines.training.precision import choices, random_state, restore_random_state
from tests.gpu.trainers import ROOT, InProcess, make_data, of_project, state_of

WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "equal", "is_nonzero")
"""Operations that make the host wait for a device."""
HOST_SECONDS = 4.0
"""Of one measurement on a CPU, where a step is slow; a GPU is given a number of steps instead."""


def place_of_call() -> str:
    """The innermost line of the program that is running now, as `projects/x.py:12`."""
    frames = [frame for frame in traceback.extract_stack() if frame.filename.startswith(str(ROOT))]
    inner = next((frame for frame in reversed(frames) if "/tests/gpu/" not in frame.filename), frames[-1])
    return f"{Path(inner.filename).relative_to(ROOT)}:{inner.lineno}"


class Waits(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Places of the program that would make the host wait for a device, on the CPU."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name.startswith(WAITING):
            self.seen[f"{place_of_call()} {name}"] += 1
        return func(*args, **(kwargs or {}))


@contextmanager
def waits_noted(device: torch.device) -> Iterator[Counter[str]]:
    """Counts every wait inside by its place."""
    if device.type != "cuda":
        with Waits() as spy:
            yield spy.seen
        return
    seen: Counter[str] = Counter()

    def note(*warning: Any) -> None:
        if "synchronizing" in str(warning[0]):
            seen[place_of_call()] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note  # type: ignore[assignment]
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield seen
        finally:
            torch.cuda.set_sync_debug_mode("default")


class NeverReplayed:
    """In the place of a `StepGraph`: the same step without a graph."""

    def reset(self) -> None: ...

    def __call__(self, compute: Any, batch: Any) -> Any:
        return compute(batch)


class Projects:
    """Facts of a project on a device. Its data is made once; each fact makes trainers of its own."""

    def __init__(self, device: torch.device, folder: Path) -> None:
        self._device, self._folder, self._count = device, folder, 0
        self._data: dict[str, Path] = {}

    def _trainer(self, project: str, *settings: str, device: str = "") -> InProcess:
        self._count += 1
        if project not in self._data:
            self._data[project] = make_data(project, self._folder / "data")
        folder = self._folder / f"run{self._count}"
        return of_project(project, folder, self._data[project], device or str(self._device), *settings)

    def made(self, project: str) -> dict[str, Any]:
        """Seconds to make the data and the trainer, and what it is."""
        began = time.perf_counter()
        live = self._trainer(project)
        model = live.trainer.model
        return {
            "seconds": time.perf_counter() - began, "parameters": sum(p.numel() for p in model.parameters()),
            "windows": len(live.trainer.data.train), "batch": live.trainer.training.batch_size,
        }  # fmt: skip

    def waits(self, project: str) -> dict[str, Any]:
        """Every place where steps wait, in each precision, over three steps after three: none is right."""
        found = {}
        for amp in choices(self._device) if self._device.type == "cuda" else ("off",):
            live = self._trainer(project, f"training.amp={amp}", "training.batch_size=8")
            live.steps(3)
            live.wait()
            with waits_noted(self._device) as seen:
                for _ in range(3):
                    live.step(live.trainer.state.step_in_epoch)
            found[amp] = dict(seen)
        return found

    def step_times(self, project: str, batches: tuple[int, ...] = ()) -> dict[str, Any]:
        """ms of a step with its batch and log, by precision and batch size; of the host alone; and of the batch."""
        on_gpu = self._device.type == "cuda"
        found: dict[str, Any] = {}
        for amp in choices(self._device) if on_gpu else ("off",):
            for size in (batches or (0,)) if on_gpu else (batches or (0,))[:1]:
                settings = [f"training.amp={amp}", *[f"training.batch_size={size}"] * (size > 0)]
                live = self._trainer(project, *settings)
                found[f"{amp}, {size or live.trainer.training.batch_size}"] = self._timed(live)
        return found

    def _timed(self, live: InProcess) -> dict[str, float]:
        warm, count = (20, 60) if self._device.type == "cuda" else (1, 5)
        live.steps(warm)
        live.wait()
        began, done = time.perf_counter(), 0
        while done < count and (self._device.type == "cuda" or time.perf_counter() - began < HOST_SECONDS):
            live.step(live.trainer.state.step_in_epoch)
            done += 1
        on_host = time.perf_counter() - began
        live.wait()
        whole = time.perf_counter() - began
        began = time.perf_counter()
        for _ in range(done):
            live.trainer.batches.next()
        live.wait()
        batch = time.perf_counter() - began
        names = ("step", "host", "batch")
        return {name: 1e3 * seconds / done for name, seconds in zip(names, (whole, on_host, batch), strict=True)}

    def kernels(self, project: str) -> dict[str, Any]:
        """Of ten steps by the profiler: kernels a step, share of the time the device is busy, the ten longest.

        On the CPU operations take the place of kernels.
        """
        steps = 10 if self._device.type == "cuda" else 2
        live = self._trainer(project, *["training.batch_size=8"] * (steps == 2))
        live.steps(5 if steps > 2 else 1)
        live.wait()
        activities = [torch.profiler.ProfilerActivity.CPU]
        if self._device.type == "cuda":
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        with torch.profiler.profile(activities=activities) as profile:
            began = time.perf_counter()
            live.steps(steps)
            live.wait()
            seconds = time.perf_counter() - began
        events = profile.events()
        assert isinstance(events, EventList)
        on_gpu = self._device.type == "cuda"
        kind = DeviceType.CUDA if on_gpu else DeviceType.CPU
        seen = [event for event in events if event.device_type == kind and (on_gpu or event.name.startswith("aten::"))]
        spans: Counter[str] = Counter()
        for event in seen:
            spans[event.name[:90]] += event.time_range.elapsed_us() if on_gpu else event.self_cpu_time_total
        busy = sum(spans.values()) / 1e6
        return {
            "a step": len(seen) / steps, "busy": busy / seconds,
            "longest, µs a step": {name: spans[name] / steps for name, _ in spans.most_common(10)},
        }  # fmt: skip

    def parity(self, project: str) -> dict[str, float]:
        """The largest relative difference of a loss from the CPU's, over twelve steps without dropout's randomness."""
        settings = ("training.amp=off", *("model.dropout=0.0", "data.augmentation.noise=0.0") * (project == "controls"))
        rows = []
        for device in (str(self._device), "cpu"):
            live = self._trainer(project, *settings, "training.batch_size=8", device=device)
            rows.append(live.steps(12)[:, :-2].cpu())
        ours, theirs = rows
        apart = ((ours - theirs).abs() / theirs.abs().clamp(min=0.05)).nan_to_num()
        return {"first step": float(apart[0].max()), "twelve steps": float(apart.max())}

    def bad_step(self, project: str) -> dict[str, bool]:
        """Whether a step whose gradient is not a number is said to be skipped and changes nothing, by precision."""
        found = {}
        for amp in choices(self._device) if self._device.type == "cuda" else ("off",):
            live = self._trainer(project, f"training.amp={amp}", "training.batch_size=8")
            live.steps(6 if self._device.type == "cuda" else 2)  # a loss scale has settled by then
            before = state_of(live)
            batch, ctx = live.trainer.batches.look()
            for tensor in batch.values():
                if tensor.is_floating_point():
                    tensor.fill_(torch.nan)
            row = live.trainer.step(batch, ctx, live.trainer.schedule.rate(last=True))
            found[amp] = bool(row[-1] == 1) and checkpoint.same(before, state_of(live))
        return found

    def resumed(self, project: str) -> dict[str, Any]:
        """Ten steps, saved, loaded, ten more: the parts that differ from twenty in one go. None is right."""
        steps = 10 if self._device.type == "cuda" else 3
        first = self._trainer(project, "training.batch_size=8")
        first.steps(steps)
        first.trainer.checkpoints.save()
        first.steps(steps)
        second = self._trainer(project, "training.batch_size=8")
        second.run.last.write_bytes(first.run.last.read_bytes())
        resume(second.run, second.trainer)
        second.steps(steps)
        for live in (first, second):
            live.trainer.flush()
        ours, theirs = second.trainer.checkpoints.content(), first.trainer.checkpoints.content()
        parts = ("model", "optimizer", "scaler", "sums", "random")
        differ = [part for part in parts if not checkpoint.same(ours[part], theirs[part])]
        return {"differ": differ, "bytes": first.run.last.stat().st_size}

    def beside(self, project: str) -> dict[str, float]:
        """Seconds of an evaluation, of a save, and of a load."""
        live = self._trainer(project)
        live.steps(2)
        live.wait()
        found = {}
        for name, what in (
            ("evaluation", live.trainer.evaluate), ("save", live.trainer.checkpoints.save),
            ("load", lambda: live.trainer.restore(checkpoint.load(live.run.last))),
        ):  # fmt: skip
            began = time.perf_counter()
            what()
            live.wait()
            found[name] = time.perf_counter() - began
        return found

    def memory(self, project: str) -> dict[str, int]:
        """Bytes at most in five steps and in an evaluation."""
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        live = self._trainer(project)
        live.steps(5)
        live.wait()
        step = torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        live.trainer.evaluate()
        return {"step": step, "evaluation": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.memory_reserved()}

    def replayed(self, project: str, *changes: str) -> dict[str, Any]:
        """The engine's own graph of the whole step: ms, and what differs after thirty steps from those without it."""
        live, eager = (self._trainer(project, "training.graph=true", *changes) for _ in range(2))
        found: dict[str, Any] = {"why not": "" if live.trainer.step._graph else "see the log"}
        eager.trainer.step._graph = NeverReplayed()  # type: ignore[assignment]
        for name, one in (("eager", eager), ("replayed", live)):
            one.steps(30)
            one.wait()
            began = time.perf_counter()
            for _ in range(60):
                one.step(one.trainer.state.step_in_epoch)
            one.wait()
            found[f"{name}, ms"] = 1e3 * (time.perf_counter() - began) / 60
        ours, theirs = state_of(live), state_of(eager)
        found["differ"] = [part for part in ours if not checkpoint.same(ours[part], theirs[part])]
        return found

    def graph(self, project: str) -> dict[str, Any]:
        """Forward and backward, captured and replayed: µs, and whether gradients equal the eager ones."""
        live = self._trainer(project)
        live.steps(3)
        trainer = live.trainer
        batch, ctx = trainer.batches.look()
        parameters = [p for p in trainer.model.parameters() if p.requires_grad]

        def compute() -> None:
            trainer.step._backward(batch, ctx)

        def eager() -> list[Any]:
            trainer.step.optimizer.zero_grad(set_to_none=True)
            compute()
            return [None if p.grad is None else p.grad.clone() for p in parameters]

        before = random_state()
        expected = copy.copy(eager())
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                eager()
        torch.cuda.current_stream().wait_stream(side)
        trainer.step.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            compute()
        restore_random_state(before)
        graph.replay()
        torch.cuda.synchronize()
        pairs = zip(parameters, expected, strict=True)
        equal = all(checkpoint.same(p.grad, grad) for p, grad in pairs if grad is not None)
        times = {}
        for name, what in (("eager", eager), ("replay", graph.replay)):
            began = time.perf_counter()
            for _ in range(30):
                what()
            torch.cuda.synchronize()
            times[name] = 1e6 * (time.perf_counter() - began) / 30
        return {"equal": equal, **times}
