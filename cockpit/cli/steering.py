"""Steering a live run: each command is sent, its answer is waited for and told."""

from __future__ import annotations

import signal
import time
from argparse import Namespace
from pathlib import Path

from cockpit.cli import codes
from cockpit.cli.following import POLL_SECONDS, Watch, wait_until_gone
from cockpit.cli.printing import say, show
from cockpit.core.config.run_config import read_config
from cockpit.core.run.ending import send_signal
from cockpit.core.run.orders import Order
from cockpit.core.steering.number_keys import typed_number
from cockpit.core.typed import typed
from engines.basics.errors import DataError, UserError, nearest
from engines.contract import commands as cmd
from engines.contract import limits
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.state import RunReader
from engines.runs.store import find_run, list_runs

ANSWER_SECONDS = 5.0


def pause(arguments: Namespace) -> int:
    run, attempt = _live(arguments.run)
    return _ask(run, cmd.Pause(attempt=attempt))


def continue_(arguments: Namespace) -> int:
    run, attempt = _live(arguments.run)
    return _ask(run, cmd.Continue(attempt=attempt))


def checkpoint(arguments: Namespace) -> int:
    run, attempt = _live(arguments.run)
    return _ask(run, cmd.SaveCheckpoint(attempt=attempt))


def weights(arguments: Namespace) -> int:
    """Change them, or show them all with what is known of each head."""
    from cockpit.cli.weights import show_weights

    if not arguments.weights and not arguments.measure:
        return show_weights(find_run(arguments.run), json=arguments.json)
    run, attempt = _live(arguments.run)
    if arguments.measure:
        code = _ask(run, cmd.MeasureGradients(attempt=attempt), quiet=True)
        if code != codes.DONE or not arguments.weights:
            return code or show_weights(run, json=arguments.json)
    wanted = parse_weights(arguments.weights, _heads(run))
    if arguments.at == "step":
        return _ask(run, cmd.SetLossWeights(attempt=attempt, weights=wanted))
    reader = RunReader(run)
    reader.poll()
    at_epoch, last = reader.history.done + 1, reader.history.planned
    if last and at_epoch >= last:
        raise UserError(f"epoch {at_epoch} is the run's last: no epoch would be trained with them; omit --at.")
    launch.send(run, cmd.SetLossWeights(attempt=attempt, weights=wanted, at_epoch=at_epoch))
    show(typed(f"sent; due when epoch {at_epoch} is over: `cockpit show {run.info.id}` shows whether it was applied"))
    return codes.DONE


def evaluate(arguments: Namespace) -> int:
    """On other data that is a task of the project's; else the live run is asked for it."""
    if arguments.data:
        from cockpit.cli.tasks import of_run

        return of_run(arguments, "evaluate", {"data": str(Path(arguments.data).expanduser().absolute())})
    if arguments.overrides or arguments.json:
        raise UserError("evaluate: --set and --json need --data DIR, the data to evaluate on.")
    run, attempt = _live(arguments.run)
    return _ask(run, cmd.Evaluate(attempt=attempt))


def early_stop(arguments: Namespace) -> int:
    run, attempt = _live(arguments.run)
    return _ask(run, cmd.StopEarly(attempt=attempt))


def epochs(arguments: Namespace) -> int:
    if fault := limits.epochs_fault(arguments.number, done=0, inside=False):
        raise UserError(f"epochs {arguments.number}: {fault}.")
    run, attempt = _live(arguments.run)
    return _ask(run, cmd.SetEpochs(attempt=attempt, epochs=arguments.number))


def patience(arguments: Namespace) -> int:
    if fault := limits.patience_fault(arguments.number):
        raise UserError(f"patience {arguments.number}: {fault}.")
    run, attempt = _live(arguments.run)
    return _ask(run, cmd.SetPatience(attempt=attempt, patience=arguments.number))


def learning_rate(arguments: Namespace) -> int:
    run, attempt = _live(arguments.run)
    return _ask(run, cmd.SetLrScale(attempt=attempt, scale=parse_scale(arguments.scale)))


def stop(arguments: Namespace) -> int:
    """Done when the run has ended, however it ended: it no longer runs."""
    if arguments.all == (arguments.run is not None):
        raise UserError("stop: give a RUN, or --all for every live one.")
    if arguments.all:
        if arguments.after != "step":
            raise UserError("stop --all stops every run after its step; omit --after.")
        return _stop_all()
    run, attempt = _live(arguments.run)
    order = cmd.Stop(attempt=attempt, when="after_step" if arguments.after == "step" else "after_epoch")
    watch = Watch(run, table=False)
    try:
        launch.send_stop(run, order)
        say(f"stopping {watch.id} after this {arguments.after}")
        code = watch.wait()
        wait_until_gone(run)
    except KeyboardInterrupt:
        say(f"no longer waiting; {watch.id} still stops after this {arguments.after}")
        return codes.INTERRUPTED
    return codes.FAILED if code == codes.FAILED else codes.DONE


