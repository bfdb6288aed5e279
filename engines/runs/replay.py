"""Running a training once more with everything a person did to it, at the same steps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from engines.basics import files
from engines.basics.errors import DataError, UserError
from engines.contract import commands as cmd
from engines.contract import on_finish
from engines.contract.events import Checkpoint, CommandAnswer, Event
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.history import History
from engines.runs.saved import Saved, read_saved, take_checkpoint
from engines.runs.state import RunReader
from engines.runs.store import create_run, word_of
from engines.runs.trust import require

ATTEMPT = 1
"""A replay is one attempt: what was done in several is done in one."""
DONE_AGAIN = cmd.Edit | cmd.Evaluate | cmd.StopEarly
NATURAL_ENDS = ("finished", "early-stopped")


def interventions(events: Iterable[Event]) -> list[CommandAnswer]:
    """What was done to a training and is part of what it became, in the order of its steps.

    An attempt that resumed made everything done beyond its checkpoint undone; what it did again it answered again.
    """
    history = History()
    history.extend(events)
    newest = history.started.attempt if history.started else 0
    return [
        answer for answer in history.effective
        if isinstance(answer.command, DONE_AGAIN)
        and not (isinstance(answer.command, cmd.StopEarly) and answer.attempt < newest)  # whoever resumed it undid that
    ]  # fmt: skip


def again(answer: CommandAnswer) -> cmd.Command:
    """The command of `answer`, to be applied where it was applied then."""
    return msgspec.structs.replace(
        answer.command, attempt=ATTEMPT, id=cmd.new_id(), at_step=answer.step, at_epoch=answer.epoch
    )


def _begin_where_it_began(run: RunDirectory, copy: RunDirectory, events: Iterable[Event]) -> None:
    """Give `copy` what the fork `run` began with. A best checkpoint that has been beaten since will be beaten again."""
    take_checkpoint(run.fork, copy.fork)
    copy.write_info(msgspec.structs.replace(copy.info, fork_best=run.info.fork_best))
    beaten = any(isinstance(event, Checkpoint) and run.best.name in event.files for event in events)
    if run.best.is_file() and not beaten:
        take_best(run, run.best, copy)
    elif run.info.fork_best:
        take_best_of_stage(run, read_saved(run.fork), copy)


def take_best(run: RunDirectory, best: Path, copy: RunDirectory, review: Path | None = None) -> None:
    """Give `copy` the checkpoint `best` as its best one, and the `review` of it, the run's own where none is named."""
    files.replace_by_link(best, copy.best)
    review = review or run.review
    for file in [*review.glob("*.npy"), *review.glob("about.json")]:
        files.replace_by_link(file, copy.review / file.name)


def take_best_of_stage(run: RunDirectory, begin: Saved, copy: RunDirectory) -> None:
    """Give `copy`, which begins at `begin`, what was the best then and was kept when its stage was over."""
    for number, path in run.stage_bests().items():
        with contextlib.suppress(DataError):
            kept = read_saved(path)
            if kept.epoch == begin.best_epoch and kept.step <= begin.step:
                take_best(run, path, copy, run.stage_review(number))


def prepare_replay(run: RunDirectory, *, trusted: bool = False) -> RunDirectory:
    """Make the run directory of a replay. Raises `UserError` when `run` is alive, or left nothing to come to, and for
    one from elsewhere that is not `trusted`.

    A run that ended by itself is replayed to its end, every other one to its last checkpoint.
    """
    from engines.contract.config import check_config, load_config

    info = run.info
    if info.kind != "training" or not info.engine:
        raise UserError(f"{info.id} was not trained by the cockpit's engine, so it cannot be replayed.")
    require(run, trusted=trusted)
    reader = RunReader(run)
    events = reader.poll()
    status = reader.status()
    if status.live:
        raise UserError(f"{info.id} is {status.state}; replay it when it has ended.")
    ends = [event for event in events if isinstance(event, Checkpoint) and run.last.name in event.files]
    if not ends:
        raise DataError(f"{info.id} has no checkpoint for a replay to reach.")
    recorded = load_config(run.recorded_config)
    tree = recorded.settings.model_dump(mode="json")
    tree["output"]["dir"] = tree["cost"]["budget_usd"] = None  # a place and a purse of its own
    tree["cost"] |= dict.fromkeys(on_finish.WHEN)  # of the run, not of looking at it again
    copy = create_run(
        info.project, check_config(tree, str(run.config), {}, ()).dump(), kind="training", engine=info.engine,
        title=info.title, label=f"replay of {info.label or word_of(info.id)}", replay_of=info.id,
        fork_step=info.fork_step, train_loss=info.train_loss, edition=info.edition,
    )  # fmt: skip
    if run.fork.is_file():
        _begin_where_it_began(run, copy, events)
    for answer in interventions(events):
        launch.send(copy, again(answer))
    if status.state not in NATURAL_ENDS:
        launch.send(copy, cmd.Stop(attempt=ATTEMPT, at_step=ends[-1].step, at_epoch=ends[-1].epoch))
    return copy
