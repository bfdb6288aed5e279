"""Makes a run of a log: its series as step records, its epochs as rows of the table, restarts as attempts.

What a restart superseded comes first, one attempt a branch; the last attempt holds everything in force, and so
supersedes the others. Nothing is overwritten, and an import that fails leaves nothing behind.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from cockpit.core.foreign.epochs import EpochRow, epoch_rows
from cockpit.core.foreign.kinds import Source
from cockpit.core.series import Floats, Series
from engines.basics import files, yaml12
from engines.basics.errors import DataError
from engines.contract import events as ev
from engines.contract.rundir import Attempt, End, ProcessMark, RunDirectory
from engines.contract.steps import ABSENT, FIXED, MOST_COLUMNS, StepWriter
from engines.reporter.names import PLACES, column_name, split_values, table_columns
from engines.runs.store import create_run

PROJECT = "imported"


@dataclass(frozen=True)
class Records:
    """Metrics by name over common steps: `place: (step, epoch, time; n)`, `values: (n, names)`, ABSENT where none."""

    names: list[str]
    place: Floats
    values: Floats


def import_log(source: Source, label: str = "") -> RunDirectory:
    """A finished run in the runs folder with all that `source` holds now. Raises `DataError`."""
    while source.poll():
        pass
    series = source.series()
    if not series:
        raise DataError(f"{source.path} has no numbers to import; a log needs at least one row.")
    if len(series) > MOST_COLUMNS - len(FIXED) - len(PLACES):
        raise DataError(f"{source.path} has {len(series):,} metrics; a run has at most {MOST_COLUMNS:,} columns.")
    config = {"project": PROJECT, "source": str(source.path.absolute()), "kind": source.kind}
    run = create_run(
        PROJECT, yaml12.write(config), kind="training", engine="", title=f"{source.path.absolute()} ({source.kind})",
        label=label,
    )  # fmt: skip
    try:
        _write(run, _attempts(series), source.path.stat().st_mtime)
    except BaseException:
        shutil.rmtree(run.path, ignore_errors=True)
        raise
    return run


def _attempts(series: Mapping[str, Series]) -> list[Records]:
    """What each branch logged, the one in force last."""
    most = max(len(one.old) for one in series.values())
    old = [
        {one.name: one.old[number - most] for one in series.values() if len(one.old) >= most - number}
        for number in range(most)
    ]
    superseded = [
        _join([Series(name, steps, _blank(steps), _blank(steps), values) for name, (steps, values) in branch.items()])
        for branch in old
    ]
    return [*superseded, _join(list(series.values()))]


def _blank(steps: Floats) -> Floats:
    return np.full(len(steps), np.nan)


def _join(series: Sequence[Series]) -> Records:
    """The outer join of series by their step, of those without steps by their epoch.

    A metric called `epoch`, as Lightning's loggers write it, says where the others stand.
    """
    keys = [np.where(np.isnan(one.step), one.epoch, one.step) for one in series]
    steps = np.unique(np.concatenate(keys))
    place = np.full((3, len(steps)), np.nan)
    place[0] = steps
    values = np.full((len(steps), len(series)), ABSENT)
    for column, (one, key) in enumerate(zip(series, keys, strict=True)):
        rows = np.searchsorted(steps, key)
        place[1, rows] = np.where(np.isnan(one.epoch), place[1, rows], one.epoch)
        place[2, rows] = np.where(np.isnan(one.time), place[2, rows], one.time)
        values[rows, column] = one.value
    names = [one.name for one in series]
    if "epoch" in names and not np.isfinite(place[1]).any():
        column = names.index("epoch")
        place[1] = values[:, column]
        names.remove("epoch")
        values = np.delete(values, column, axis=1)
    return Records(names, place, values)


def _write(run: RunDirectory, attempts: Sequence[Records], modified: float) -> None:
    """Steps and events first, then the attempts' own files: the newest one makes the run finished."""
    names = list(dict.fromkeys(name for records in attempts for name in records.names))
    spans = [_span(records, modified) for records in attempts]
    lines: list[bytes] = []
    for number, (records, (began, ended)) in enumerate(zip(attempts, spans, strict=True), 1):
        _write_steps(run, number, records)
        for seq, event in enumerate(_events(records, names, began, ended)):
            event.attempt, event.seq = number, seq
            lines.append(msgspec.json.encode(event) + b"\n")
    files.replace_bytes(run.events, b"".join(lines))
    nobody = ProcessMark(os.getpid(), 0.0)  # no process stands behind a log; none began at the beginning of time
    for number, (records, (began, ended)) in enumerate(zip(attempts, spans, strict=True), 1):
        end = End(reason="finished", time=ended, exit_code=0, last_step=int(records.place[0, -1]))
        run.write_attempt(Attempt(number=number, started=began, supervisor=nobody, host=platform.node(), ended=end))


def _span(records: Records, modified: float) -> tuple[float, float]:
    """First and last time that the log gives, else when its file was written last, twice."""
    times = records.place[2][np.isfinite(records.place[2])]
    return (float(times.min()), float(times.max())) if len(times) else (modified, modified)


def _write_steps(run: RunDirectory, attempt: int, records: Records) -> None:
    writer = StepWriter(run.steps, [*PLACES, *map(column_name, records.names)])
    try:
        step, epoch, times = records.place
        place = np.stack([step, np.full(len(step), attempt), epoch, times], axis=1)
        writer.append(np.concatenate([place, records.values], axis=1))
    finally:
        writer.close()


def _events(records: Records, names: Sequence[str], began: float, ended: float) -> list[ev.Event]:
    """What an engine would have said."""
    rows = epoch_rows(records.place, records.values)
    last = int(records.place[0, -1])
    started = ev.RunStarted(
        project=PROJECT, device="elsewhere", epochs=len(rows), steps_per_epoch=max(1, round(last / len(rows))),
        columns=table_columns(names), stages=[], time=began,
    )  # fmt: skip
    epochs = [_epoch(row, records.names, ended) for row in rows]
    return [
        started,
        ev.Phase(phase="training", time=began),
        *epochs,
        ev.Ended(reason="finished", step=last, time=ended),
    ]


def _epoch(row: EpochRow, names: Sequence[str], ended: float) -> ev.Epoch:
    values = {names[column]: value for column, value in row.values.items()}
    train, validation = split_values(values)
    train, bad_train = ev.finite(train, "train.")
    validation, bad_validation = ev.finite(validation, "validation.")
    return ev.Epoch(
        epoch=row.number, step=row.step, stage="", train=train, validation=validation, score=None,
        lr=train.get("lr") or 0.0, best=False, weights={}, seconds=0.0, nonfinite=[*bad_train, *bad_validation],
        time=row.time if np.isfinite(row.time) else ended,
    )  # fmt: skip
