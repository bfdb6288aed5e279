"""What a project tells the world without torch: its name, table columns, heads and where its parts live.

Entry points in the group `cockpit.projects` name a `Spec`. A spec names its config model, its torch side and its
tasks as `module:attribute` strings, so that reading a spec imports neither pydantic nor torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from engines.basics.errors import UserError, nearest
from engines.contract.references import load as load
from engines.contract.references import why_not

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from engines.contract.rundir import RunInfo

GROUP = "cockpit.projects"
SCALE = ".scale"
"""Ends the name of the metric that is a head's scale."""


class Column(msgspec.Struct, frozen=True):
    """One column of the epoch table.

    `source` is `epoch`, `score`, `lr`, `best`, `train.<key>` or `validation.<key>`; `format` is a Python format spec.
    A `wide` column is left out where the table is too narrow for all of them, the last one first.
    """

    title: str
    source: str
    format: str = ".3f"
    wide: bool = False


@dataclass(frozen=True, kw_only=True)
class Head:
    """A loss term: its key in `loss_weights`, whose default is its weight, in the losses and in a stage's `heads`."""

    name: str
    title: str
    parts: tuple[str, ...] = ()
    """What a stage may turn on by itself, as `head.part`."""
    parameters: str | tuple[str, ...] = ()
    """Name patterns of the parameters that serve this head: frozen in a stage where no head that is on names them."""

    scaled: bool = False
    """Its loss comes with a `scale`, which is logged as the metric `<head>.scale`."""

    @property
    def patterns(self) -> tuple[str, ...]:
        """The name patterns, however they were written."""
        return (self.parameters,) if isinstance(self.parameters, str) else self.parameters


@dataclass(frozen=True)
class Task:
    """Other long work that a project does."""

    function: str
    """`module:function` taking (arguments, `engines.tasks.TaskContext`)."""
    help: str
    """What it does, in a few words, as `cockpit task PROJECT` lists it."""
    needs: Literal["", "config", "run"] = ""
    """What its arguments must hold: `run`, the directory of a run, or `config`, a whole checked config as a mapping."""


COMMON_TASKS = {
    "profile": Task("engines.checking.profiling:profile", "show where the time of a training step goes", needs="config")
}
"""What every project can do."""


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The torch-free face of a project."""

    name: str
    title: str
    config: str
    """`module:class` of the pydantic config model (a `RunConfig`)."""
    project: str
    """`module:class` of the torch side (an `engines.training.project.Project`)."""
    columns: tuple[Column, ...]
    heads: tuple[Head, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names that its configs may use: dotted path → the setting's own, as `optim.rate` → `training.lr`."""
    metrics: tuple[str, ...] = ()
    """Names of what `losses` measures beside the heads (KL, entropy): charted, a column as `train.<name>`, no loss."""
    data_files: str | None = "engines.runs.fingerprint:below"
    """`module:function` giving the paths of the files that a config's data is read from, torch-free: a resume or a
    replay tells which of them have changed. All that `data.path` holds where absent; None where the project reads none.
    """
    proxies: Mapping[str, str] = field(default_factory=dict)
    """Validation values that the model gives of itself, and the measured ones they stand for, as {"imagined_return":
    "played_return"}: an alert where the first rises while the second falls."""
    tasks: Mapping[str, Task] = field(default_factory=dict)
    """Other long work by name: `cockpit task` starts any of it."""
    reads: str | None = None
    """`module:function`, torch-free, taking the path of a file or folder and giving an empty text where it is data that
    the project describes or parses, else what it looked for there in vain: how `cockpit data` finds out whose it is."""
    recordings: Literal["file", "folder", "either"] = "file"
    """What `cockpit play RUN --recording` takes."""
    counts: Mapping[str, str] = field(default_factory=dict)
    """Other units of the training data than samples, as {"games": "module:function"}: a function that takes settings
    and a number of them and gives the samples. `cockpit check CONFIG --games N` then works out what that many take.
    """
    stats: str | None = None
    """`module:function` taking a data path and giving named tables, for `cockpit data stats`."""
    thresholds: str | None = None
    """`module:object`, an `engines.thresholds.adapter.ThresholdAdapter`, for the review of thresholds; torch-free."""
    edition: int = 1
    """Goes up when the project defines something that a run shows in another way: new runs begin with it, and
    `Project.edition` says which one the run has that is resumed or replayed."""
    edition_shapes: bool = False
    """Whether editions differ in the shape of the weights: then a fork has its parent's, and not the newest."""
    demo: str | None = None
    """File name of the demo config under `configs/`."""
    demo_first: bool = False
    """It is what `cockpit demo` shows where several projects have one."""

    def __post_init__(self) -> None:
        """Raises TypeError for a slip that would otherwise be met when the task is started."""
        for name, task in self.tasks.items():
            if not isinstance(task, Task):
                raise TypeError(f"the task {name!r} is a {type(task).__name__}, expected a Task")

    def task(self, name: str) -> Task:
        """The task called `name`. Raises `UserError` naming those there are."""
        tasks = self.every_task
        if name not in tasks:
            known = ", ".join(tasks)
            raise UserError(f"The project {self.name!r} has no task {name!r}{nearest(name, tasks)}; it has {known}.")
        return tasks[name]

    @property
    def every_task(self) -> dict[str, Task]:
        """Its own tasks by name, and those that every project has."""
        return {**self.tasks, **{name: task for name, task in COMMON_TASKS.items() if name not in self.tasks}}

    @property
    def measured(self) -> tuple[str, ...]:
        """The metrics, and the scale of every head that has one."""
        return (*self.metrics, *(head.name + SCALE for head in self.heads if head.scaled))


