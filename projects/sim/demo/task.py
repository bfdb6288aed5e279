"""`cockpit data make sim OUT`: a folder of demo drives. Interrupted, it is taken up where it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from engines.tasks.folder import output_folder
from projects.sim.demo.road import make_drive
from projects.sim.drives import write_drive

NOTES = "demo.json"
GENERATOR = 1
"""Goes up when the same seed would give other data, so that old and new drives are never mixed."""


class _Order(msgspec.Struct, forbid_unknown_fields=True):
    out: Path
    drives: Annotated[int, Meta(ge=2, le=999, description="some train and some validate")] = 12
    minutes: Annotated[float, Meta(ge=0.2, le=600)] = 1.0
    seed: Annotated[int, Meta(ge=0)] = 0


def make(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Make the drives that are not there yet.

    arguments: out (folder), drives (12), minutes (1) of each, seed (0). Raises `UserError` for a bad argument and
    `DataError` for a folder that holds anything else, or that cannot be written.
    """
    order = as_struct(arguments, _Order)
    names = {f"drive_{number:03d}.npz" for number in range(order.drives)}
    settings = {"generator": GENERATOR, "minutes": order.minutes, "seed": order.seed}
    with output_folder(order.out, NOTES, settings, ours=names.__contains__) as folder:
        for number in range(order.drives):
            context.progress(number, order.drives, "drives")
            drive = f"drive_{number:03d}"
            if not folder.has(drive, f"{drive}.npz"):
                write_drive(order.out / f"{drive}.npz", make_drive(order.seed, number, order.minutes))
                folder.finish(drive)
        folder.complete()
    context.progress(order.drives, order.drives, "drives")
