"""The torch side of a project: what the training engine asks of it, with the defaults most projects keep.

A project subclasses `Project` and overrides what it needs; `docs/add-a-project.md` walks through one.
"""

from __future__ import annotations

import fnmatch
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from engines.basics.errors import UserError, nearest
from engines.contract.settings import RunConfig
from engines.contract.tables import Cell as Cell
from engines.contract.tables import Table as Table
from engines.training.draws import Share
from engines.training.order import Order, ShuffledOrder
from engines.training.samples import Ranges, Samples

Config = TypeVar("Config", bound=RunConfig)
Batch = dict[str, Tensor]
"""Named tensors of one batch, on the run's device; the first dimension of each is the batch."""


@dataclass(frozen=True, slots=True)
class Loss:
    """An unweighted loss as a sum and what to divide it by, both on the device and without a host sync.

    total: scalar tensor, the sum over everything that counts (attached to the graph even when nothing does).
    count: scalar tensor, how many elements were summed, or the sum of their weights; the engine adds both over
        micro-batches, then divides. Must depend on the batch alone, never on the model.
    scale: scalar tensor, a factor on the gradient alone (1 / a running RMS): what is logged, shown and validated is the
        loss without it. Its head says `scaled=True`. With micro-batches each part has its own.
    """

    total: Tensor
    count: Tensor
    scale: Tensor | None = None


def mean(totals: Tensor, counts: Tensor) -> Tensor:
    """`totals / counts`, and the total itself where nothing counts; a count may be a sum of weights below 1."""
    return totals / torch.where(counts > 0, counts, 1.0)


class Source(Protocol):
    """Training or validation samples that are gathered as whole batches."""

    def __len__(self) -> int:
        """Number of samples (windows)."""
        ...

    def batch(self, indices: Tensor, rng: np.random.Generator | None, ctx: Context | None = None) -> Batch:
        """The samples `indices: (batch,) int64`, gathered at once.

        `rng` drives augmentation and history dropout; None (evaluation) means neither. The engine gives the `ctx` that
        the losses of this batch get (a curriculum that hardens); None is for reports, which are outside the run.
        """
        ...


@dataclass(frozen=True)
class Split:
    """Checked data, divided into training and validation."""

    train: Source
    validation: Source
    summary: Mapping[str, Any] = field(default_factory=dict)
    """What the log says about the data (sessions, windows, support a control …)."""
    read_ahead: bool = False
    """Gather the next training batch in a thread while the device works: for data that is read or decoded per batch.
    The thread calls nothing but `train.batch`, one call at a time, and never during an evaluation."""
    by_rows: bool = False
    """Each of several ranks gathers only its own rows of a batch; False: the whole batch, of which it keeps its rows.
    Set it where `train.batch` of some rows gives the same as those rows of the whole batch: it draws no random numbers,
    or draws them through `ctx.share`."""


@dataclass(frozen=True)
class Context:
    """Where in the run a loss or an evaluation is computed."""

    step: int
    epoch: int
    progress: float
    """Share of the whole run done, 0 to 1."""
    stage: str
    heads: frozenset[str]
    """Loss terms that are on in this stage."""
    parts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Of those heads, the ones that are on in part only, each with its parts that are on."""
    cfg: Any = None
    """The run's settings, the project's own model of them."""
    share: Share | None = None
    """The rows of the batch that this rank has, and random numbers that are the same for a row on any number of ranks
    (`engines.training.draws`). None on one rank."""


Piece = tuple[float, float, str]
"""How much of something is done, of how much, and of what: `(3, 20, "episodes")`."""
ENLARGE = 4
"""Validation batches are this much larger than training batches: no gradients are kept."""


@dataclass(frozen=True)
class Result:
    """What an evaluation found."""

    values: Mapping[str, float | None]
    """Validation values by key; a table column `validation.<key>` shows one. None: no support."""
    score: float | None
    """What best.pt and early stopping go by, higher is better. None: cannot be scored."""
    review: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Arrays for the threshold review: scores, targets, masks, groups."""
    tables: Mapping[str, Table] = field(default_factory=dict)


