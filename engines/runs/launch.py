"""Starting engines: make or reopen a run directory, start its supervisor detached, go on.

Nothing of the caller is shared with what it starts: new session, stdio to files, so that closing the terminal,
a hang-up or a frozen caller changes nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from engines.basics.errors import DataError, UserError
from engines.basics.files import FILE_MODE
from engines.basics.jsonl import RecordFollower, last_lines
from engines.basics.line_writer import append_line
from engines.basics.lock import lock_holder
from engines.contract import commands
from engines.contract.rundir import RunDirectory
from engines.runs import resumption
from engines.runs.history import History
from engines.runs.resumption import Resumption
from engines.runs.state import RunReader
from engines.runs.store import create_run

if TYPE_CHECKING:
    from engines.contract.config import LoadedConfig
    from engines.runs.resume import Change

START_SECONDS = 20.0
ROOM_FOR_WORDS = 1 << 16
"""Bytes of disk without which a supervisor can neither begin nor say why."""


def prepare_training(
    config: Path, overrides: Sequence[str] = (), *, label: str = "", run_dir: Path | None = None
) -> RunDirectory:
    """Check a config and make the run directory for it. Raises `UserError`."""
    from engines.contract.config import load_config, with_recorded_environment

    loaded = with_recorded_environment(load_config(config, overrides))
    path = run_dir or (Path(loaded.settings.output.dir).expanduser() if loaded.settings.output.dir else None)
    return create_run(
        loaded.spec.name, loaded.dump(), kind="training", engine="engines.train",
        title=config.name, label=label, path=path, edition=loaded.spec.edition,
    )  # fmt: skip


def prepare_task(project: str, task: str, arguments: dict[str, Any], *, title: str) -> RunDirectory:
    """Make the run directory for other long work: a task that the project's spec names."""
    from engines.basics import yaml12  # its library is not needed by the first screen

    resolved = yaml12.write({"project": project, "task": task, "arguments": arguments})
    return create_run(project, resolved, kind="task", engine="engines.task", title=title)


def start(run: RunDirectory, resume: Resumption | None = None) -> int:
    """Start the supervisor of `run` detached and give the number of the attempt it began.

    Returns once the supervisor holds the lock. Raises `DataError` when it does not come to that, saying why; then
    nothing is left that could still start, and nothing of `resume` is in force.
    """
    run.refuse_links()
    before = set(run.attempt_numbers())
    command = [sys.executable, "-P", "-m", "engines.supervise", str(run.path), *["--resume"] * (resume is not None)]
    try:
        run.supervisor_log.touch(FILE_MODE)
        with open(run.supervisor_log, "ab") as log, tempfile.TemporaryFile() as asked:
            if resume is not None:
                asked.write(resumption.encode(resume))
                asked.seek(0)
            supervisor = subprocess.Popen(command, stdin=asked, stdout=log, stderr=log, start_new_session=True)
    except OSError as error:
        raise DataError(f"The engine of {run.path} did not start: {error}") from None
    deadline = time.monotonic() + START_SECONDS
    gone = False
    while not gone and time.monotonic() < deadline:
        gone = supervisor.poll() is not None  # asked first: what it wrote before it went is then there
        for number in set(run.attempt_numbers()) - before:
            attempt = run.attempt(number)
            if attempt.supervisor.pid != supervisor.pid:  # another launcher may have been faster
                continue
            if attempt.ended is not None and attempt.engine is None and attempt.ended.reason == "failed":
                raise DataError(f"The engine of {run.path} did not start: {attempt.ended.error}")
            return number
        time.sleep(0.01)
    if not gone:
        supervisor.kill()
        supervisor.wait()
        raise DataError(f"The engine of {run.path} did not start within {START_SECONDS:.0f} s and was killed.")
    raise DataError(f"The engine of {run.path} did not start: {_why_not(run)}")


def _why_not(run: RunDirectory) -> str:
    """Why a supervisor left before it began: its last words, or why it could have none."""
    if words := " ".join(last_lines(run.supervisor_log, 1)):
        return words
    if shutil.disk_usage(run.path).free < ROOM_FOR_WORDS:
        return f"its disk is full; free some space, then start it with `cockpit resume {run.path.name}`"
    return "it printed nothing"


@dataclass(frozen=True)
class ResumePlan:
    """What a resume will do: nothing is written yet."""

    recorded: LoadedConfig
    in_force: LoadedConfig
    """The recorded config with its live edits."""
    changes: list[Change]
    """Every setting that differs from those in force, with its fate."""
    attempt: int
    """The one it will be, if nobody else resumes the run meanwhile."""
    edits: list[commands.Edit]
    lost: list[commands.Edit]
    """Those of them that were sent to the attempt before, which ended without them."""
    ended: str
    """Why it would come to nothing, or not to what is asked for; else empty."""


