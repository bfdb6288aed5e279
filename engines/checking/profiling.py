"""Where the time of a step goes: `cockpit check CONFIG --profile`, a task of every project.

The trainer of the config steps 50 times, timed by part, and 50 times more under torch's profiler. The run of this task
gets a report (where the time goes, the longest operations, what to change) and trace.json.gz, which ui.perfetto.dev
opens.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]

from engines.basics import yaml12
from engines.contract.config import load_config
from engines.contract.events import EventWriter
from engines.contract.rundir import RunDirectory
from engines.contract.tables import Table
from engines.runtime.listener import CommandListener
from engines.tasks.interactive import InteractiveContext
from engines.training import engine
from engines.training.clock import collected
from engines.training.loop import Trainer

WARM_UP, STEPS = 10, 50
TRACE = "trace.json.gz"
LONGEST = 10
MUCH_DATA, MUCH_IDLE, MUCH_BUSY, MUCH_OPTIMIZER = 0.2, 0.4, 0.7, 0.3
"""Shares of a step from which something is worth changing."""


@dataclass(frozen=True)
class Profile:
    """What was measured, per step."""

    device: str
    """cpu or cuda."""
    amp: str
    step: float
    """Seconds, without the profiler."""
    parts: Mapping[str, float]
    """Seconds of data, forward, backward and optimizer."""
    busy: float | None
    """Share of the time in which the GPU computes; None without one."""
    launches: float
    """Kernels, or operations on a CPU."""
    longest: Mapping[str, float]
    """Seconds of the kernels, or operations, that take longest."""


def profile(arguments: Mapping[str, Any], context: InteractiveContext) -> None:
    """Measure the config in `arguments`, write the trace and the report. Raises `UserError` as a training does."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(yaml12.write({**arguments["config"]}))
        loaded = load_config(path, [f"training.log_every={STEPS}"])
        run = RunDirectory(Path(folder) / "run")
        run.make()
        events = EventWriter(run.events, 1)
        try:
            trainer = engine.load(run, loaded, events, CommandListener(run, 1, events))
            with trainer.batches:
                found = measured(trainer, context, context.folder / TRACE)
        finally:
            events.close()
    context.report(tables(found))
    for line in advice(found):
        context.log(line)


def measured(trainer: Trainer, context: InteractiveContext, trace: Path) -> Profile:
    """Warm up, time the parts, then profile; `trace` is written."""
    device = next(trainer.model.parameters()).device

    def steps(count: int, done: int) -> float:
        """Seconds of so many steps; `done` before them."""
        began = time.perf_counter()
        for number in range(count):
            if trainer.schedule.epoch_is_trained:  # its first stage again, from the beginning
                trainer.state.step_in_epoch = 0
            trainer.one_step()
            if trainer.step_log.due:
                trainer.flush()
            context.progress(done + number + 1, WARM_UP + 2 * STEPS, "steps")
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - began

    steps(WARM_UP, 0)
    with collected(trainer.clock) as spans:
        seconds = steps(STEPS, WARM_UP)
    parts = {name: whole / STEPS for name, whole in spans.seconds().items()}
    on_gpu = device.type == "cuda"
    kinds = [torch.profiler.ProfilerActivity.CPU, *[torch.profiler.ProfilerActivity.CUDA] * on_gpu]
    with torch.profiler.profile(activities=kinds) as profiler:
        profiled = steps(STEPS, WARM_UP + STEPS)
    profiler.export_chrome_trace(str(trace))
    wanted = DeviceType.CUDA if on_gpu else DeviceType.CPU
    longest, launches = Counter[str](), 0
    for event in profiler.events() or ():
        if event.device_type == wanted and (on_gpu or event.name.startswith("aten::")):
            launches += 1
            longest[event.name] += event.time_range.elapsed_us() if on_gpu else event.self_cpu_time_total
    busy = min(1.0, longest.total() / 1e6 / profiled) if on_gpu else None
    return Profile(
        device.type, trainer.step.precision.name, seconds / STEPS, parts, busy, launches / STEPS,
        {name: whole / 1e6 / STEPS for name, whole in longest.most_common(LONGEST)},
    )  # fmt: skip


def tables(found: Profile) -> dict[str, Table]:
    """The report: times in ms of a step, shares in per cent."""
    rest = max(0.0, found.step - sum(found.parts.values()))
    rows = [
        (name, round(1e3 * seconds, 3), round(100 * seconds / found.step, 1))
        for name, seconds in {**found.parts, "rest (log, commands)": rest, "whole step": found.step}.items()
    ]
    what = "kernels" if found.device == "cuda" else "operations"
    note = f"{found.launches:.0f} {what} per step; {TRACE} in the run's folder opens in ui.perfetto.dev."
    if found.busy is not None:
        idle = 1 - found.busy
        rows.append(("idle GPU, by the profiler", round(1e3 * idle * found.step, 3), round(100 * idle, 1)))
    longest = tuple((name[:100], round(1e3 * seconds, 4)) for name, seconds in found.longest.items())
    return {
        "where the time goes": Table(("part", "ms", "% of a step"), tuple(rows), note),
        f"longest {what}": Table((what[:-1], "ms per step"), longest),
        "what to change": Table(("advice",), tuple((line,) for line in advice(found))),
    }


def advice(found: Profile) -> list[str]:
    """What would make a step shorter, by what was measured, a sentence each."""
    share = {name: seconds / found.step for name, seconds in found.parts.items()}
    lines = []
    if share.get("data", 0) > MUCH_DATA:
        lines.append(
            f"gathering a batch takes {share['data']:.0%} of a step: turn augmentation down, or let the project read "
            "ahead (Split.read_ahead)."
        )
    if found.busy is not None and 1 - found.busy > MUCH_IDLE:
        lower = " training.amp=tf32 launches fewer kernels than bf16;" if found.amp in ("bf16", "fp16") else ""
        lines.append(
            f"the GPU is idle {1 - found.busy:.0%} of the time, and a step has {found.launches:.0f} kernels:{lower} "
            "training.compile=true joins some, training.graph=true launches all at once where the project allows it; a "
            "larger training.batch_size uses the rest, with another recipe."
        )
    if found.busy is not None and found.busy > MUCH_BUSY and found.amp == "off":
        lines.append("the GPU is busy in fp32: try training.amp=tf32 or bf16; `cockpit check` times them.")
    if share.get("optimizer", 0) > MUCH_OPTIMIZER:
        lines.append(
            f"the optimizer takes {share['optimizer']:.0%} of a step: a larger training.batch_size needs fewer of them."
        )
    return lines or ["nothing stands out: forward and backward passes take the time."]
