"""Forks: a run of its own that begins with a checkpoint of another one, under a config of its own.

The fork takes the checkpoint (linked, or copied where links are not possible) before it starts, so that its parent may
go on, or be deleted. Weights, optimizer, schedule, random state and counters are the checkpoint's; so are the live
edits made before it, which the fork makes again in its first attempt, to have them on its own record.
"""

from __future__ import annotations

import contextlib
import copy
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from engines.basics import files
from engines.basics.errors import DataError, UserError
from engines.contract import commands as cmd
from engines.contract.events import Checkpoint, Epoch, Event
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.replay import ATTEMPT, take_best, take_best_of_stage
from engines.runs.saved import Saved, epoch_of, read_saved, take_checkpoint
from engines.runs.state import RunReader
from engines.runs.store import create_run, runs_folder, word_of
from engines.runs.trust import require

if TYPE_CHECKING:
    from engines.contract.config import LoadedConfig
    from engines.runs.resume import Change

_SHAPES = ("project", "model.")
_CUT = ("training.batch_size", "training.steps_per_epoch", "training.seed", "data.")
"""Settings that decide which samples an epoch has, and in which order."""


@dataclass(frozen=True)
class ForkPoint:
    """A kept checkpoint: one file, under all the names it has."""

    names: tuple[str, ...]
    step: int
    epoch: int
    """Epochs done."""
    size: int
    """Bytes."""
    time: float
    score: float | None
    """Of the epoch that ended here."""
    inside: bool
    """It stands inside an epoch, or before an epoch's evaluation."""

    @property
    def file(self) -> str:
        """The name that is least likely to mean another checkpoint soon: not best or last where it has another."""
        return max(self.names, key=lambda name: name.startswith(("epoch_", "stage_")))


def fork_points(run: RunDirectory, events: Sequence[Event]) -> list[ForkPoint]:
    """The checkpoints of `run` that are there, the newest first; `events` are all of the run's."""
    rows = {(event.step, event.epoch): event for event in events if isinstance(event, Epoch)}
    made: dict[str, int] = {}
    for place, event in enumerate(events):
        if isinstance(event, Checkpoint):
            made |= dict.fromkeys(event.files, place)
    made |= _stage_bests(run, events)
    there = {name: place for name, place in made.items() if (run.checkpoints / name).is_file()}
    points = []
    for place in sorted(set(there.values()), reverse=True):
        saved = events[place]
        assert isinstance(saved, Checkpoint)
        row = rows.get((saved.step, saved.epoch))
        points.append(
            ForkPoint(
                names=tuple(sorted(name for name, at in there.items() if at == place)), step=saved.step,
                epoch=saved.epoch, size=saved.size, time=saved.time, score=row.score if row else None,
                inside=row is None,
            )
        )  # fmt: skip
    return points


def _stage_bests(run: RunDirectory, events: Sequence[Event]) -> dict[str, int]:
    """The kept best checkpoints of stages that are over, and where in `events` each was saved."""
    places = {(event.step, event.epoch): at for at, event in enumerate(events) if isinstance(event, Checkpoint)}
    found = {}
    for path in run.stage_bests().values():
        with contextlib.suppress(DataError, KeyError):
            saved = read_saved(path)
            found[path.name] = places[saved.step, saved.epoch]
    return found


def choose_point(run: RunDirectory, points: Sequence[ForkPoint], wanted: str = "last") -> ForkPoint:
    """The point that `wanted` means: `last`, `best`, an epoch's number or a file.

    Raises `UserError` naming those there are.
    """
    if wanted in ("last", "best") or wanted.endswith(".pt"):
        found = [point for point in points if f"{wanted.removesuffix('.pt')}.pt" in point.names]
    else:
        found = [point for point in points if str(point.epoch) == wanted.lstrip("0") and not point.inside]
    if found:
        return found[0]
    if not points:
        live = RunReader(run).status().live
        raise DataError(
            f"{run.info.id} has no checkpoint to fork yet; `cockpit checkpoint {run.info.id}` saves one."
            if live
            else f"{run.info.id} has kept no checkpoint to fork."
        )
    kept = ", ".join(dict.fromkeys(str(point.epoch) for point in reversed(points) if not point.inside))
    words = [word for word in ("best", "last") if any(f"{word}.pt" in point.names for point in points)]
    raise UserError(
        f"{run.info.id} keeps no checkpoint {wanted if wanted in ('last', 'best') else f'of epoch {wanted}'}; it has "
        f"{' and '.join(words)}{f', and the ends of the epochs {kept}' if kept else ''} "
        "(output.keep_epochs=1 keeps one of every epoch)."
    )


