"""Keeping the list of runs in order: labels, notes, deleting what is not needed any more."""

from __future__ import annotations

import sys
from argparse import Namespace

from cockpit.cli import codes
from cockpit.cli.printing import say, show
from cockpit.core.format import number
from cockpit.core.runs import baseline as baselines
from cockpit.core.runs import labels, removal
from cockpit.core.runs.removal import Removal
from cockpit.core.text import plain
from engines.basics.amounts import size
from engines.basics.errors import DataError, UserError
from engines.runs.store import find_run, find_training, list_runs, runs_folder


def label(arguments: Namespace) -> int:
    labels.describe(find_run(arguments.run), label=arguments.text)
    return codes.DONE


def note(arguments: Namespace) -> int:
    labels.describe(find_run(arguments.run), notes=arguments.text)
    return codes.DONE


def tag(arguments: Namespace) -> int:
    """Print the tags that the run has after it."""
    run = find_run(arguments.run)
    tags = run.info.tags
    if arguments.remove:
        tags = labels.tag(run, remove=labels.read_tags(arguments.tags) if arguments.tags else tags)
    elif arguments.tags:
        tags = labels.tag(run, add=arguments.tags)
    for one in tags:
        show(plain(one))
    return codes.DONE


def baseline(arguments: Namespace) -> int:
    """Pin a run, or print what is pinned: a project, and its run or that it is gone, per line."""
    folder = runs_folder()
    if arguments.run is None:
        if arguments.remove:
            raise UserError("baseline --remove: name a run of the project that is to have no baseline.")
        for project in (pins := baselines.pinned(folder)):
            one = baselines.read_baseline(folder, project)
            score = f"  {number(one.run.score)}" if one is not None and one.run is not None else "  gone"
            show(f"{plain(project)}  {plain(pins[project])}{score}")
        return codes.DONE
    run = find_training(arguments.run)
    if arguments.remove:
        baselines.unpin(folder, run.info.project)
    else:
        baselines.pin(folder, run)
    return codes.DONE


def delete(arguments: Namespace) -> int:
    """All named runs are found and, without --yes, agreed to before the first is deleted."""
    paths = list(dict.fromkeys(find_run(name).path for name in arguments.runs))
    removals = [removal.look(path) for path in paths]
    if not arguments.yes and not _agreed(removals):
        say("nothing was deleted")
        return codes.STOPPED
    removal.remove_leftovers(runs_folder())
    refused = 0
    for one in removals:
        try:
            removal.remove(one.path)
        except UserError as error:
            say(str(error))
            refused += 1
        else:
            say(f"deleted {_what(one)}")
    return codes.FAILED if refused else codes.DONE


def _agreed(removals: list[Removal]) -> bool:
    if not sys.stdin.isatty():
        raise UserError("Deleting asks first, and this is not a terminal; add --yes.")
    names = {one.path.name for one in removals}
    for one in removals:
        say(_what(one))
    for fork in _forks(names):
        say(f"its fork {fork} is kept")
    print("cockpit: delete for good? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _forks(names: set[str]) -> list[str]:
    """Runs that were forked from those named and are not named themselves."""
    found = []
    for run in list_runs():
        try:
            if run.path.name not in names and run.info.parent in names:
                found.append(run.path.name)
        except DataError:  # whose child it is cannot be read
            continue
    return found


def _what(one: Removal) -> str:
    if one.target is not None:
        return f"{one.path.name}: only its entry in the runs folder; its files are kept in {one.target}"
    return f"{one.path.name}, {size(one.size)}"
