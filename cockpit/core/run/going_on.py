"""What a resume or a fork would be, with the settings a person asks for: the numbers and words of its dialog.

Reads configs and imports pydantic: call it from a worker.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cockpit.core.config.diff import words
from cockpit.core.text import plain
from engines.basics.errors import DataError, UserError
from engines.contract import commands as cmd
from engines.contract import on_finish
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.trust import require, what_it_runs

if TYPE_CHECKING:
    from engines.runs.fork import ForkPlan, ForkPoint

USUAL = ("epochs", "patience", "lr")
"""Settings of `training` with a field of their own."""
COST = "cost."
RUNS_WHEN = {
    on_finish.ON_FINISH: "runs on this machine when the run ends",
    on_finish.ON_ERROR: "runs on this machine when the run fails",
    on_finish.ON_STALL: "runs on this machine when the run hangs",
    on_finish.ON_IDLE: "runs on this machine once nobody uses it any more",
    on_finish.COPY_FIRST: "must succeed before that",
}


@dataclass(frozen=True)
class Outlook:
    """What would become of each setting."""

    usual: Mapping[str, str]
    """The settings in USUAL as they are in force, by their names."""
    lines: Sequence[tuple[str, str, str]]
    """Key, `old → new`, and its fate: `applied`, `ignored because …`, or that a live edit stays."""
    why_not: str = ""
    """Why it cannot start; empty where it can."""
    elsewhere: Sequence[str] = ()
    """Of a run from elsewhere: what going on with it would run, a sentence each."""


def overrides_of(typed: Mapping[str, str], usual: Mapping[str, str], more: str) -> list[str]:
    """`section.key=value` of every field that differs from what is in force, and of `more`, parted by spaces.

    Raises `UserError` for an open quote.
    """
    changed = [f"training.{name}={text.strip()}" for name, text in typed.items() if text.strip() != usual.get(name)]
    try:
        return changed + shlex.split(more)
    except ValueError:
        raise UserError(f"{more}: a quote is open; expected settings as in cost.budget_usd=20.") from None


def look_at_resume(run: RunDirectory, overrides: Sequence[str]) -> Outlook:
    """Of a resume from the last checkpoint. Raises `UserError`."""
    plan = launch.look_at_resume(run, overrides)
    outlook = _outlook(plan)
    again = [
        ("order", plain(cmd.describe(edit)), "sent again: the last attempt ended before applying it")
        for edit in plan.lost
    ]
    return replace(outlook, lines=[*outlook.lines, *again], elsewhere=what_it_runs(run))


def points_of(run: RunDirectory) -> list[ForkPoint]:
    """The checkpoints that can be forked, the newest first. Raises `UserError` where there is none."""
    from engines.runs.fork import fork_points, forkable

    if not (points := fork_points(run, forkable(run))):
        raise DataError(f"{run.path.name} has no checkpoint to fork yet; k saves one of a live run.")
    return points


def look_at_fork(run: RunDirectory, point: ForkPoint, overrides: Sequence[str]) -> Outlook:
    """Of a fork from a checkpoint. Raises `UserError`."""
    from engines.runs.fork import forkable, plan_fork

    return replace(_outlook(plan_fork(run, point, forkable(run), overrides)), elsewhere=what_it_runs(run))


def changed_since(run: RunDirectory) -> list[str]:
    """What has changed since the run's newest attempt: data, versions, machine. Reads data. Raises `UserError`."""
    from engines.contract.config import load_config
    from engines.runs import provenance

    return provenance.since_the_newest(run, load_config(run.recorded_config))


def fork(
    run: RunDirectory, point: ForkPoint, overrides: Sequence[str], label: str, *, trusted: bool = False
) -> RunDirectory:
    """Make the fork and start it. Raises `UserError`."""
    from engines.runs.fork import forkable, make_fork, plan_fork

    require(run, trusted=trusted)
    made, _ = make_fork(plan_fork(run, point, forkable(run), overrides), label=label)
    launch.start(made)
    return made


def _outlook(plan: launch.ResumePlan | ForkPlan) -> Outlook:
    from engines.runs.resume import flatten

    recorded, now = (flatten(one.settings.model_dump(mode="json")) for one in (plan.recorded, plan.in_force))
    changed = {change.key for change in plan.changes}
    own = ("output.dir",)  # a fork has a place of its own: nothing to tell
    lines = [
        (key, f"{words(recorded.get(key))} → {words(value)}", "edited live, kept")
        for key, value in now.items()
        if recorded.get(key) != value and key not in changed and key not in own
    ]
    lines += [
        (one.key, f"{words(one.old)} → {words(one.new)}", "applied" if one.applied else f"ignored because {one.reason}")
        for one in plan.changes
    ]
    wanted = now | {change.key: change.new for change in plan.changes if change.applied}
    cost = {key.removeprefix(COST): value for key, value in wanted.items() if key.startswith(COST)}
    for name, command in on_finish.commands_in({"cost": cost}).items():
        lines.append((COST + name, on_finish.words(command), RUNS_WHEN[name]))
    usual = {name: words(now[f"training.{name}"]) for name in USUAL}
    return Outlook(usual, lines, plan.ended.split(", as in --set")[0].rstrip(".") + "." if plan.ended else "")
