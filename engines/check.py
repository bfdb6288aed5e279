"""Checks a config without training: `python -P -m engines.check CONFIG [--set a.b=c …] [--try [--try-seconds S]]`.

It reads the data and builds the model as the engine would, runs the losses of one batch and a few steps, and adds up
what a run will take. With `--try` it trains for a minute in a directory that it removes again, evaluates, saves and
resumes, and tells what that took.

stdout gets one JSON object at the end. What is wrong stands in its `faults`, a sentence each; `exit_code` is 2 for a
faulty config, 1 for everything else. It has the sections that were reached: `data`, `parameters`, `steps`, `memory` and
`disk` (bytes), `time` (seconds: `low`, `likely`, `high`, `per_step`; `measured` by `steps` or by a `try`), `cost` (US
dollars; null without a price), `on_finish` where it has one, and `try`.

stderr gets what the project prints, and lines such as `try: 120 steps` on how far a try is. SIGINT and SIGTERM end it
with exit code 130 and nothing left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch

from engines.basics.errors import UserError
from engines.checking.disk import disk_needed, occupied, output_place
from engines.checking.duration import cost_of, rough_time, tried_time
from engines.checking.memory import ADAM_MOMENTS, SMALLER, activation_size, in_use, memory_needed, size_of
from engines.checking.steps import timed_steps
from engines.checking.trial import try_run
from engines.contract import on_finish, references
from engines.contract import spec as specs
from engines.contract.config import LoadedConfig, load_config
from engines.training.precision import Precision, choose_device, seed_everything
from engines.training.project import Context, Project
from engines.training.stages import StagePlan
from engines.writers import why_not

TRY_SECONDS = 60.0
INTERRUPTED = 130
Tell = Callable[[str], None]


def check(
    config: Path, overrides: list[str], *, try_seconds: float | None = None, tell: Tell = lambda text: None
) -> dict[str, Any]:
    """Everything that can be found out up to the first fault that ends the search, and the faults.

    With `try_seconds` also by trying, unless something was wrong before; `tell` hears how far that is.
    """
    found: dict[str, Any] = {"config": str(config), "faults": [], "exit_code": 0}
    try:
        loaded = load_config(config, overrides)
        _look(loaded, found, measure=try_seconds is None)
        if try_seconds is not None and not found["faults"]:
            _try(loaded, found, try_seconds, tell)
    except UserError as error:
        found["faults"] += str(error).splitlines()
        found["exit_code"] = error.exit_code
    except ModuleNotFoundError as error:
        found["faults"].append(f"{references.missing(error)}.")
    except torch.OutOfMemoryError:
        found["faults"].append(f"one batch does not fit into the memory of {found['device']}; {SMALLER}")
    if found["faults"]:
        found["exit_code"] = found["exit_code"] or 1
    return found


def _look(loaded: LoadedConfig, found: dict[str, Any], *, measure: bool) -> None:
    settings, training = loaded.settings, loaded.settings.training
    found["project"] = loaded.spec.name
    if (command := settings.cost.on_finish) is not None:
        found["on_finish"] = on_finish.words(command)
    device = choose_device(settings.launch.device)
    found["device"] = str(device)
    plan = StagePlan(training, loaded.spec.heads)
    precision = Precision(training.amp, device)
    seed_everything(training.seed)
    project: Project[Any] = specs.load(loaded.spec.project)()
    before = in_use(device)
    data = project.data(settings, device)
    data_size = max(0, in_use(device) - before)
    found["data"] = dict(data.summary)
    model = project.model(settings, data).to(device)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    found["parameters"] = {
        "total": sum(parameter.numel() for parameter in model.parameters()),
        "trainable": sum(parameter.numel() for parameter in trained),
    }
    order = plan.orders(project, settings, data)[0]
    plan.rehearse(project, model)
    per_epoch = training.steps_per_epoch or order.steps_per_pass
    found["steps"] = {
        "per_epoch": per_epoch,
        "epochs": training.epochs,
        "total": per_epoch * training.epochs,
        "evaluations": plan.evaluations(training.epochs),
    }
    first_stage, on = plan.stages[0].name, plan.switches[0]
    ctx = Context(step=0, epoch=0, progress=0.0, stage=first_stage, heads=on.heads, parts=on.parts, cfg=settings)
    first = order.indices(0, 0)[: training.batch_size // training.micro_batches]
    activations = activation_size(project, model, data, first, ctx, precision, training.seed)
    found["memory"] = memory_needed(device, model, trained, data_size, activations, found["faults"])
    found["faults"] += occupied(settings)
    found["warnings"] = [sentence for name in settings.output.writers if (sentence := why_not(name))]
    checkpoint = size_of(project.trainable_state(model).values()) + ADAM_MOMENTS * size_of(trained)
    found["disk"] = disk_needed(settings, checkpoint, found["faults"])
    if measure and not found["faults"]:
        step = timed_steps(project, model, data, order, ctx, precision, settings, loaded.spec)
        found["time"] = rough_time(step, found["steps"]["total"])
        found["cost"] = cost_of(found["time"], settings.cost)


def _try(loaded: LoadedConfig, found: dict[str, Any], seconds: float, tell: Tell) -> None:
    """Replaces what was reckoned by what was measured."""
    gc.collect()  # what was looked at must not count as memory of the try
    settings, faults = loaded.settings, found["faults"]
    found["try"] = tried = try_run(loaded, output_place(settings), seconds, tell, faults)
    if tried["checkpoint"] is not None:
        found["disk"] = disk_needed(settings, tried["checkpoint"], faults)
    if tried["seconds_per_step"] is not None:
        found["time"] = tried_time(tried, found["steps"])
        found["cost"] = cost_of(found["time"], settings.cost)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m engines.check", description="Check a config without training.")
    parser.add_argument("config", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="a.b=c", help="override a config value")
    parser.add_argument("--try", action="store_true", dest="try_", help="train for a while, evaluate, save, resume")
    parser.add_argument("--try-seconds", type=float, default=TRY_SECONDS, metavar="S", help="how long to step")
    arguments = parser.parse_args()
    try:
        with contextlib.redirect_stdout(sys.stderr):  # a project may print; only the answer goes to stdout
            found = check(
                arguments.config,
                arguments.set,
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
