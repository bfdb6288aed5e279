"""Checks a config without training: `python -P -m engines.check CONFIG [--set a.b=c …]` prints one JSON object.

It reads the data and builds the model as the engine would, runs the losses of one batch, and adds up what a run will
take. What is wrong stands in `faults`, a sentence each; `exit_code` is 2 for a faulty config, 1 for everything else.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import psutil
import torch
from torch import Tensor, nn

from engines.contract import spec as specs
from engines.contract.config import LoadedConfig, load_config
from engines.contract.errors import UserError
from engines.contract.rundir import runs_folder
from engines.contract.settings import RunConfig, Training
from engines.training.order import step_generator
from engines.training.precision import Precision, choose_device, seed_everything
from engines.training.project import Context, Project, Split
from engines.training.stages import StagePlan

ADAM_MOMENTS = 2
CHECKPOINTS_BESIDE_KEPT = 3
"""last.pt, best.pt, and the one being written."""
CGROUP = Path("/sys/fs/cgroup")


def check(config: Path, overrides: list[str]) -> dict[str, Any]:
    """Everything that can be found out up to the first fault that ends the search, and the faults."""
    found: dict[str, Any] = {"config": str(config), "faults": [], "exit_code": 0}
    try:
        _look(load_config(config, overrides), found)
    except UserError as error:
        found["faults"] += str(error).splitlines()
        found["exit_code"] = error.exit_code
    except torch.OutOfMemoryError:
        found["faults"].append(f"one batch does not fit into the memory of {found['device']}; {_SMALLER}")
    if found["faults"]:
        found["exit_code"] = found["exit_code"] or 1
    return found


_SMALLER = "lower training.batch_size, or raise training.micro_batches."


def _look(loaded: LoadedConfig, found: dict[str, Any]) -> None:
    settings, training = loaded.settings, loaded.settings.training
    found["project"] = loaded.spec.name
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
    found["steps"] = {"per_epoch": per_epoch, "epochs": training.epochs, "total": per_epoch * training.epochs}
    first_stage, on = plan.stages[0].name, plan.switches[0]
    ctx = Context(step=0, epoch=0, progress=0.0, stage=first_stage, heads=on.heads, parts=on.parts)
    first = order.indices(0, 0)[: training.batch_size // training.micro_batches]
    activations = activation_size(project, model, data, first, ctx, precision, training.seed)
    found["memory"] = _memory(device, model, trained, data_size, activations, found["faults"])
    found["disk"] = _disk(settings, size_of(project.trainable_state(model).values()), trained, found["faults"])


def size_of(tensors: Iterable[Tensor]) -> int:
    """Bytes."""
    return sum(tensor.nbytes for tensor in tensors)


def activation_size(
    project: Project[Any],
    model: nn.Module,
    data: Split,
    indices: Tensor,
    ctx: Context,
    precision: Precision,
    seed: int,
) -> int:
    """Bytes that the losses of the samples `indices: (micro_batch,) int64` keep for their backward pass."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    batch = data.train.batch(indices, step_generator(seed, 0, 0))
    model.train()
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor), precision.autocast():
        losses = project.losses(model, batch, ctx)
    assert losses  # alive until here, so that no storage was freed and its address given to another
    return sum(kept.values())


def _memory(
    device: torch.device, model: nn.Module, trained: list[nn.Parameter], data: int, activations: int, faults: list[str]
) -> dict[str, int]:
    """What training takes beyond what this process took before, and what is free, both in bytes."""
    parts = {
        "model": size_of(model.parameters()) + size_of(model.buffers()),
        "gradients": size_of(trained),
        "optimizer": ADAM_MOMENTS * size_of(trained),
        "activations": activations,
        "data": data,
    }
    total = sum(parts.values())
    # the model and the data are there already, so what is free has to hold only the rest
    available = free_memory(device) + parts["model"] + parts["data"]
    if total > available:
        faults.append(
            f"training needs about {total / 1e9:.1f} GB of memory on {device} and {available / 1e9:.1f} GB are free; "
            f"{_SMALLER}"
        )
    return {**parts, "total": total, "available": available}


def in_use(device: torch.device) -> int:
    """Bytes this process holds on `device`."""
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else psutil.Process().memory_info().rss


def free_memory(device: torch.device) -> int:
    """Bytes still free on `device`; on the CPU within the limit of the container, if it has one."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    free = psutil.virtual_memory().available
    with contextlib.suppress(OSError, ValueError):  # no control group, or `max` for no limit
        limit = int((CGROUP / "memory.max").read_text())
        free = min(free, max(0, limit - int((CGROUP / "memory.current").read_text())))
    return int(free)


def _disk(settings: RunConfig, state: int, trained: list[nn.Parameter], faults: list[str]) -> dict[str, Any]:
    """What the checkpoints take and what is free where they will lie, in bytes."""
    folder = Path(settings.output.dir).expanduser().absolute() if settings.output.dir else runs_folder()
    if settings.output.dir and folder.is_dir() and any(folder.iterdir()):
        faults.append(f"The output directory {folder} is occupied; resume the run in it, or choose another output.dir.")
    place = next(path for path in (folder, *folder.parents) if path.is_dir())
    checkpoint = state + ADAM_MOMENTS * size_of(trained)
    copies = CHECKPOINTS_BESIDE_KEPT + _kept(settings.training, settings.output.keep_epochs)
    free = shutil.disk_usage(place).free
    if copies * checkpoint > free:
        faults.append(
            f"{copies} checkpoints of {checkpoint / 1e6:,.0f} MB need {copies * checkpoint / 1e9:.1f} GB and "
            f"{free / 1e9:.1f} GB are free at {place}; free some, or choose another output.dir or COCKPIT_RUNS."
        )
    return {
        "checkpoint": checkpoint,
        "checkpoints": copies,
        "needed": copies * checkpoint,
        "free": free,
        "path": str(place),
    }


def _kept(training: Training, every: int) -> int:
    return training.epochs // every if every else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m engines.check", description="Check a config without training.")
    parser.add_argument("config", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="a.b=c", help="override a config value")
    arguments = parser.parse_args()
    with contextlib.redirect_stdout(sys.stderr):  # a project may print; only the answer goes to stdout
        found = check(arguments.config, arguments.set)
    print(msgspec.json.encode(found, enc_hook=str).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