def _stop_all() -> int:
    """Ask all runs of this machine at once, as when it is taken away, and wait until each is saved and gone."""
    live, failed = [], False
    for run in list_runs():
        try:
            live += [run] * send_signal(run, signal.SIGTERM)
        except (DataError, OSError) as error:  # of another machine: no reason to leave the others unsaved
            say(f"{run.path.name} is not stopped: {error}")
            failed = True
    for run in live:
        try:
            wait_until_gone(run)
            show(f"{run.path.name} {RunReader(run).status().state}")
        except DataError as error:
            say(str(error))
            failed = True
    if not live and not failed:
        say("no run is live")
    return codes.FAILED if failed else codes.DONE


def kill(arguments: Namespace) -> int:
    """The supervisor kills the engine, records it, and leaves when nothing of the run is left."""
    run = find_run(arguments.run)
    if not send_signal(run, signal.SIGQUIT):
        raise DataError(f"{run.info.id} is {RunReader(run).status().state}: no process to kill.")
    try:
        wait_until_gone(run)
    except KeyboardInterrupt:
        say("no longer waiting; the kill was sent")
        return codes.INTERRUPTED
    show(f"{run.info.id} killed; no processes left")
    return codes.DONE


def parse_weights(texts: list[str], heads: list[str]) -> dict[str, float]:
    """`head=1.2` … as weights. Raises `UserError` naming every fault, one a line."""
    wanted: dict[str, float] = {}
    faults = []
    for text in texts:
        head, equals, value = text.partition("=")
        if not equals:
            faults.append(f"{text}: expected HEAD=WEIGHT, as in {heads[0]}=0.5.")
        elif head not in heads:
            faults.append(f"{text}: there is no head {head!r}{nearest(head, heads)}; heads: {', '.join(heads)}.")
        elif (weight := typed_number(value)) is None or weight < 0:
            faults.append(f"{text}: a weight must be a finite number of 0 or more.")
        elif head in wanted:
            faults.append(f"{text}: {head} is given twice.")
        else:
            wanted[head] = weight
    if faults:
        raise UserError("\n".join(faults))
    return wanted


def parse_scale(text: str) -> float:
    """`0.5x` as 0.5. Raises `UserError`; a bare number could be meant as a learning rate."""
    scale = typed_number(text[:-1]) if text.endswith(("x", "×")) else None
    if scale is None:
        raise UserError(f"lr {text}: expected a factor of the schedule as configured, as in 0.5x.")
    if fault := limits.scale_fault(scale):
        raise UserError(f"lr {text}: {fault}.")
    return scale


def _heads(run: RunDirectory) -> list[str]:
    if run.info.kind != "training":
        raise UserError(f"{run.info.id} is a {run.info.kind} and has no loss weights.")
    from cockpit.core.steering.loss_weights import configured  # numpy, which no other command needs

    heads = list(configured(read_config(run).tree))
    if not heads:
        raise UserError(f"{run.info.id} has no loss weights in its config.")
    return heads


def _live(name: str) -> tuple[RunDirectory, int]:
    """The run and the attempt that is to hear the command. Raises `UserError` for one that is not live."""
    run = find_run(name)
    status = RunReader(run).status()
    if not status.live:
        raise DataError(f"{run.info.id} is {status.state}; only a live run can be steered.")
    return run, max(run.attempt_numbers(), default=1)


def _ask(run: RunDirectory, command: cmd.Command, *, quiet: bool = False) -> int:
    """Send a command, wait for its answer and tell it; `quiet`: only where it was not applied."""
    reader = RunReader(run)
    launch.send(run, command)
    deadline = time.monotonic() + ANSWER_SECONDS
    what = cmd.describe(command)
    while True:
        status = reader.status()
        answer = reader.history.answer(command.id, command.attempt)
        if answer is not None and answer.state != "seen":
            applied = answer.state == "applied"
            if not (quiet and applied):
                show(f"{what}: {Order(command, answer).outcome}")
            return codes.DONE if applied else codes.FAILED
        if status.state == "queued":
            show(f"{what}: sent; {run.info.id} waits for its device; it is applied once it starts")
            return codes.DONE
        if not status.live:
            say(f"{what}: not applied, {run.info.id} is {status.state}")
            return codes.FAILED
        if time.monotonic() >= deadline:
            break
        time.sleep(POLL_SECONDS / 5)
    if answer is None:
        say(f"{what}: no answer in {ANSWER_SECONDS:.0f} s; it is applied once the engine responds")
        return codes.FAILED
    show(f"{what}: received; applied when {status.detail or 'the step'} is over")
    return codes.DONE