@dataclass(frozen=True)
class ForkPlan:
    """What a fork will be: nothing is written yet."""

    parent: RunDirectory
    point: ForkPoint
    overrides: Sequence[str]
    saved: Saved
    """What its checkpoint says of itself."""
    recorded: LoadedConfig
    """The parent's."""
    in_force: LoadedConfig
    """The parent's as it was in force at the checkpoint."""
    changes: list[Change]
    """Every setting that differs from those in force, with its fate."""
    edits: list[cmd.Edit]
    config: LoadedConfig
    ended: str
    """Why it would come to nothing, or not to what is asked for; else empty."""


def plan_fork(
    run: RunDirectory, point: ForkPoint, events: Sequence[Event], overrides: Sequence[str] = (),
    *, taken: Path | None = None,
) -> ForkPlan:  # fmt: skip
    """What a fork of `run` at `point` will be; `taken` is its checkpoint, if the fork has it already.

    Raises `UserError` for what cannot be forked, and for bad overrides.
    """
    from engines.contract.config import check_config, load_config, with_absolute_data
    from engines.runs import provenance
    from engines.runs.resume import applied_config, fault_of, in_force, plan_resume, settled

    saved = read_saved(taken or run.checkpoints / point.file)
    recorded = load_config(run.recorded_config)
    earlier = saved.edits(recorded, ATTEMPT)
    tree = in_force(recorded, earlier)
    tree["output"]["dir"] = None  # a place of its own
    current = check_config(copy.deepcopy(tree), str(run.config), {}, ())
    wanted = with_absolute_data(check_config(copy.deepcopy(tree), str(run.config), {}, overrides))

    def why_not(key: str) -> str:
        if key.startswith(_SHAPES):
            return "the checkpoint's weights have the shape of the old value; start a new run for it"
        if key == "training.stages":
            return "the checkpoint is in a stage of the old list; start a new run for it"
        if saved.inside and key == "data.path":
            return provenance.why_other_data(run, wanted)
        if saved.inside and key.startswith(_CUT):
            return (
                f"the checkpoint is inside epoch {saved.epoch + 1}, which has the old batches; fork at the end of one"
            )
        return ""

    changes, edits = plan_resume(recorded, current, wanted, ATTEMPT, why_not)
    applied = applied_config(recorded, changes)
    if wanted.settings.output.dir is None:
        applied["output"]["dir"] = None
    config = check_config(applied, str(run.config), {}, ())
    ended = _nothing_to_do(run, saved, events, wanted, edits)
    ended = ended or fault_of(edits, done=saved.epoch, inside=saved.inside)
    return ForkPlan(
        run, point, overrides, saved, recorded, current, changes, settled([*earlier, *edits], ATTEMPT), config, ended
    )


def _nothing_to_do(
    run: RunDirectory, saved: Saved, events: Sequence[Event], wanted: LoadedConfig, edits: Sequence[cmd.Edit]
) -> str:
    epochs = wanted.settings.training.epochs
    if saved.epoch >= epochs:
        return (
            f"The checkpoint has {saved.epoch} of {epochs} epochs done: give the fork more epochs, "
            f"as in --set training.epochs={2 * saved.epoch}, or choose an earlier one."
        )
    end = run.newest_attempt()
    stopped_early = end is not None and end.ended is not None and end.ended.reason == "early-stopped"
    newest = max((event.epoch for event in events if isinstance(event, Epoch)), default=0)
    if stopped_early and saved.epoch == newest and not any(isinstance(edit, cmd.SetPatience) for edit in edits):
        return (
            f"{run.path.name} stopped early at this checkpoint: give the fork more patience, "
            "as in --set training.patience=50, or choose an earlier one."
        )
    return ""