class Evaluation(ABC):
    """Collects one pass over the validation source. Runs under inference mode, model in eval mode, fp32."""

    kept: list[Any] | None = None
    """What `add` keeps, one entry a batch, of tensors in mappings, lists and tuples. Several ranks then divide the
    batches, and rank 0 gets all entries in the order of the batches. None: rank 0 adds all batches itself."""

    @abstractmethod
    def add(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        """Run the model on one batch, keep what `result` needs, and give the unweighted losses."""

    def pass_over(self, count: int) -> None:  # noqa: B027  (most draw nothing)
        """In the place of `add` for a batch of `count` samples that another rank adds: draw what `add` draws."""

    def after(self, model: nn.Module, ctx: Context) -> Generator[Piece]:
        """More of the evaluation once every batch was added, such as rollouts or played episodes, in pieces.

        What it yields is shown as progress; a stop is heard there, and closes it. `result` comes after its end.
        """
        yield from ()

    @abstractmethod
    def result(self) -> Result:
        """The metrics over everything that was added, and that `after` has found."""


class Project(ABC, Generic[Config]):
    """One thing to train. The engine makes an instance with no arguments."""

    graph_safe: bool = False
    """Whether a step can be replayed as a CUDA graph (training.graph): `losses` reads of `ctx` only the heads that are
    on, waits for nothing, draws random numbers on the device, and launches the same for every batch of a shape."""
    edition: int = 1
    """Which of the spec's editions the run began with; the engine sets it before it asks for `data`."""

    def data_progress(self, done: int, total: int, unit: str) -> None:
        """For `data` where it takes long: how far it is, as `(120, 5000, "files")`. Not for overriding.

        Raises where a user has asked for a stop: leave files in order and let it pass. Alone it does nothing; the
        engine puts its own in this place.
        """

    def report_progress(self, done: float, total: float, unit: str) -> None:
        """For `report` where it takes long: how far it is, as `(3, 10, "tables")`. Not for overriding.

        Alone it does nothing; the engine puts its own in this place.
        """

    @abstractmethod
    def data(self, cfg: Config, device: torch.device) -> Split:
        """Read and check the data. Raises `DataError` with one clear sentence."""

    def build(self, cfg: Config) -> nn.Module:
        """The model of a config, without its data: with `load_trainable_state` a trained one. Raises `UserError`.

        Override it where the data does not decide the shape: whatever opens a trained model has no data.
        """
        raise UserError(f"{type(self).__name__} has no build(), so its models cannot be opened without their data.")

    def model(self, cfg: Config, data: Split) -> nn.Module:
        """A new model; the engine has seeded torch and moves it to the device. Override it where the data decides."""
        return self.build(cfg)

    def metadata(self, cfg: Config, data: Split) -> Mapping[str, Any]:
        """What whoever opens a checkpoint must know beside its weights: names, sizes, statistics.

        Words, numbers, lists and mappings of them. Read with `engines.runs.saved`, which needs no torch.
        """
        return {}

    @abstractmethod
    def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        """Unweighted losses of one batch, one for each head that is on in `ctx.heads`.

        With them may come the spec's `metrics` as sums and counts, whenever there is something to measure; a count
        may depend on the model there.
        """

    @abstractmethod
    def evaluation(self, cfg: Config, data: Split) -> Evaluation:
        """A fresh evaluation."""

    def validation_batch(self, cfg: Config) -> int:
        """Samples of a validation batch; the default is four training batches."""
        return ENLARGE * cfg.training.batch_size

    def counts(self, batch: Batch, ctx: Context) -> Mapping[str, Tensor]:
        """The `count` of each loss without running the model. Needed only for `training.micro_batches` above 1."""
        raise UserError(f"training.micro_batches: {type(self).__name__} has no counts(), and trains with 1 only.")

    def select(self, cfg: Config, data: Split, data_filter: str) -> Samples:
        """The training samples that a stage's `data` filter keeps: indices (kept,) int64, or ranges of them.

        Raises `UserError` for a filter it does not know.
        """
        raise UserError(f"training.stages: {type(self).__name__} has no data filters, got {data_filter!r}.")

    def order(self, cfg: Config, data: Split, samples: Ranges) -> Order:
        """In which order a stage sees its `samples`; the default shuffles all of them in memory."""
        return ShuffledOrder(samples, cfg.training.batch_size, cfg.training.seed)

    def param_groups(self, model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
        """Optimizer groups; the default decays matrices but not norms, biases and embeddings.

        A group's own `lr_scale` multiplies the learning rate for its parameters: a number for every stage, or numbers
        by the names of stages, 1 for those that are not in it.
        """
        embeddings = {id(p) for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
        decayed: list[nn.Parameter] = []
        plain: list[nn.Parameter] = []
        for parameter in model.parameters():
            (decayed if parameter.ndim >= 2 and id(parameter) not in embeddings else plain).append(parameter)
        groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]
        return [group for group in groups if group["params"]]

    def optimizer(self, groups: list[dict[str, Any]], cfg: Config) -> torch.optim.Optimizer:
        """The optimizer of `param_groups`; its `step` takes no closure and it has one rate a group.

        A fused one, as the default is, leaves a step out where the loss is not finite; every other one is put back.
        """
        return torch.optim.AdamW(groups, lr=cfg.training.lr, fused=True)

    def blocks(self, model: nn.Module) -> Sequence[nn.Module]:
        """The modules that repeat, none within another: `launch.strategy: fsdp2` gathers them one after the other.

        They are called as functions in `losses`, on all ranks alike, even on one that has no rows of some kind. Without
        any, the whole model is gathered at once.
        """
        return ()

    def freeze(self, model: nn.Module, patterns: list[str]) -> None:
        """Turn gradients off for parameters whose name matches a pattern, on for all others.

        What `model` gave without a gradient (a pretrained part, a teacher) is among the `patterns` by its names.
        Raises `UserError` for a pattern that matches none, and where nothing is left to train.
        """
        names = [name for name, _ in model.named_parameters()]
        for pattern in patterns:
            if not fnmatch.filter(names, pattern):
                begins = sorted({name.split(".")[0] for name in names})
                raise UserError(
                    f"frozen: no parameter matches {pattern!r}{nearest(pattern.split('.')[0], begins)}; "
                    f"their names begin with {', '.join(begins)}, as in {names[0]}."
                )
        frozen = {name for pattern in patterns for name in fnmatch.filter(names, pattern)}
        if len(frozen) == len(names):
            raise UserError("every parameter is frozen, so nothing would be trained; expected some that are not.")
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name not in frozen)

    def begin_stage(self, model: nn.Module, ctx: Context) -> None:
        """Once as a stage begins, the first one too, without gradients: a prior is copied, a head made fresh.

        It changes parameters and buffers in place, and nothing else; a resume has its work in the checkpoint. The
        optimizer keeps its moments unless the stage says `restart_optimizer`.
        """

    def after_step(self, model: nn.Module, ctx: Context) -> None:
        """Once behind every step, also one that was skipped, without gradients: a moving average of the weights.

        What it changes must be in `trainable_state`, and nothing in it may wait for the device. `ctx` is the step's.
        """

    def trainable_state(self, model: nn.Module) -> dict[str, Tensor]:
        """What a checkpoint holds of the model; the default is all of it."""
        return model.state_dict()

    def load_trainable_state(self, model: nn.Module, state: dict[str, Tensor]) -> None:
        """Put `trainable_state` back."""
        model.load_state_dict(state)

    def report(self, cfg: Config, data: Split, model: nn.Module, result: Result) -> Mapping[str, Table]:
        """More tables for report.json, made once when the run finishes (baselines belong here)."""
        return {}

    def export(
        self, cfg: Config, folder: Path, model: nn.Module, data: Split, result: Result, log: TrainingLog
    ) -> None:
        """Write what the project delivers into `folder` (`export/` of the run); the model holds the best weights."""


@dataclass(frozen=True)
class TrainingLog:
    """What happened in the run, for an exporter that writes it down."""

    epochs: tuple[Mapping[str, Any], ...]
    """One flat mapping an epoch in order (`epoch`, `train.loss`, `validation.…`, `score`, `lr`, `best`).

    An epoch that was not evaluated has no `validation.…`, and None for its score.
    """
    best_epoch: int
    best_score: float
