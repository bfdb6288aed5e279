"""GPU, processor, memory and disk as bars with their numbers."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.widget import Widget

from cockpit.core.format import bar, percent
from cockpit.core.text import fit_left, plain
from engines.host.machine import Gpu, Reading

GB = 1e9
NAME_WIDTH = 7
NUMBER_WIDTH = 20


class MachineView(Widget):
    COMPONENT_CLASSES = {
        "machine--name", "machine--number", "machine--rest", "machine--note",
        "machine--gpu", "machine--memory", "machine--power", "machine--cpu", "machine--disk",
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__(id="machine", classes="pane")
        self.border_title = "Machine"
        self._reading: Reading | None = None

    def show(self, reading: Reading) -> None:
        """Take the newest reading; draws only if a number shown changes."""
        before, self._reading = self._reading, reading
        if before is None or _rows(before) != _rows(reading):
            self.refresh(layout=before is None or _height(before) != _height(reading))

    def render(self) -> Text:
        text = Text(no_wrap=True)
        if self._reading is None:
            return text
        if self._reading.no_gpu:
            text.append(f"{plain(self._reading.no_gpu)}\n", self._style("note"))
        width = max(4, self.size.width - NAME_WIDTH - NUMBER_WIDTH)
        for kind, name, fraction, numbers in _rows(self._reading):
            text.append(f"{name:<{NAME_WIDTH}}", self._style("name"))
            if kind == "note":  # a sentence in place of a bar
                text.append(f"{fit_left(numbers, max(1, self.size.width - NAME_WIDTH))}\n", self._style(kind))
                continue
            filled = bar(fraction, width)
            text.append(filled, self._style(kind))
            text.append("·" * (width - len(filled)), self._style("rest"))
            text.append(f"  {numbers}\n", self._style("number"))
        text.rstrip()
        return text

    def _style(self, kind: str) -> Style:
        return self.get_component_rich_style(f"machine--{kind}", partial=True)


Row = tuple[str, str, float, str]
"""Colour, name, fraction, numbers."""


def _height(reading: Reading) -> int:
    return len(_rows(reading)) + bool(reading.no_gpu)


def _rows(reading: Reading) -> list[Row]:
    rows: list[Row] = []
    for index, gpu in enumerate(reading.gpus):
        rows += _gpu_rows(index, gpu)
    cores = reading.cores_busy / max(reading.cores, 0.01)
    rows.append(("cpu", "CPU", round(min(cores, 1.0), 2), f"{reading.cores_busy:.1f} of {reading.cores:.3g} cores"))
    rows.append(("memory", "Memory", *_share(reading.memory_used, reading.memory_total)))
    used = reading.disk_total - reading.disk_free
    fraction = round(used / reading.disk_total, 2) if reading.disk_total else 0.0
    rows.append(("disk", "Disk", fraction, f"{reading.disk_free / GB:,.0f} GB free"))
    return rows


def _gpu_rows(index: int, gpu: Gpu) -> list[Row]:
    heat = [f"{gpu.watts:.0f} W"] if gpu.watts is not None else []
    heat += [f"{gpu.celsius} °C"] if gpu.celsius is not None else []
    if gpu.problem and gpu.memory_total is None and gpu.utilisation is None and not heat:
        return [("note", f"GPU {index}", 0.0, plain(gpu.problem))]
    return [
        ("gpu", f"GPU {index}", gpu.utilisation or 0.0, f"{_busy(gpu)}  {' '.join(heat)}"),
        ("memory", "  mem", *_share(gpu.memory_used, gpu.memory_total))
        if gpu.memory_used is not None and gpu.memory_total is not None
        else ("note", "  mem", 0.0, plain(gpu.problem)),
    ]


def _busy(gpu: Gpu) -> str:
    return "—" if gpu.utilisation is None else percent(gpu.utilisation)


def _share(used: int, total: int) -> tuple[float, str]:
    return (round(used / total, 2) if total else 0.0), f"{used / GB:.1f} / {total / GB:.0f} GB"


def in_short(reading: Reading) -> list[str]:
    """The machine in a few words, for where there is no room for bars; the most telling ones first."""
    words = [_gpu_in_short(gpu) for gpu in reading.gpus[:1]]
    words.append(f"CPU {reading.cores_busy:.1f}/{reading.cores:.3g}")
    words.append(f"mem {reading.memory_used / GB:.1f}/{reading.memory_total / GB:.0f} GB")
    return words + [plain(reading.no_gpu)] * bool(reading.no_gpu)


def _gpu_in_short(gpu: Gpu) -> str:
    if gpu.memory_used is None or gpu.memory_total is None:
        return f"GPU {_busy(gpu)}"
    return f"GPU {_busy(gpu)} · {gpu.memory_used / GB:.0f}/{gpu.memory_total / GB:.0f} GB"
