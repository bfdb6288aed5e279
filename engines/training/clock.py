"""Moments and spans of a training: of the host where it computes itself, of the device where that runs on its own."""

from __future__ import annotations

import contextlib
import time
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


def span(name: str) -> AbstractContextManager[Any]:
    """A part of a step (data, forward, backward, optimizer) in the trace of a profiler; nothing where none runs."""
    if torch.autograd._profiler_enabled():  # type: ignore[attr-defined]
        return torch.profiler.record_function(name)
    return contextlib.nullcontext()
