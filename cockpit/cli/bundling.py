"""Runs as single files: made for another machine, and opened there."""

from __future__ import annotations

import csv
import getpass
import io
import os
import shlex
import shutil
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from cockpit.cli import codes
from cockpit.cli.plotting import svg_of
from cockpit.cli.printing import say, show
from cockpit.core.metrics.run_metrics import RunMetrics
from cockpit.core.text import plain
from engines.basics.amounts import size
from engines.basics.errors import UserError
from engines.contract.events import Epoch
from engines.contract.rundir import RunDirectory
from engines.runs.bundle import ENDING, write_bundle
from engines.runs.state import RunReader
from engines.runs.store import find_run
from engines.runs.trust import what_it_runs
from engines.runs.unbundle import unbundle as take_out

PICTURES = {"score.svg": ("score",), "loss.svg": ("train.loss", "validation.loss")}
"""What is drawn for a bundle, by names of `cockpit metrics`; those that a run does not have are left out."""


def bundle(arguments: Namespace) -> int:
    """Write one tar and print how to bring it elsewhere."""
    run = find_run(arguments.run)
    out = Path(arguments.out or f"{run.info.id}{ENDING}").absolute()
    if out.exists() and not arguments.force:
        raise UserError(f"{out} exists already; add --force to replace it, or choose another name with --out.")
    checkpoints = write_bundle(run, out, extras(run), last=arguments.last)
    if not checkpoints:
        say(f"{run.info.id} has no checkpoint: the bundle has only its record")
    show(str(out))
    say(f"{size(out.stat().st_size)}; to copy it from here:")
    for command in transfer_commands(out, os.environ):
        say(f"  {command}")
    say(f"there, open it with `cockpit unbundle {shlex.quote(out.name)}`")
    return codes.DONE


def unbundle(arguments: Namespace) -> int:
    """Make a run of a bundle and print its id."""
    run = take_out(Path(arguments.file))
    show(run.info.id)
    for sentence in what_it_runs(run):
        say(f"when resumed: {sentence}" if sentence.startswith("it ") else sentence)
    return codes.DONE


def extras(run: RunDirectory) -> dict[str, bytes]:
    """The epoch table as CSV and the main curves as pictures, by name; nothing where there is nothing to show."""
    found: dict[str, bytes] = {}
    reader = RunReader(run)
    reader.poll()
    if epochs := reader.history.epochs.values():
        found["table.csv"] = _csv([_row(epoch) for epoch in epochs])
    metrics = RunMetrics(run, run.info.id)
    metrics.poll()
    series = metrics.series()
    for file, names in PICTURES.items():
        curves = {name: series[name] for name in names if name in series}
        if curves and (picture := svg_of(curves, run.info.label or run.info.id)):
            found[file] = picture.encode()
    return found


def _row(epoch: Epoch) -> dict[str, float | None]:
    parts = {"train": epoch.train, "validation": epoch.validation}
    values = {f"{part}.{name}": value for part, named in parts.items() for name, value in named.items()}
    return {"epoch": epoch.epoch, "step": epoch.step, "score": epoch.score, "lr": epoch.lr, **values}


def _csv(rows: Sequence[Mapping[str, float | None]]) -> bytes:
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([plain(name) for name in names])
    writer.writerows([["" if row.get(name) is None else repr(row[name]) for name in names] for row in rows])
    return text.getvalue().encode()


def transfer_commands(file: Path, environment: Mapping[str, str]) -> list[str]:
    """How to copy `file` to the machine that the user sits at: by runpodctl where it is, and by scp, typed there."""
    commands = []
    if shutil.which("runpodctl", path=environment.get("PATH")):
        commands.append(f"runpodctl send {shlex.quote(str(file))}")
    host, port = environment.get("RUNPOD_PUBLIC_IP", ""), environment.get("RUNPOD_TCP_PORT_22", "")
    if not host and len(parts := environment.get("SSH_CONNECTION", "").split()) == 4:
        host, port = parts[2], parts[3]
    option = f"-P {port} " if port and port != "22" else ""
    address = f"{getpass.getuser()}@{host}" if host else "HOST"
    commands.append(f"scp {option}{shlex.quote(f'{address}:{file}')} .")
    return commands
