"""Facts of this host that queues and records name: its boot, and the device that a config's word means on it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path


def boot_id() -> str:
    """Changes with every boot of the machine; empty where the system tells none."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def device_names(device: str, ranks: int | str, environment: Mapping[str, str] = os.environ) -> list[str]:
    """The devices that a run takes here, in order; `ranks`: a number, or `auto` for every GPU."""
    first = device_name(device, environment)
    if ranks == 1 or not first.startswith("cuda:"):
        return [first]
    cards = visible_cards(environment)
    count = int(ranks) if ranks != "auto" else gpu_count() if cards is None else len(cards)
    return [device_name(f"cuda:{number}", environment) for number in range(max(1, count))]


def device_name(device: str, environment: Mapping[str, str] = os.environ) -> str:
    """The device that `launch.device` means here: `cpu`, or `cuda:1` as the driver counts.

    `auto` is the first GPU there is, else the CPU. Where $CUDA_VISIBLE_DEVICES hides cards, torch's `cuda:0` is the
    first card it names, by its number or its UUID. A word that is no device stays as it is, but for what a file name
    could not hold.
    """
    cards = visible_cards(environment)
    if device in ("", "auto"):
        device = "cuda" if (_has_gpu() if cards is None else cards) else "cpu"
    kind, _, index = device.partition(":")
    if kind == "cuda":
        place = int(index) if index.isdecimal() else 0
        hidden = cards is not None and place >= len(cards)  # the engine refuses it: it must not queue for a card
        device = f"cuda:{place}-hidden" if hidden else f"cuda:{_number(cards[place]) if cards else place}"
    return re.sub(r"[^\w:-]", "_", device)


def visible_cards(environment: Mapping[str, str] = os.environ) -> list[str] | None:
    """The cards that $CUDA_VISIBLE_DEVICES names, by number or UUID, in torch's order; None where it hides none."""
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    named = None if visible is None else visible.replace(" ", "").split(",")
    return None if named is None else [card for card in named if card not in ("", "-1")]


def _number(card: str) -> str:
    """The number of a card that may be named by its UUID (`GPU-…`); the name itself where the driver knows none."""
    if card.isdecimal():
        return card
    import pynvml

    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        for number in range(pynvml.nvmlDeviceGetCount()):
            uuid: str = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(number))
            if uuid.startswith(card):  # CUDA takes a beginning, too
                return str(number)
    return card


def gpu_count() -> int:
    """GPUs of this machine; 0 where no driver answers."""
    import pynvml

    try:
        pynvml.nvmlInit()
        count: int = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError:
        return 0
    return count


def _has_gpu() -> bool:
    return gpu_count() > 0


def gpu_model(device: str) -> str:
    """Name of the card, or of the instance of one, that `device_name` gave, as `NVIDIA H200`; empty where none is."""
    kind, _, card = device.partition(":")
    if kind != "cuda":
        return ""
    import pynvml

    try:
        pynvml.nvmlInit()
        by_number = card.isdecimal()
        handle = pynvml.nvmlDeviceGetHandleByIndex(int(card)) if by_number else pynvml.nvmlDeviceGetHandleByUUID(card)
        name = pynvml.nvmlDeviceGetName(handle)
    except pynvml.NVMLError:
        return ""
    return name.decode() if isinstance(name, bytes) else str(name)
