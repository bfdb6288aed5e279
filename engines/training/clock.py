"""Moments and spans of a training: of the host where it computes itself, of the device where that runs on its own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch

Moment = float | torch.cuda.Event


class Clock:
    """Marks moments without waiting. On a GPU a moment is when the work handed over so far is done."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def now(self) -> Moment:
        if self._device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self._device))
        return event

    @staticmethod
    def seconds(began: Moment, ended: Moment) -> float:
        """Between two moments; on a GPU it waits until it is past the second."""
        if isinstance(began, float) or isinstance(ended, float):
            assert isinstance(began, float)
            assert isinstance(ended, float)
            return ended - began
        ended.synchronize()
        return float(began.elapsed_time(ended)) / 1e3


class Spans:
    """When the parts of steps began and ended: `{"forward": [(began, ended), …]}`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.moments: dict[str, list[tuple[Moment, Moment]]] = {}

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        began = self._clock.now()
        yield
        self.moments.setdefault(name, []).append((began, self._clock.now()))

    def seconds(self) -> dict[str, float]:
        """Of each part in all, in the order they first came."""
        return {name: sum(Clock.seconds(*one) for one in moments) for name, moments in self.moments.items()}


_collecting: list[Spans] = []
"""The one that is timed into, if any."""


@contextlib.contextmanager
def collected(clock: Clock) -> Iterator[Spans]:
    """Every span inside is timed."""
    _collecting.append(Spans(clock))
    try:
        yield _collecting[-1]
    finally:
        _collecting.pop()


def span(name: str) -> AbstractContextManager[Any]:
    """A part of a step (data, forward, backward, optimizer): timed inside `collected`, named in a profiler's trace."""
    if _collecting:
        return _collecting[-1].part(name)
    if torch.autograd._profiler_enabled():  # type: ignore[attr-defined]
        return torch.profiler.record_function(name)
    return contextlib.nullcontext()
