"""The devices a run can be started on, and what is on them now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cockpit.core.runs.fleet import Fleet
from cockpit.core.states import is_live
from engines.host.facts import device_name, visible_cards
from engines.host.machine import Machine

AUTO, CPU = "auto", "cpu"


@dataclass(frozen=True)
class Devices:
    gpus: tuple[str, ...]
    """The name of each GPU, in the order of their numbers."""
    busy: Mapping[str, str]
    """The run that is on a device, by the device's name."""

    @property
    def choices(self) -> tuple[str, ...]:
        """What a run can be started on: as many GPUs as are visible, by torch's numbers."""
        cards = visible_cards()
        count = len(self.gpus) if cards is None else min(len(cards), len(self.gpus))
        return (AUTO, CPU, *(f"cuda:{number}" for number in range(count)))

    def meant(self, device: str) -> str:
        """The device that a config's word stands for, as runs and queues name it."""
        if device == AUTO:
            device = "cuda" if self.gpus else CPU
        return device_name(device)

    def words(self, device: str) -> str:
        """What a person should know of a device: `cuda:0 · NVIDIA H100 · busy with spiral-…-amber`."""
        name = self.meant(device)
        number = name.removeprefix("cuda:")
        gpu = self.gpus[int(number)] if number.isdigit() and int(number) < len(self.gpus) else ""
        busy = self.busy.get(name)
        return " · ".join(part for part in (name, gpu, f"busy with {busy}" if busy else "") if part)


def look_at_devices(machine: Machine, folder: Path) -> Devices:
    """Which GPUs there are, and which live trainings of the runs in `folder` are on which device. Reads a disk."""
    fleet = Fleet(folder)
    fleet.refresh()
    trainings = [run for run in fleet.summaries() if is_live(run.state) and run.state != "queued" and not run.is_task]
    busy = {run.device: run.id for run in trainings if run.device}
    cards = [gpu.name for gpu in machine.read(folder).gpus if gpu.part_of is None]
    return Devices(tuple(cards), busy)