@dataclass(frozen=True)
class BrokenSpec:
    """A third-party project that could not be read: shown, never fatal."""

    name: str
    error: str


def _entry_points() -> dict[str, EntryPoint]:
    """By name. The library is read here alone: it takes a tenth of a second that the first screen need not wait for."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}


def _read(entry: EntryPoint) -> Spec | BrokenSpec:
    try:
        spec = entry.load()
    except (Exception, SystemExit) as error:  # a third party's module may fail in any way; it must harm nothing else
        return BrokenSpec(entry.name, why_not(error))
    if not isinstance(spec, Spec):
        return BrokenSpec(entry.name, f"{entry.value} is a {type(spec).__name__}, expected a Spec")
    return spec


def names() -> list[str]:
    """What the projects installed here are called, none of which is read for it."""
    return list(_entry_points())


def installed() -> dict[str, Spec | BrokenSpec]:
    """Every project installed here, by name."""
    return {name: _read(entry) for name, entry in _entry_points().items()}


def find(name: str) -> Spec:
    """The spec called `name`. Raises `UserError` for an unknown or broken project."""
    entries = _entry_points()
    known = ", ".join(sorted(entries)) or "none"
    if ":" in name:
        raise UserError(
            f"{name!r} is no installed project ({known}): its package names the spec as an entry point of {GROUP!r} "
            "and is installed, as with `pip install -e .`; docs/add-a-project.md shows how."
        )
    if name not in entries:
        raise UserError(
            f"No project is called {name!r}{nearest(name, entries)}; installed: {known} "
            "(another comes with its package)."
        )
    spec = _read(entries[name])
    if isinstance(spec, BrokenSpec):
        raise UserError(f"The project {name!r} cannot be loaded: {spec.error}.", exit_code=1)
    return spec


def of_run(info: RunInfo, lacks: str) -> Spec:
    """The spec of a run's project. Raises `UserError`, saying what a run of another program `lacks`."""
    if info.foreign:
        raise UserError(f"{info.foreign}: it has {lacks}.")
    if info.project not in _entry_points():
        raise UserError(
            f"The project {info.project!r} of {info.id} is not installed here; install its package again, or start the "
            "cockpit where it is."
        )
    return find(info.project)


def load_function(reference: str) -> Callable[..., Any]:
    """The function that `module:attribute` names. Raises `UserError`."""
    function: Callable[..., Any] = load(reference)
    return function
