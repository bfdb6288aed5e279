"""The queue without a screen: a sweep is queued, its order changed, a run of it taken out."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.cli import main
from engines.basics.lock import lock_holder
from engines.host import queue
from engines.runs import launch
from engines.runs.state import RunReader
from engines.runs.store import create_run, find_run, list_runs

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def busy(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Id of a run that holds the CPU until the end of the test."""
    (tmp_path / "sleeping_engine.py").write_text("import time\nwhile True: time.sleep(0.05)\n")
    (tmp_path / "a.yaml").write_text("project: controls\ndata: {path: recordings}\nlaunch: {device: cpu}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("COCKPIT_QUEUE", str(tmp_path / "queues"))
    monkeypatch.chdir(tmp_path)
    run = create_run("toy", "launch: {device: cpu}", kind="training", engine="sleeping_engine", title="")
    launch.start(run)
    while not queue.places():
        assert lock_holder(run.lock)
    yield run.info.id
    for made in reversed(list_runs(runs)):
        if (holder := lock_holder(made.lock)) is not None:
            os.kill(holder, signal.SIGQUIT)


def answer(capsys: Capture, *typed: str, code: int = 0) -> str:
    """What a command prints; on stderr where it fails."""
    assert main(typed) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out


def waiting(capsys: Capture) -> list[str]:
    return [place["id"] for place in json.loads(answer(capsys, "queue", "--json")) if place["number"]]


def test_a_sweep_waits_in_an_order_that_can_be_changed(busy: str, capsys: Capture) -> None:
    lines = answer(capsys, "train", "a.yaml", "--sweep", "training.seed=1,2,3").splitlines()
    ids, labels = zip(*(line.split("  ") for line in lines), strict=True)
    assert labels == ("seed=1", "seed=2", "seed=3")
    first, second, third = ids
    assert waiting(capsys) == [first, second, third]
    table = answer(capsys, "queue").splitlines()
    assert [line.split() for line in table[2:]] == [
        ["cpu", "runs", busy], ["cpu", "1", first], ["cpu", "2", second], ["cpu", "3", third],
    ]  # fmt: skip
    assert answer(capsys, "queue", "move", third, "first") == f"{third} is number 1 for cpu\n"
    assert waiting(capsys) == [third, first, second]
    assert "no longer waits" in answer(capsys, "queue", "cancel", first)
    assert waiting(capsys) == [third, second]
    assert RunReader(find_run(first)).status().state == "stopped"
    assert {run["id"]: run["state"] for run in json.loads(answer(capsys, "ls", "--json"))} == {
        busy: "starting", first: "stopped", second: "queued", third: "queued",
    }  # fmt: skip
    assert "is not in a queue" in answer(capsys, "queue", "cancel", busy, code=1)
    assert "is not in a queue" in answer(capsys, "queue", "move", first, "up", code=1)


def test_one_run_is_queued_and_stopped_like_any_other(busy: str, capsys: Capture) -> None:
    run_id = answer(capsys, "train", "a.yaml", "--queue", "--detach").strip()
    assert waiting(capsys) == [run_id]
    assert main(["stop", run_id]) == 0
    told = capsys.readouterr().err
    assert f"{run_id} stopped: ended while waiting for cpu" in told
    assert waiting(capsys) == []
    assert answer(capsys, "resume", run_id, "--detach").strip() == run_id  # the config still says that it waits
    assert waiting(capsys) == [run_id]


@pytest.mark.usefixtures("runs")
def test_a_sweep_into_one_directory_is_refused(capsys: Capture, tmp_path: Path) -> None:
    told = answer(capsys, "train", "a.yaml", "--sweep", "training.seed=1,2", "--run-dir", str(tmp_path / "x"), code=2)
    assert told == "cockpit: --run-dir is one directory, and each run of a sweep needs its own; omit it.\n"


@pytest.mark.usefixtures("runs")
def test_an_empty_queue_says_how_to_wait(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCKPIT_QUEUE", str(tmp_path / "queues"))
    assert main(["queue"]) == 0
    assert "cockpit train CONFIG --queue" in capsys.readouterr().err
    assert answer(capsys, "queue", "--json") == "[]\n"