def make_fork(plan: ForkPlan, *, label: str = "") -> tuple[RunDirectory, ForkPlan]:
    """Make the run directory of a fork, with its checkpoint in it, ready to start. The parent is not touched.

    Gives the plan as it was carried out too: a live parent may have saved again since it was made.
    Raises `UserError` where there is nothing to do or the place is occupied, `DataError` where it cannot be made.
    """
    if plan.ended:
        raise UserError(plan.ended)
    point, info = plan.point, plan.parent.info
    where, spec = plan.config.settings.output.dir, plan.config.spec
    fork = create_run(
        info.project, plan.config.dump(), kind="training", engine=info.engine, title=info.title,
        label=label or f"fork of {info.label or word_of(info.id)}", path=Path(where).expanduser() if where else None,
        parent=info.id, fork_step=plan.saved.step, edition=info.edition if spec.edition_shapes else spec.edition,
    )  # fmt: skip
    try:
        take_checkpoint(plan.parent.checkpoints / point.file, fork.fork)
        plan = _as_taken(plan, fork)
        _take_best(plan, fork)
        for edit in plan.edits:
            launch.send(fork, edit)
    except (OSError, UserError) as error:
        if (listed := runs_folder() / fork.info.id).is_symlink():
            listed.unlink()
        shutil.rmtree(fork.path, ignore_errors=True)
        if isinstance(error, UserError):
            raise
        raise DataError(
            f"{point.file} of {info.id} cannot be copied for a fork ({error.strerror or error}); "
            "free some space, or choose another checkpoint."
        ) from None
    return fork, plan


def _as_taken(plan: ForkPlan, fork: RunDirectory) -> ForkPlan:
    """The plan for the checkpoint that the fork has got: its weights go with the settings of its own step."""
    if read_saved(fork.fork) == plan.saved:
        return plan
    plan = plan_fork(plan.parent, plan.point, forkable(plan.parent), plan.overrides, taken=fork.fork)
    if plan.ended:
        raise UserError(plan.ended)
    fork.write_config(plan.config.dump())
    fork.write_info(msgspec.structs.replace(fork.info, fork_step=plan.saved.step))
    return plan


def _take_best(plan: ForkPlan, fork: RunDirectory) -> None:
    """The parent's best checkpoint and its review, where they are not of a later step."""
    parent, saved = plan.parent, plan.saved
    for path in parent.stage_bests().values():
        if (epoch := epoch_of(path)) is not None and epoch <= saved.epoch:
            files.replace_by_link(path, fork.checkpoints / path.name)
    try:
        best = read_saved(parent.best)
    except DataError:  # gone or damaged: nothing to beat
        return
    if best.step > saved.step:
        take_best_of_stage(parent, saved, fork)
        return
    take_best(parent, fork.fork if best == saved else parent.best, fork)
    if read_saved(fork.best).step > saved.step:  # the parent found a better one in between
        for file in (fork.best, *fork.review.iterdir()):
            file.unlink()


def prepare_fork(
    run: RunDirectory, overrides: Sequence[str] = (), *, checkpoint: str = "last", label: str = "",
    trusted: bool = False,
) -> tuple[RunDirectory, list[str]]:  # fmt: skip
    """Make a fork of `run`, not yet started, from `checkpoint` (`last`, `best` or an epoch).

    Gives it with a sentence for each changed setting, and for what else has changed since. Raises `UserError`, also
    for a run from elsewhere that is not `trusted`.
    """
    from engines.contract import on_finish
    from engines.runs import provenance

    events = forkable(run)
    require(run, trusted=trusted)
    plan = plan_fork(run, choose_point(run, fork_points(run, events), checkpoint), events, overrides)
    fork, plan = make_fork(plan, label=label)
    sentences = [change.sentence() for change in plan.changes]
    return fork, [*sentences, *provenance.since_the_newest(run, plan.config), *on_finish.sentences_of(fork)]


def forkable(run: RunDirectory) -> list[Event]:
    """All events of a run that can be forked. Raises `UserError` for one that cannot."""
    info = run.info
    if info.kind != "training" or not info.engine:
        raise UserError(f"{info.id} was not trained by the cockpit's engine, so it cannot be forked.")
    return RunReader(run).poll()
