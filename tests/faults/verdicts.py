"""What counts as lost: a run that was hurt beside one that nothing happened to."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from engines.basics.errors import DataError
from engines.contract import events as ev
from engines.contract.rundir import RunDirectory
from engines.contract.steps import read_segments, read_series
from engines.runs.history import History
from engines.runs.state import RunReader
from engines.training import checkpoint
from tests.engines.conftest import tensors
from tests.support.command import called

TIMED = ("data_wait", "time", "attempt", "step", "seconds", "ms")
"""Columns and metrics that say how long something took."""


def table(run: RunDirectory) -> list[dict[str, Any]]:
    """The epochs in force, straight from the log: each one's last record without what took time."""
    rows: dict[int, dict[str, Any]] = {}
    for line in run.events.read_bytes().splitlines():
        try:
            event = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue  # torn by the fault
        if isinstance(event, dict) and event.get("type") == "epoch":
            row = {key: value for key, value in event.items() if key not in ("time", "attempt", "seq", "seconds")}
            row["validation"] = {k: v for k, v in row["validation"].items() if k not in TIMED}
            rows[row["epoch"]] = row
    return [rows[epoch] for epoch in sorted(rows)]


def edits(run: RunDirectory) -> list[tuple[str, int]]:
    """Every edit in force with the step it was applied at."""
    reader = RunReader(run)
    reader.poll()
    return [(type(answer.command).__name__, answer.step) for answer in reader.history.edits()]


@dataclass(frozen=True)
class Promises:
    """What a run says it has saved, when a fault is over."""

    logs: dict[str, bytes]
    """What its logs hold: nothing of it may change any more."""
    history: History

    @classmethod
    def of(cls, run: RunDirectory) -> Promises:
        reader = RunReader(run)
        reader.poll()
        logs = (run.events, run.commands, run.train_metrics, run.val_metrics)
        return cls({str(log): log.read_bytes() for log in logs if log.is_file()}, reader.history)


@dataclass
class Verdict:
    """What was lost, a sentence each; nothing where all is well."""

    lost: list[str] = field(default_factory=list)

    def expect(self, holds: bool, sentence: str) -> None:
        if not holds:
            self.lost.append(sentence)

    def kept(self, run: RunDirectory) -> Promises:
        """Look at what the run says it has saved: is it there, and can it be read?"""
        promises = Promises.of(run)
        saved: list[ev.Checkpoint] = promises.history.checkpoints
        steps = {}
        for path in sorted(run.checkpoints.glob("*.pt")):
            try:
                steps[path.name] = int(checkpoint.load(path)["state"]["step"])
            except DataError as error:
                self.lost.append(f"{path.name} cannot be read: {error}")
        for one in saved:
            for name in one.files:
                self.expect(name in steps, f"{name}, saved at step {one.step}, is not there")
                self.expect(steps.get(name, one.step) >= one.step, f"{name} is older than step {one.step}")
        for log in (run.train_metrics, run.val_metrics):
            there = {row["epoch"] for row in _rows(log)}
            for row in promises.history.epochs.values():
                written = row.epoch in there or not (row.evaluated or log == run.train_metrics)
                self.expect(written, f"epoch {row.epoch} is in the table and not in {log.name}")
        return promises

    def still(self, promises: Promises) -> None:
        """Look whether what was in the logs is in them yet."""
        for log, before in promises.logs.items():
            now = Path(log).read_bytes()
            self.expect(now.startswith(before), f"{Path(log).name} lost what it held")

    def truth(self, run: RunDirectory, expected: tuple[str, ...], words: str = "") -> str:
        """Look at the state, as every command tells it; the state."""
        status = RunReader(run).status()
        self.expect(
            status.state in expected, f"state {status.state} ({status.detail}); expected {' or '.join(expected)}"
        )
        if words and status.state == "failed":
            self.expect(words.casefold() in status.detail.casefold(), f"{status.detail!r} does not say {words!r}")
        answer = called("ls", "--json")
        listed = json.loads(answer.stdout) if answer.returncode == 0 else []
        states = [one["state"] for one in listed if one["id"] == run.info.id]
        self.expect(states == [status.state], f"ls lists it as {states}; it is {status.state}")
        return status.state

    def equal(self, run: RunDirectory, reference: RunDirectory, *, delivered: bool) -> None:
        """Compare with the run that nothing happened to: bit for bit; `delivered` with what a finished run delivers."""
        for name in sorted(path.name for path in reference.checkpoints.glob("*.pt")):
            try:
                ours, theirs = tensors(run.checkpoints / name), tensors(reference.checkpoints / name)
            except (OSError, DataError) as error:
                self.lost.append(f"{name}: {error}")
                continue
            different = [
                place for place in sorted(theirs)
                if place not in ours or ours[place].numpy().tobytes() != theirs[place].numpy().tobytes()
            ]  # fmt: skip
            self.expect(not different and len(ours) == len(theirs), f"{name} differs in {', '.join(different[:3])}")
        self.expect(table(run) == table(reference), "the epoch table differs")
        self.expect(edits(run) == edits(reference), f"edits {edits(run)} instead of {edits(reference)}")
        columns = {column for names, _ in read_segments(reference.steps) for column in names} - set(TIMED)
        for column in sorted(columns):
            ours_, theirs_ = read_series(run.steps, column), read_series(reference.steps, column)
            same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(ours_, theirs_, strict=True))
            self.expect(same, f"the steps' {column} differs")
        for array in sorted(reference.review.rglob("*.np?")):
            place = array.relative_to(reference.path)
            other = run.path / place
            self.expect(other.is_file() and other.read_bytes() == array.read_bytes(), f"{place} differs")
        for folder in ("checkpoints", "review", *["export"] * delivered):
            names = [
                {str(p.relative_to(one.path)) for p in (one.path / folder).rglob("*") if p.suffix != ".tmp"}
                for one in (run, reference)
            ]
            self.expect(names[0] == names[1], f"{folder}: {sorted(names[0] ^ names[1])[:4]}")
        self.expect(run.report.is_file() or not (delivered and reference.report.is_file()), "report.json is missing")


def _rows(log: Path) -> list[dict[str, Any]]:
    rows = []
    for line in log.read_bytes().splitlines() if log.is_file() else []:
        try:
            row = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows
