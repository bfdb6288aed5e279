"""train, resume, check and the steering commands with the real engine, on the example project of the docs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.cli import main
from engines.basics.jsonl import RecordFollower
from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.runs.state import RunReader
from engines.runs.store import find_run, list_runs
from tests.cockpit.cli.conftest import COMMAND, Cockpit
from tests.support.example_project import ExampleProject
from tests.support.here import engines_here

ENDLESS = ("training.epochs=100000", "training.patience=100000", "training.stages=[]")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> ExampleProject:
    return ExampleProject(tmp_path_factory.mktemp("example"))


@pytest.fixture
def config(example: ExampleProject, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The example's config, for one thread; whatever a failing test leaves alive is ended."""
    monkeypatch.setenv("PYTHONPATH", str(example.folder))
    monkeypatch.syspath_prepend(str(example.folder))
    file = tmp_path / "spiral.yaml"
    file.write_text(example.config.read_text() + "launch: {threads: 1}\n")
    yield str(file)
    for run in list_runs(runs):
        if holder := lock_holder(run.lock):
            os.kill(holder, signal.SIGQUIT)


@pytest.fixture
def attended() -> Iterator[None]:
    """The engine of a command that stays with its run works in this process."""
    with engines_here():
        yield


def settings(*texts: str) -> list[str]:
    return [part for text in texts for part in ("--set", text)]


def wait_for_state(run_id: str, state: str) -> None:
    reader = RunReader(find_run(run_id))
    deadline = time.monotonic() + 120
    while reader.status().state != state:
        assert time.monotonic() < deadline, reader.status()
        time.sleep(0.02)


def epochs(table: str) -> list[int]:
    """The epoch of every row of a printed table."""
    return [int(line.split()[0]) for line in table.splitlines() if re.match(r" *\d", line)]


@pytest.mark.usefixtures("attended")
def test_train_shows_the_table_and_resume_goes_on_with_it(cockpit: Cockpit, config: str) -> None:
    trained = cockpit("train", config, "--name", "first", *settings("training.epochs=3", "cost.on_finish=exit 0"))
    assert trained.returncode == 0, trained.stderr
    lines = trained.stdout.splitlines()
    assert lines[0].split() == ["Ep", "Stage", "TrLoss", "Side", "Radius", "Score", "LR"]
    stages = ["radius only", "radius only", "everything"]
    assert all(f" {stage} " in line for line, stage in zip(lines[2:], stages, strict=True))
    assert epochs(trained.stdout) == [1, 2, 3]
    assert any(line.endswith(" *") for line in lines)
    assert "cockpit: when the run ends and nothing else runs here, this runs: exit 0" in trained.stderr
    run = find_run("last")
    assert run.info.label == "first"
    assert f"{run.info.id} finished; best score" in trained.stderr
    assert lock_holder(run.lock) is None
    assert cockpit("tail", "last").stdout == trained.stdout
    report = cockpit("report", "last")
    assert report.returncode == 0
    assert [line.split()[0] for line in report.stdout.splitlines()[3:5]] == ["1", "2"], "its two stages"

    done = cockpit("resume", "last")
    assert done.returncode == 2
    assert "is finished at epoch 3; give it more epochs or patience" in done.stderr
    resumed = cockpit("resume", "last", *settings("training.epochs=4", "model.width=8"))
    assert resumed.returncode == 0, resumed.stderr
    assert "model.width: 32 → 8, ignored because" in resumed.stderr
    assert "training.epochs: 3 → 4, applied" in resumed.stderr
    assert resumed.stdout.splitlines()[:-1] == lines
    assert epochs(resumed.stdout) == [1, 2, 3, 4]