def look_at_resume(run: RunDirectory, overrides: Sequence[str] = ()) -> ResumePlan:
    """What a resume with these settings will do. Raises `UserError` for a run that cannot, and for bad overrides."""
    from engines.contract.config import check_config, load_config, with_absolute_data
    from engines.runs import provenance
    from engines.runs.resume import fault_of, in_force, plan_resume, why_not_on_resume, with_edits_by_hand

    info = run.info
    if info.why_no_resume:
        raise UserError(info.why_no_resume)
    attempt = max(run.attempt_numbers(), default=0) + 1  # asked first: whoever comes from now on makes this one late
    if (holder := lock_holder(run.lock)) is not None:
        raise DataError(f"{info.id} has a live engine (process {holder}); stop it first with `cockpit stop {info.id}`.")
    reader = RunReader(run)
    status = reader.status()
    recorded = load_config(run.recorded_config)
    tree = in_force(recorded, (answer.command for answer in reader.history.edits()))
    edited = with_edits_by_hand(tree, recorded, load_config(run.config))
    current = check_config(tree, str(run.config), {}, ())
    wanted = with_absolute_data(check_config(edited, str(run.config), {}, overrides))

    def why_not(key: str) -> str:
        return provenance.why_other_data(run, wanted) if key == "data.path" else why_not_on_resume(key)

    changes, edits = plan_resume(recorded, current, wanted, attempt, why_not)
    ended, done = "", reader.history.done
    if status.state in ("finished", "early-stopped") and not any(_gives_more(edit, done) for edit in edits):
        ended = (
            f"{info.id} is {status.state} at epoch {done}; give it more epochs or patience, "
            "as in --set training.epochs=200 or --set training.patience=50."
        )
    ended = ended or fault_of(edits, done=done, inside=_begins_next(reader.history))
    lost = _unanswered(run, reader.history, attempt, edits)
    return ResumePlan(recorded, current, changes, attempt, [*lost, *edits], lost, ended)


def prepare_resume(
    run: RunDirectory, overrides: Sequence[str] = (), *, trusted: bool = False
) -> tuple[Resumption, list[str]]:
    """What `start` is to be given for going on from the last checkpoint; nothing is written yet. With it what becomes
    of each changed setting, and what else has changed since (data, versions, machine), a sentence each.

    Raises `UserError` when the run is alive, is a task, or has nothing left to do, and for one from elsewhere that is
    not `trusted`.
    """
    from engines.contract import on_finish
    from engines.contract.config import check_config
    from engines.runs import provenance
    from engines.runs.resume import applied_config
    from engines.runs.trust import require

    plan = look_at_resume(run, overrides)
    if plan.ended:
        raise UserError(plan.ended)
    require(run, trusted=trusted)
    applied = check_config(applied_config(plan.recorded, plan.changes), str(run.config), {}, ())
    # with any change: what was ignored goes from the file too, where it was edited by hand
    resume = Resumption(attempt=plan.attempt, config=applied.dump() if plan.changes else None, edits=plan.edits)
    sentences = [change.sentence() for change in plan.changes]
    return resume, [
        *sentences,
        *(f"{commands.describe(edit)}: sent again: the last attempt ended before applying it" for edit in plan.lost),
        *provenance.since_the_newest(run, applied),
        *on_finish.sentences(applied.settings.model_dump()),
    ]


def _begins_next(history: History) -> bool:
    """Whether the run ends with a further epoch at the soonest: a checkpoint lies beyond the newest one that was
    recorded, or that was not evaluated."""
    saved, row = history.checkpoints[-1:], history.newest
    if row is not None and not row.evaluated:
        return True
    return bool(saved) and saved[0].step > (row.step if row is not None else 0)


def _gives_more(edit: commands.Edit, done: int) -> bool:
    """Whether a run that has ended by itself after `done` epochs has something to do again."""
    match edit:
        case commands.SetEpochs(epochs=epochs):
            return epochs > done
        case _:
            return isinstance(edit, commands.SetPatience)


def _unanswered(
    run: RunDirectory, history: History, attempt: int, newer: Sequence[commands.Edit]
) -> list[commands.Edit]:
    """For `attempt`: the edits that the one before neither applied nor refused, as it was killed or never began.

    Those of a fork that has not trained come back even when they were refused: they are what it was made with. Each
    waits for its own step and epoch again. What the `newer` ones set is left out.
    """
    open_states = {"seen", "refused"} if run.info.parent is not None and history.started is None else {"seen"}
    found = []
    for command in RecordFollower(run.commands, commands.decoder).poll():
        if command.attempt != attempt - 1 or not isinstance(command, get_args(commands.Edit)):
            continue
        answer = history.answer(command.id, command.attempt)
        left: commands.Edit | None = command if answer is None or answer.state in open_states else None
        for edit in newer:
            left = left and commands.left_of(left, edit)
        if left is not None:
            found.append(msgspec.structs.replace(left, attempt=attempt, id=commands.new_id()))
    return found


def send(run: RunDirectory, command: commands.Command) -> None:
    """Append one command for the engine. Raises OSError."""
    append_line(run.commands, commands.encode(command))


def send_stop(run: RunDirectory, order: commands.Stop) -> None:
    """Ask a run to stop; by signal where the command cannot be written, as on a full disk. Raises OSError."""
    try:
        send(run, order)
    except OSError:
        holder = lock_holder(run.lock)
        if holder is None or holder <= 0:
            raise
        os.kill(holder, signal.SIGTERM)
