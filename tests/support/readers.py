"""Functions for the processes of `each_file`: what they are given says what happens. Imports next to nothing."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path


class Panic(BaseException):
    """As pyo3 raises it: no `Exception`."""


class Unkind:
    """Pickles on one side and fails on the other."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return int, ("no number",)


def read(item: str) -> object:
    """What `item` says, else the item twice."""
    if item == "error":
        raise ValueError("not a game:\n\x1b[31m byte 7")
    if item == "panic":
        raise Panic("index out of bounds")
    if item == "exit":
        sys.exit("a library thinks that it is the program")
    if item == "code":
        os._exit(3)
    if item.startswith("SIG"):
        os.kill(os.getpid(), signal.Signals[item])
    if item == "function":
        return lambda: 0  # does not pickle
    if item == "unkind":
        return Unkind()
    return item * 2


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(path)
        time.sleep(0.005)


def wait_for_the_next(job: tuple[Path, int]) -> int:
    """The first of two ends after the second has."""
    folder, number = job
    if number == 0:
        wait_for(folder / "1")
    (folder / str(number)).touch()
    return number


def wait_for_the_first(path: Path) -> None:
    """The item called 0 ends when its file is there, any other at once."""
    if path.name == "0":
        wait_for(path)


def die_once(path: Path) -> str:
    """Killed from outside the first time."""
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "taken"


def hang(path: Path) -> None:
    """Says its process id and never ends."""
    path.with_suffix(".part").write_text(str(os.getpid()))
    path.with_suffix(".part").rename(path)
    while True:
        signal.pause()


def imported(name: str) -> bool:
    return name in sys.modules


def length(content: bytes) -> bytes:
    return content + b"!"


def process(item: int) -> int:
    return os.getpid()
