"""The training batches of the steps to come, where the data asks for it gathered by a thread while the device works."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Self

import torch

from engines.training.order import step_generator
from engines.training.project import Batch, Context
from engines.training.schedule import Schedule
from engines.training.work import Work


class Batches:
    """Gathers batches from counters alone. Use around the training: no thread is left after it.

    What was gathered ahead is used where the next step has the very context it was gathered for: after an edit that
    changes it, the batch is gathered again. Nothing is gathered ahead beyond an epoch's end, where stages change.
    """

    def __init__(self, work: Work, schedule: Schedule) -> None:
        self._source, self._schedule, self._ranks = work.data.train, schedule, work.ranks
        self._by_rows = work.data.by_rows
        self._seed = work.settings.training.seed
        device = next(work.model.parameters()).device
        self._thread = ThreadPoolExecutor(1, "read-ahead", _work_on, (device,)) if work.data.read_ahead else None
        self._ahead: tuple[Context, Future[tuple[Batch, Context]]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)

    def next(self) -> tuple[Batch, Context]:
        """This rank's rows of the next step's batch, and the context they were gathered with.

        Raises what went wrong in gathering it, in whatever thread.
        """
        if self._thread is None:
            return self.look()
        if self._ahead is None or self._ahead[0] != self._schedule.context():
            self._ahead = self._submit(self._thread, 0)
        _, batch = self._ahead
        self._ahead = None if self._schedule.last_of_epoch else self._submit(self._thread, 1)
        return batch.result()

    def look(self) -> tuple[Batch, Context]:
        """The batch of the next step, of its own; at an epoch's end that of its last step."""
        self.settle()
        _, gather = self._gathering(0)
        return gather()

    def settle(self) -> None:
        """Wait until the source is not being read."""
        if self._ahead is not None:
            wait([self._ahead[1]])

    def _submit(self, thread: ThreadPoolExecutor, ahead: int) -> tuple[Context, Future[tuple[Batch, Context]]]:
        ctx, gather = self._gathering(ahead)
        return ctx, thread.submit(gather)

    def _gathering(self, ahead: int) -> tuple[Context, Callable[[], tuple[Batch, Context]]]:
        """The context of the step `ahead` of the next one, and what gathers its batch, whatever changes until then."""
        ctx, place, order = self._schedule.context(ahead), self._schedule.place(ahead), self._schedule.order

        def gather() -> tuple[Batch, Context]:
            indices = order.indices(ctx.epoch, place)
            random = step_generator(self._seed, ctx.epoch, place)
            share = self._ranks.share(len(indices))
            if share is None:
                return self._source.batch(indices, random, ctx), ctx
            rows, own = slice(share.start, share.stop), replace(ctx, share=share)
            if self._by_rows:
                return self._source.batch(indices[rows], random, own), own
            return {name: each[rows] for name, each in self._source.batch(indices, random, ctx).items()}, own

        return ctx, gather


def _work_on(device: torch.device) -> None:
    """Each thread has a GPU of its own choice."""
    if device.type == "cuda":
        torch.cuda.set_device(device)
