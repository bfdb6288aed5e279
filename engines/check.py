"""Checks a config without training: `python -P -m engines.check CONFIG [--set a.b=c …] [--try [--try-seconds S]]`.

It reads the data and builds the model as the engine would, runs a few steps of every stage, at its beginning and at its
end, an evaluation and a save, and adds up what a run will take. With `--try` it trains for a minute in a directory that
it removes again, evaluates, saves and resumes, and says what that took. `--step-seconds`, `--usd-per-hour`,
`--samples` and `--count UNIT=N` give numbers in place of measured ones.

stdout gets one JSON object at the end. What is wrong stands in its `faults`, a sentence each; `exit_code` is 2 for a
faulty config, 1 for everything else. It has the sections that were reached: `data`, `parameters`, `steps`, `stages`,
`memory` (of the stage that takes most) and `disk` (bytes), `time` (seconds: `low` and `high`, null where fewer than 30
steps were measured, `likely`, `per_step`; `measured` by `steps`, by a `try`, or `given`), `cost` (US dollars; null
without a price), `given` and `measured` (which numbers are which), `on_finish` (what runs on this machine when the run
is over, a sentence each) where there is some, `micro_batches` where the config says auto (as many as it takes to fit),
`precisions` on a GPU (seconds of a step in each, and the one `chosen`), `ranks` where there are several (their `count`,
and what each takes by strategy; `memory` is then that of a rank), and `try`.

stderr gets what the project prints, and lines such as `try: 120 steps` on how far a try is. SIGINT and SIGTERM end it
with exit code 130 and nothing left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch

from engines.basics.errors import DataError, UserError
from engines.checking.disk import disk_needed, occupied, output_place
from engines.checking.duration import StageTime, StepTimes, as_tried, cost_of, run_time
from engines.checking.given import Given
from engines.checking.memory import SMALLER, fits, in_use, of_rank, size_of
from engines.checking.stages import PlannedStage, StagedRun, planned_stages
from engines.checking.steps import Built, evaluation_seconds, save_seconds
from engines.checking.trial import try_run
from engines.contract import on_finish, references
from engines.contract import spec as specs
from engines.contract.config import LoadedConfig, load_config
from engines.contract.settings import Training
from engines.training.loop import first_parts
from engines.training.out_of_memory import is_out_of_memory
from engines.training.precision import Precision, choose_device, seed_everything
from engines.training.project import Project
from engines.training.ranks import check_batches
from engines.training.stages import StagePlan
from engines.training.torchrun import ranks_here
from engines.writers import why_not

TRY_SECONDS = 60.0
INTERRUPTED = 130
NOTHING_GIVEN = Given()
Tell = Callable[[str], None]


def check(
    config: Path,
    overrides: list[str],
    *,
    given: Given = NOTHING_GIVEN,
    try_seconds: float | None = None,
    tell: Tell = lambda text: None,
) -> dict[str, Any]:
    """Everything that can be found out up to the first fault that ends the search, and the faults.

    With `try_seconds` also by trying, unless something was wrong before; `tell` hears how far that is.
    """
    found: dict[str, Any] = {"config": str(config), "faults": [], "exit_code": 0}
    try:
        loaded = load_config(config, overrides)
        given = given.in_samples(loaded)
        found["given"], found["measured"] = given.numbers(), []
        stages, beside = _look(loaded, given, found)
        if try_seconds is not None and not found["faults"]:
            stages, beside = _try(loaded, stages, found, try_seconds, tell)
        if stages and not found["faults"]:
            _add_up(loaded, given, stages, beside, found)
    except UserError as error:
        found["faults"] += str(error).splitlines()
        found["exit_code"] = error.exit_code
    except ModuleNotFoundError as error:
        found["faults"].append(f"{references.missing(error)}.")
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        found["faults"].append(f"one batch does not fit into the memory of {found['device']}; {SMALLER}")
    if found["faults"]:
        found["exit_code"] = found["exit_code"] or 1
    return found


def _look(loaded: LoadedConfig, given: Given, found: dict[str, Any]) -> tuple[list[StageTime], float]:
    """Read, build and measure; the stages and the seconds beside their steps, no stages after a fault."""
    settings = loaded.settings
    found["project"] = loaded.spec.name
    if sentences := on_finish.sentences(settings.model_dump()):
        found["on_finish"] = sentences
    torch.set_num_threads(settings.launch.threads or torch.get_num_threads())
    device = choose_device(settings.launch.device)
    found["device"] = str(device)
    check_batches(settings.training, settings.launch.nodes * ranks_here(settings.launch))
    plan = StagePlan(settings.training, loaded.spec.heads)
    seed_everything(settings.training.seed)
    began = time.monotonic()
    try:
        built = _build(loaded, device, found)
    except DataError as error:
        if given.step_seconds is None or given.samples is None:
            raise
        found["warnings"] = [f"{error} The data and the model were not checked."]
        return _without_data(settings.training, plan, given, given.samples, found), 0.0
    loading = time.monotonic() - began
    staged = _staged(built, plan, given, found)
    memory = _fit(staged, found)
    if found["faults"]:
        return [], 0.0
    stages, beside = _measure(staged, memory, given, found)
    return stages, loading + beside


def _build(loaded: LoadedConfig, device: torch.device, found: dict[str, Any]) -> Built:
    """Data and model. Raises `DataError` for data that cannot be read."""
    settings = loaded.settings
    project: Project[Any] = specs.load(loaded.spec.project)()
    before = in_use(device)
    data = project.data(settings, device)
    data_size = max(0, in_use(device) - before)
    found["data"] = dict(data.summary)
    model = project.model(settings, data).to(device)
    found["parameters"] = {
        "total": sum(parameter.numel() for parameter in model.parameters()),
        "trainable": sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
    }
    precision = Precision(settings.training.amp, device)
    parts = first_parts(settings.training)
    return Built(settings, loaded.spec, project, device, data, data_size, model, precision, parts)


def _without_data(
    training: Training, plan: StagePlan, given: Given, samples: int, found: dict[str, Any]
) -> list[StageTime]:
    """The stages by given numbers alone."""
    assert given.step_seconds is not None
    times = StepTimes.given(given.step_seconds)
    stages = planned_stages(plan, training, [max(1, samples // stage.batch_size) for stage in plan.trainings])
    _tell_steps(plan, stages, training.epochs, found)
    return [StageTime(stage.name, stage.epochs, stage.steps_per_epoch, times, times) for stage in stages]


def _staged(built: Built, plan: StagePlan, given: Given, found: dict[str, Any]) -> StagedRun:
    """The stages that the run reaches."""
    training = built.settings.training
    orders = plan.orders(built.project, built.settings, built.data)
    plan.rehearse(built.project, built.model)
    share = given.samples / len(built.data.train) if given.samples else 1.0
    steps = [max(1, int(order.steps_per_pass * share)) for order in orders]
    stages = planned_stages(plan, training, steps)
    _tell_steps(plan, stages, training.epochs, found)
    return StagedRun(built, plan, orders, stages)


def _fit(staged: StagedRun, found: dict[str, Any]) -> list[dict[str, int]]:
    """The memory of every stage; whether the one that takes most fits, and the checkpoints."""
    built, faults = staged.built, found["faults"]
    memory = staged.fitting_memory()
    if built.settings.training.micro_batches == "auto":
        found["micro_batches"] = staged.built.parts
    most = max(memory, key=lambda parts: parts["total"])
    launch = built.settings.launch
    if launch.several:
        ranks, blocks = ranks_here(launch) * launch.nodes, built.project.blocks(built.model)
        each = {name: of_rank(most, name, ranks, built.model, blocks) for name in ("ddp", "fsdp2")}
        found["ranks"] = {"count": ranks, **{name: parts["total"] for name, parts in each.items()}}
        most = each[launch.strategy]
    found["memory"] = fits(built.device, most, faults)
    faults += occupied(built.settings)
    found["warnings"] = [sentence for name in built.settings.output.writers if (sentence := why_not(name))]
    moments = max(parts["optimizer"] for parts in memory)
    checkpoint = size_of(built.project.trainable_state(built.model).values()) + moments
    found["disk"] = disk_needed(built.settings, checkpoint, faults)
    found["measured"].append("memory")
    return memory


def _measure(
    staged: StagedRun, memory: list[dict[str, int]], given: Given, found: dict[str, Any]
) -> tuple[list[StageTime], float]:
    """The stages, and the seconds of all evaluations and saves."""
    built = staged.built
    stages = staged.times(given.step_seconds)
    if precisions := staged.precisions():
        found["precisions"] = {"chosen": built.precision.name, "seconds": precisions}
    for told, stage, parts in zip(found["stages"], stages, memory, strict=True):
        told |= {"memory": parts["total"], "begin": stage.begin.seconds(), "end": stage.end.seconds()}
    evaluation = evaluation_seconds(built, staged.ends(staged.stages[0])[0])
    state = built.project.trainable_state(built.model)
    save = save_seconds(state, found["disk"]["checkpoint"], output_place(built.settings))
    found["measured"] += [*["steps"] * (given.step_seconds is None), "evaluation", *["save"] * (save is not None)]
    found["evaluation_seconds"], found["save_seconds"] = evaluation, save
    return stages, _evaluations_and_saves(found["steps"], evaluation, save)


def _evaluations_and_saves(steps: Mapping[str, int], evaluation: float | None, save: float | None) -> float:
    """Seconds of all of them, by those of one; None: it was not seen."""
    return steps["evaluations"] * (evaluation or 0.0) + steps["epochs"] * (save or 0.0)


def _tell_steps(plan: StagePlan, stages: list[PlannedStage], epochs: int, found: dict[str, Any]) -> None:
    """`steps` and `stages`; the steps of an epoch are those of the first stage."""
    found["steps"] = {
        "per_epoch": stages[0].steps_per_epoch,
        "epochs": epochs,
        "total": sum(stage.epochs * stage.steps_per_epoch for stage in stages),
        "evaluations": plan.evaluations(epochs),
    }
    found["stages"] = [
        {"name": stage.name, "epochs": stage.epochs, "steps_per_epoch": stage.steps_per_epoch} for stage in stages
    ]


def _try(
    loaded: LoadedConfig, stages: list[StageTime], found: dict[str, Any], seconds: float, tell: Tell
) -> tuple[list[StageTime], float]:
    """The stages and what is beside them, as they are after what was measured in a try."""
    gc.collect()  # what was looked at must not count as memory of the try
    settings, faults = loaded.settings, found["faults"]
    found["try"] = tried = try_run(loaded, output_place(settings), seconds, tell, faults)
    if tried["checkpoint"] is not None:
        found["disk"] = disk_needed(settings, tried["checkpoint"], faults)
    seen = tried["evaluation_seconds"], tried["save_seconds"]
    beside = tried["loading_seconds"] + _evaluations_and_saves(found["steps"], *seen)
    if (seconds := tried["seconds_per_step"]) is None:
        return [], beside
    return as_tried(stages, StepTimes(**seconds, steps=tried["timed_steps"])), beside


def _add_up(loaded: LoadedConfig, given: Given, stages: list[StageTime], beside: float, found: dict[str, Any]) -> None:
    """`time` and `cost` of the whole run."""
    measured = "try" if "try" in found else "steps" if given.step_seconds is None else "given"
    found["time"] = run_time(stages, beside, measured)
    cost = loaded.settings.cost
    found["cost"] = cost_of(found["time"], cost, given.usd_per_hour or cost.usd_per_hour)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m engines.check", description="Check a config without training.")
    parser.add_argument("config", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="a.b=c", help="override a config value")
    parser.add_argument("--try", action="store_true", dest="try_", help="run steps, an evaluation, a save and a resume")
    parser.add_argument("--try-seconds", type=float, default=TRY_SECONDS, metavar="S", help="how long to run steps")
    parser.add_argument("--step-seconds", type=float, metavar="S", help="duration of a step, instead of measuring it")
    parser.add_argument(
        "--usd-per-hour", type=float, metavar="USD", help="price of the machine, instead of the config's"
    )
    parser.add_argument("--samples", type=int, metavar="N", help="number of training samples, instead of counting them")
    parser.add_argument("--count", action="append", default=[], metavar="UNIT=N", help="the same in a project's unit")
    arguments = parser.parse_args()
    counts = {unit: int(number) for unit, _, number in (count.partition("=") for count in arguments.count)}
    try:
        with contextlib.redirect_stdout(sys.stderr):  # a project may print; only the answer goes to stdout
            found = check(
                arguments.config,
                arguments.set,
                given=Given(arguments.step_seconds, arguments.usd_per_hour, arguments.samples, counts),
                try_seconds=arguments.try_seconds if arguments.try_ else None,
                tell=_tell,
            )
    except KeyboardInterrupt:
        return INTERRUPTED
    print(msgspec.json.encode(found, enc_hook=str).decode())
    return 0


def _tell(text: str) -> None:
    print(f"try: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