def test_a_detached_run_is_steered_stopped_and_resumed(cockpit: Cockpit, config: str) -> None:
    started = cockpit("train", config, "--detach", *settings(*ENDLESS))
    assert started.returncode == 0
    run_id = started.stdout.strip()
    assert started.stderr == ""
    wait_for_state(run_id, "running")
    refused = cockpit("resume", run_id)
    assert refused.returncode == 1
    assert "has a live engine" in refused.stderr
    assert cockpit("checkpoint", run_id).stdout.startswith("save a checkpoint: applied at step ")
    assert cockpit("pause", run_id).returncode == 0
    paused = cockpit("weights", run_id, "radius=2", "side=0.5")
    assert re.fullmatch(r"loss weights radius 2, side 0\.5: applied at step \d+\n", paused.stdout), paused
    assert cockpit("lr", run_id, "0.5x").stdout.startswith("learning rate × 0.5: applied at step ")
    assert json.loads(cockpit("show", run_id, "--json").stdout)["state"] == "paused"
    assert cockpit("continue", run_id).returncode == 0
    stopped = cockpit("stop", run_id)
    assert stopped.returncode == 0
    assert "stopped: saved at step " in stopped.stderr
    assert cockpit("tail", run_id).returncode == 3
    again = cockpit("resume", run_id, "--detach")
    assert again.stdout.strip() == run_id
    assert cockpit("kill", run_id).returncode == 0
    shown = json.loads(cockpit("show", run_id, "--json").stdout)
    assert [attempt["reason"] for attempt in shown["attempts"]] == ["stopped", "stopped"]
    assert "killed on request" in shown["detail"]


def test_interrupting_train_saves_and_stops_the_run(config: str) -> None:
    command = [*COMMAND, "train", config, *settings(*ENDLESS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as train:
        assert train.stdout is not None
        assert train.stderr is not None
        while not train.stdout.readline().lstrip().startswith("1 "):
            assert train.poll() is None
        train.send_signal(signal.SIGINT)
        rest, news = train.stdout.read(), train.stderr.read()  # not communicate(), which skips what readline() holds
    assert train.returncode == 130
    assert "Ctrl-C again returns without waiting" in news
    assert "stopped: saved" in news
    run = find_run("last")
    assert RunReader(run).status().state == "stopped"
    assert run.last.is_file()
    assert epochs(rest) == list(range(2, 2 + len(epochs(rest))))


@pytest.mark.behaviour("q-ctrl-c-cockpit")
def test_interrupting_train_twice_leaves_the_run_to_itself(config: str) -> None:
    command = [*COMMAND, "train", config, *settings(*ENDLESS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as train:
        assert train.stderr is not None
        assert "started; Ctrl-C stops it" in train.stderr.readline()
        run = find_run("last")
        holder = lock_holder(run.lock)
        assert holder is not None
        os.kill(holder, signal.SIGSTOP)  # so that the run cannot end in between
        train.send_signal(signal.SIGINT)
        assert "Ctrl-C again" in train.stderr.readline()
        train.send_signal(signal.SIGINT)
        assert f"stops on its own; watch it with `cockpit tail {run.info.id}`" in train.stderr.read()
        assert train.wait() == 130
    assert lock_holder(run.lock) == holder
    assert [type(command) for command in RecordFollower(run.commands, cmd.decoder).poll()] == [cmd.Stop]
    os.kill(holder, signal.SIGQUIT)
    os.kill(holder, signal.SIGCONT)
    assert main(["tail", "last"]) == 3


@pytest.mark.usefixtures("attended")
def test_faults_before_and_after_the_start_are_one_sentence(cockpit: Cockpit, config: str, runs: Path) -> None:
    answer = cockpit("train", config, *settings("training.epohcs=3", "model.width=wide"))
    assert answer.returncode == 2
    assert len(answer.stderr.splitlines()) == 2
    assert "training.epohcs is not a known key (did you mean 'epochs'?)" in answer.stderr
    assert list_runs(runs) == []
    answer = cockpit("train", config, *settings("model.width=-1"))
    assert answer.returncode == 1
    assert "the last lines of" in answer.stderr
    assert "RuntimeError" in answer.stderr


def test_a_run_dir_is_the_run_and_an_occupied_one_is_refused(cockpit: Cockpit, config: str, tmp_path: Path) -> None:
    occupied = tmp_path / "occupied"
    occupied.mkdir()
    (occupied / "mine.txt").write_text("")
    answer = cockpit("train", config, "--run-dir", str(occupied), "--detach")
    assert answer.returncode == 1
    assert f"cockpit resume {occupied}" in answer.stderr
    assert [path.name for path in occupied.iterdir()] == ["mine.txt"]
