"""`--try`: the real loop for a while, then one evaluation, one save and a resume from it, and what each took.

It works in a run directory of its own on the volume where the run would lie, and removes it, also after a Ctrl-C;
what a kill left behind is removed by the next try.
"""

from __future__ import annotations

import contextlib
import itertools
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from engines.basics.errors import DataError
from engines.basics.jsonl import RecordFollower
from engines.basics.lock import RunLock, lock_holder
from engines.checking.driver import ATTEMPT, Driver
from engines.checking.duration import StepTimes, recorded_step_times
from engines.contract import events as ev
from engines.contract.config import LoadedConfig
from engines.contract.rundir import RunDirectory
from engines.contract.steps import DATA_WAIT, read_series
from engines.runtime.listener import CommandListener
from engines.runtime.progress import StopRequested
from engines.training import checkpoint, engine
from engines.training.precision import choose_device
from engines.training.saving import Diverged

PREFIX = ".cockpit-try-"
Tell = Callable[[str], None]


def try_run(loaded: LoadedConfig, place: Path, seconds: float, tell: Tell, faults: list[str]) -> dict[str, Any]:
    """Train for about `seconds` below `place` and go on from the checkpoint; what was measured, and every fault.

    `tell` hears what goes on, in a few words. Raises `UserError`, and KeyboardInterrupt after SIGINT or SIGTERM, with
    nothing left behind.
    """
    with _signals_interrupt(), _temporary_run(place) as run:
        found = _train(loaded, run, seconds, tell, faults)
        if run.last.is_file():
            tell("resuming")
            found |= _resume(loaded, run, faults)
        return found


def _train(loaded: LoadedConfig, run: RunDirectory, seconds: float, tell: Tell, faults: list[str]) -> dict[str, Any]:
    began = time.monotonic()
    with _listening(run, ATTEMPT) as (events, listener):
        tell("loading")
        device = choose_device(loaded.settings.launch.device)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        trainer = engine.load(run, loaded, events, listener)
        listener.step = lambda: trainer.state.step
        trainer.room.waits = False
        loading = time.monotonic() - began
        driver = Driver(run, listener, seconds, tell)
        try:
            with driver:
                trainer.train()
        except Diverged as error:
            faults.append(f"{error}.")
        except OSError as error:
            faults.append(f"No checkpoint could be written at {run.path.parent.parent}: {error.strerror or error}.")
        measured = _peak_memory(device)
    if listener.signalled and not driver.unheard:
        raise KeyboardInterrupt
    said: RecordFollower[ev.Event] = RecordFollower(run.events, ev.decoder)
    spoken = said.poll()
    faults += [f"{event.text}." for event in spoken if isinstance(event, ev.Alert) and event.level == "error"]
    steps = recorded_step_times(run.steps)
    saves = [event for event in spoken if isinstance(event, ev.Checkpoint)]
    evaluations = phase_seconds(spoken, "evaluating")
    return {
        "steps": trainer.state.step,
        "seconds_per_step": steps.seconds() if steps else None,
        "timed_steps": steps.steps if steps else 0,
        "samples_per_second": loaded.settings.training.batch_size / steps.median if steps else None,
        "data_wait": _data_wait(run, steps),
        **measured,
        "loading_seconds": loading,
        "evaluation_seconds": mean(evaluations),
        "checkpoint": saves[-1].size if saves else None,
        "save_seconds": mean([save.seconds for save in saves]),
    }


def _resume(loaded: LoadedConfig, run: RunDirectory, faults: list[str]) -> dict[str, Any]:
    """Load everything again, go on from last.pt, and compare what would be saved now with what was."""
    began = time.monotonic()
    with _listening(run, ATTEMPT + 1) as (events, listener):
        trainer = engine.load(run, loaded, events, listener)
        engine.resume(run, trainer)
        seconds = time.monotonic() - began
        saved = checkpoint.load(run.last)
        different = [
            name for name, value in trainer.checkpoints.content().items() if not checkpoint.same(saved[name], value)
        ]
    if listener.signalled:
        raise KeyboardInterrupt
    if different:
        faults.append(f"A resume does not restore what was saved: {', '.join(different)} differ.")
    return {"resume_seconds": seconds, "resumed_equal": not different}


def phase_seconds(events: list[ev.Event], name: ev.PhaseName) -> list[float]:
    """How long each phase called `name` lasted, up to the phase after it."""
    phases = [event for event in events if isinstance(event, ev.Phase)]
    return [after.time - phase.time for phase, after in itertools.pairwise(phases) if phase.phase == name]


def _data_wait(run: RunDirectory, steps: StepTimes | None) -> float | None:
    """Of the time of the steps that was spent on making their batches, 0 to 1."""
    _, waits = read_series(run.steps, DATA_WAIT)
    return min(1.0, float(waits[-steps.steps :].mean()) / steps.median) if steps is not None else None


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _peak_memory(device: torch.device) -> dict[str, Any]:
    if device.type == "cuda":
        return {"peak_memory": torch.cuda.max_memory_allocated(device), "peak_memory_of": "GPU"}
    return {"peak_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "peak_memory_of": "process"}


@contextlib.contextmanager
def _listening(run: RunDirectory, attempt: int) -> Iterator[tuple[ev.EventWriter, CommandListener]]:
    """As an engine hears commands and signals, which are noted in `signalled`."""
    events = ev.EventWriter(run.events, attempt)
    try:
        with _signals_kept(), CommandListener(run, attempt, events) as listener:
            yield events, listener
    except StopRequested:  # by a project that reads its data
        raise KeyboardInterrupt from None
    finally:
        events.close()


@contextlib.contextmanager
def _temporary_run(place: Path) -> Iterator[RunDirectory]:
    """A run directory in a folder that no list of runs takes for one. Raises `DataError` where none can be made."""
    for stale in place.glob(f"{PREFIX}*"):
        if lock_holder(stale / "run" / "engine.lock") is None:
            shutil.rmtree(stale, ignore_errors=True)
    try:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    except OSError as error:
        raise DataError(
            f"{place} cannot be written ({error.strerror}); choose another output.dir or set COCKPIT_RUNS to a folder "
            "you can write to."
        ) from None
    run = RunDirectory(folder / "run")
    lock = RunLock(run.lock)
    try:
        run.make()
        lock.acquire()
        yield run
    finally:
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _signals_interrupt() -> Iterator[None]:
    """SIGTERM is a Ctrl-C, inside the `with`."""
    with _signals_kept():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _interrupt)
        yield


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """What is set for signals inside the `with` is undone after it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
