"""A rented machine is taken away: SIGTERM to all, then another machine with the volume elsewhere."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from engines.contract.rundir import RunDirectory
from engines.contract.steps import read_segments
from engines.runs.saved import read_saved
from tests.engines.conftest import LiveRun, wait_for

SECRETS = {
    "WANDB_API_KEY": "secret-of-wandb-0123", "RUNPOD_API_KEY": "secret-of-runpod-0123", "HF_TOKEN": "secret-of-hf-0123",
    "AWS_SECRET_ACCESS_KEY": "secret-of-aws-0123", "COCKPIT_TOKEN": "secret-of-serve-0123",
}  # fmt: skip


def steps_of(run: RunDirectory) -> int:
    """Steps that are logged."""
    segments = read_segments(run.steps) if run.steps.is_dir() else []
    return int(segments[-1][1][-1, 0]) + 1 if segments and len(segments[-1][1]) else 0


def leaks(run: RunDirectory, pids: list[int]) -> list[str]:
    """Where a secret of the environment is: files of the run, and command lines."""
    texts = {str(file): file.read_bytes() for file in run.path.rglob("*") if file.is_file()}
    texts |= {f"process {pid}": " ".join(psutil.Process(pid).cmdline()).encode() for pid in pids}
    return [place for place, text in texts.items() if any(secret.encode() in text for secret in SECRETS.values())]


def open_to_others(run: RunDirectory) -> list[str]:
    return [str(path) for path in (run.path, *run.path.rglob("*")) if stat.S_IMODE(path.lstat().st_mode) & 0o077]


@pytest.mark.behaviour("preempted-and-moved")
def test_what_is_taken_away_is_saved_and_goes_on_from_a_volume_elsewhere(
    new_run: Callable[..., LiveRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    old = os.umask(0)  # modes are our own doing
    live = new_run("training.epochs=100000", "training.steps_per_epoch=5", "training.log_every=1")
    try:
        live.start()
    finally:
        os.umask(old)
    wait_for("steps", lambda: steps_of(live.run) > 12)
    attempt = live.run.newest_attempt()
    assert attempt is not None
    assert attempt.engine is not None
    pids = [attempt.supervisor.pid, attempt.engine.pid]
    assert leaks(live.run, pids) == []
    for pid in pids:  # as `kill -TERM -1` does
        os.kill(pid, signal.SIGTERM)
    assert live.wait_end() == "stopped"
    saved = read_saved(live.run.last)
    assert saved.step == steps_of(live.run) > 12
    assert leaks(live.run, []) == []
    assert open_to_others(live.run) == []

    os.rename(tmp_path / "runs", tmp_path / "volume")
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "volume"))
    moved = LiveRun(RunDirectory(tmp_path / "volume" / live.run.path.name))
    assert moved.resume_here(f"training.epochs={saved.epoch + 2}") == "finished"
    assert steps_of(moved.run) == (saved.epoch + 2) * 5
    started = moved.reader.history
    moved.reader.poll()
    assert started.resumes == [saved.step]
    assert str(tmp_path / "runs") not in moved.run.config.read_text()
