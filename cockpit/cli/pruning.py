"""Removing checkpoints by a rule; without `--yes` only showing which."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from cockpit.cli import codes
from cockpit.cli.printing import say, show_json, show_table
from cockpit.core.format import number
from cockpit.core.runs.prune import Surplus, freed, remove, surplus_of
from engines.basics.amounts import size
from engines.basics.errors import DataError, UserError
from engines.runs.keeping import KeepRule
from engines.runs.store import find_training, list_runs


def prune(arguments: Namespace) -> int:
    """Show what would be removed; with `--yes` remove it."""
    if arguments.keep_best < 0 or arguments.keep_every < 0:
        raise UserError("--keep-best and --keep-every: expected a number of 0 or more.")
    rule = KeepRule(every=arguments.keep_every, best=arguments.keep_best)
    runs = [find_training(name) for name in arguments.runs] or list_runs()
    surplus = []
    for run in {run.path: run for run in runs}.values():
        try:
            surplus += surplus_of(run, rule, last=arguments.last)
        except (DataError, OSError) as error:  # a damaged run keeps all it has
            say(f"{run.path.name} is left as it is: {error}")
    total = freed(surplus)
    if surplus and not arguments.json:
        shown = [
            (
                one.run.path.name, one.file.name, one.epoch, number(one.score),
                size(sum(file.lstat().st_size for file in one.files())),
            )
            for one in surplus
        ]  # fmt: skip
        show_table(("run", "file", "epoch", "score", "size"), shown)
    if arguments.yes:
        remove(surplus)
    if arguments.json:
        rows = [
            {"run": one.run.path.name, "file": str(one.file), "epoch": one.epoch, "score": one.score} for one in surplus
        ]
        show_json({"removed": arguments.yes, "freed": total, "files": rows})
    what = f"{' and '.join(_counted(surplus))}, {size(total)}"
    if not surplus:
        say("no checkpoint to remove")
    else:
        say(f"removed {what}" if arguments.yes else f"would remove {what}; add --yes to do it")
    return codes.DONE


def _counted(surplus: Sequence[Surplus]) -> list[str]:
    """`3 checkpoints`, `1 folder of shards that no checkpoint names`."""
    folders = sum(one.epoch is None for one in surplus)
    checkpoints = len(surplus) - folders
    return [
        *([f"{checkpoints} checkpoint{'s' if checkpoints != 1 else ''}"] if checkpoints else []),
        *([f"{folders} folder{'s' if folders != 1 else ''} of shards that no checkpoint names"] if folders else []),
    ]
