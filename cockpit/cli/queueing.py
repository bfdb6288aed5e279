"""The queues of this machine's devices: who runs, who waits, and in which order."""

from __future__ import annotations

from argparse import Namespace

from cockpit.cli import codes
from cockpit.cli.following import wait_until_gone
from cockpit.cli.printing import say, show, show_json, show_table
from cockpit.core.typed import typed
from engines.basics.errors import DataError
from engines.contract import commands as cmd
from engines.host import queue
from engines.runs import launch
from engines.runs.state import RunReader
from engines.runs.store import find_run


def show_queue(arguments: Namespace) -> int:
    places = queue.places()
    if arguments.json:
        show_json([{"device": it.device, "number": it.number, "id": it.id, "path": str(it.run)} for it in places])
    elif not places:
        say("the queue is empty; `cockpit train CONFIG --queue` starts a run that waits for its device")
    else:
        rows = [(it.device, str(it.number) if it.number else "runs", it.id) for it in places]
        show_table(("device", "place", "run"), rows)
    return codes.DONE


def move(arguments: Namespace) -> int:
    place = queue.move(find_run(arguments.run).path, arguments.where)
    show(f"{place.id} is number {place.number} for {place.device}")
    return codes.DONE


def cancel(arguments: Namespace) -> int:
    """Only of a run that waits: one that trains is ended with `stop`, which saves it."""
    run = find_run(arguments.run)
    status = RunReader(run).status()
    if status.state != "queued":
        raise DataError(
            f"{run.info.id} is {status.state} and is not in a queue; `cockpit queue` lists the runs that are."
        )
    launch.send_stop(run, cmd.Stop(attempt=run.attempt_numbers()[-1]))
    wait_until_gone(run)
    show(typed(f"{run.info.id} no longer waits; `cockpit resume {run.info.id}` puts it back into the queue"))
    return codes.DONE
