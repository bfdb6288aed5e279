"""check and data: what the torch side finds out is shown, its faults are sentences and exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cockpit.cli import checking, data, main, tasks
from cockpit.core.times import date_and_clock
from engines.basics.errors import UserError
from engines.contract import spec as specs
from engines.runs.store import list_runs
from tests.cockpit.cli.conftest import COMMAND, Cockpit

FOUND: dict[str, Any] = {
    "config": "a.yaml",
    "faults": [],
    "exit_code": 0,
    "project": "controls",
    "device": "cpu",
    "data": {"train_sessions": 10, "session_types": {"combat": 1, "walking": 2}, "unsupported": ["hotbar_9"]},
    "parameters": {"total": 3_510_429, "trainable": 3_510_429},
    "steps": {"per_epoch": 500, "epochs": 150, "total": 75_000},
    "memory": {
        "model": 14_000_000, "gradients": 14_000_000, "optimizer": 28_000_000, "activations": 250_000_000,
        "data": 80_000_000, "evaluation": 95_000_000, "total": 386_000_000, "available": 23_000_000_000,
    },
    "micro_batches": 4,
    "precisions": {"chosen": "bf16", "seconds": {"off": 0.011, "tf32": 0.007, "bf16": 0.0095}},
    "disk": {"checkpoint": 42_000_000, "checkpoints": 3, "needed": 126_000_000, "free": 80e9, "path": "/runs"},
    "time": {"low": 3600, "likely": 5400, "high": 14_400, "measured": "steps", "steps": 30},
    "cost": {"low": 2.5, "likely": 3.75, "high": 10, "usd_per_hour": 2.5, "budget": None},
}  # fmt: skip


def test_a_check_is_shown_in_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[Any] = []

    def answer(module: str, arguments: list[str], *, doing: str) -> dict[str, Any]:
        asked.append((module, arguments))
        return FOUND

    monkeypatch.setattr(checking, "ask_engine", answer)
    assert main(["check", "a.yaml", "--set", "training.epochs=150"]) == 0
    assert asked == [("engines.check", ["a.yaml", "--set", "training.epochs=150"])]
    lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert {name: text.strip() for name, text in lines.items()} == {
        "config": "a.yaml",
        "project": "controls",
        "device": "cpu",
        "data train_sessions": "10",
        "data session_types": "combat 1, walking 2",
        "data unsupported": "hotbar_9",
        "parameters": "3,510,429, all trainable",
        "steps": "500 per epoch, 75,000 in 150 epochs",
        "memory": "about 386.0 MB of 23.0 GB free (model 14.0 MB, gradients 14.0 MB, optimizer 28.0 MB, "
        "activations 250.0 MB, data 80.0 MB, evaluation 95.0 MB)",
        "micro-batches": "4 per batch, so that it fits",
        "precision": "training.amp tf32 is quickest: tf32 0.007 s, bf16 0.0095 s (chosen), off 0.011 s per step",
        "disk": "about 126.0 MB of 80.0 GB free at /runs (3 checkpoints of 42.0 MB)",
        "time": "1 h 30 m (1 h 00 m to 4 h 00 m), a rough estimate from a few steps (--try measures)",
        "cost": "$3.75 ($2.50 to $10.00)",
    }


def test_a_try_is_shown_in_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    tried: dict[str, Any] = {
        "steps": 1234, "seconds_per_step": {"median": 0.05, "low": 0.04, "high": 0.1}, "samples_per_second": 1280.0,
        "data_wait": 0.031, "peak_memory": 466_500_000, "peak_memory_of": "GPU", "loading_seconds": 3.0,
        "evaluation_seconds": 0.217, "checkpoint": 1_971_189, "save_seconds": 12.4, "resume_seconds": 0.046,
        "resumed_equal": True,
    }  # fmt: skip
    time_and_cost = {
        "time": {"low": 3600, "likely": 5400, "high": 14_400, "measured": "try"},
        "cost": {"low": 2.5, "likely": 3.75, "high": 10, "usd_per_hour": 2.5, "budget": 3.0},
    }
    found = {"config": "a.yaml", "faults": [], "exit_code": 0, "try": tried, **time_and_cost}
    asked: list[list[str]] = []

    def answer(module: str, arguments: list[str], *, doing: str) -> dict[str, Any]:
        asked.append(arguments)
        return found

    monkeypatch.setattr(checking, "ask_engine", answer)
    monkeypatch.setattr("cockpit.core.launch.check_facts.time.time", lambda: 1_800_000_000.0)
    assert main(["check", "a.yaml", "--try"]) == 0
    shown = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert {name: text.strip() for name, text in shown.items() if name != "done by"} == {
        "config": "a.yaml",
        "tried": "1,234 steps",
        "speed": "20.0 steps/s (10.0 steps/s to 25.0 steps/s), 1,280 samples/s",
        "data wait": "3 % of a step",
        "peak memory": "466.5 MB of the GPU",
        "evaluation": "0.22 s",
        "save": "2.0 MB in 12 s",
        "resume": "equal to what was saved, in 0.046 s",
        "time": "1 h 30 m (1 h 00 m to 4 h 00 m), for all epochs",
        "cost": "$3.75 ($2.50 to $10.00) of a budget of $3.00, which is too little",
    }
    assert shown["done by"].strip() == date_and_clock(1_800_000_000 + 5400)

    tried |= {"resumed_equal": False, "seconds_per_step": None, "data_wait": None, "checkpoint": None}
    assert main(["check", "a.yaml", "--try-seconds", "2"]) == 0
    assert "resume       different from what was saved" in capsys.readouterr().out
    assert main(["check", "a.yaml", "--try-seconds", "0"]) == 2
    assert asked == [["a.yaml", "--try"], ["a.yaml", "--try", "--try-seconds=2.0"]]


def test_given_numbers_go_to_the_engine_and_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = specs.Spec(
        name="melee", title="", config="", project="", columns=(), heads=(), counts={"games": "m:f", "set": "m:f"}
    )
    monkeypatch.setattr(specs, "installed", lambda: {"melee": spec, "broken": specs.BrokenSpec("broken", "")})
    per_step = {"median": 0.05, "low": None, "high": None}
    stages = [
        {"name": "easy", "epochs": 2, "steps_per_epoch": 500, "memory": 2e9, "begin": per_step, "end": per_step},
        {"name": "hard", "epochs": 8, "steps_per_epoch": 9000},
    ]
    found = {
        "config": "a.yaml", "faults": [], "exit_code": 0, "stages": stages, "measured": ["memory", "evaluation"],
        "given": {"step_seconds": 0.05, "usd_per_hour": 1.79, "games": 100_000, "samples": 800_000_000},
        "time": {"low": None, "likely": 7200, "high": None, "measured": "given", "steps": 0},
        "cost": {"low": None, "likely": 3.58, "high": None, "usd_per_hour": 1.79, "budget": None},
    }  # fmt: skip
    asked: list[list[str]] = []

    def answer(module: str, arguments: list[str], *, doing: str) -> dict[str, Any]:
        asked.append(arguments)
        return found

    monkeypatch.setattr(checking, "ask_engine", answer)
    numbers = ["--step-seconds", ".05", "--usd-per-hour", "1.79", "--games", "100000", "--samples", "7"]
    assert main(["check", "a.yaml", *numbers]) == 0
    assert asked == [["a.yaml", "--step-seconds=0.05", "--usd-per-hour=1.79", "--samples=7", "--count=games=100000"]]
    shown = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert {name: text.strip() for name, text in shown.items()} == {
        "config": "a.yaml",
        "stage easy": "2 epochs of 500 steps, 0.05 s per step, about 2.0 GB of memory",
        "stage hard": "8 epochs of 9,000 steps",
        "given": "0.05 s per step, $1.79 per hour, 100,000 games, 800,000,000 samples",
        "measured": "memory, evaluation",
        "time": "2 h 00 m, from the given seconds per step",
        "cost": "$3.58",
    }
    found["time"] = {"low": None, "likely": 7200, "high": None, "measured": "steps", "steps": 8}
    assert main(["check", "a.yaml"]) == 0
    assert "(--try measures); 8 steps are too few for a range\n" in capsys.readouterr().out
    assert main(["check", "a.yaml", "--try", "--step-seconds", "1"]) == 2
    assert "--try measures the step time and --step-seconds sets it; give one of them." in capsys.readouterr().err


def test_the_faults_of_a_check_are_lines_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"config": "a.yaml", "faults": ["a.yaml:1: x is missing.", "a.yaml:2: y is unknown."], "exit_code": 2}
    monkeypatch.setattr(checking, "ask_engine", lambda module, arguments, *, doing: found)
    assert main(["check", "a.yaml"]) == 2
    assert capsys.readouterr().err == "cockpit: a.yaml:1: x is missing.\ncockpit: a.yaml:2: y is unknown.\n"


def test_a_config_is_checked_by_the_engine(cockpit: Cockpit, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("project: controls\ndata: {path: nowhere}\ntraining: {epohcs: 3}\n")
    answer = cockpit("check", "a.yaml", "--json")
    found = json.loads(answer.stdout)
    assert answer.returncode == found["exit_code"] == 2
    assert found["faults"] == ["a.yaml:3: training.epohcs is not a known key (did you mean 'epochs'?)."]


def test_demo_data_is_made_described_and_not_mixed(cockpit: Cockpit, tmp_path: Path, runs: Path) -> None:
    made = cockpit("data", "make", "controls", "out", "--sessions", "2", "--minutes", "0.5", "--seed", "3")
    assert made.returncode == 0, made.stderr
    assert made.stdout == ""
    assert "finished" in made.stderr
    assert len(list((tmp_path / "out").glob("*.npz"))) == 2
    assert json.loads((tmp_path / "out" / "demo.json").read_text())["complete"] is True
    (run,) = list_runs(runs)
    assert (run.info.kind, run.info.title) == ("task", f"demo data in {tmp_path / 'out'}")

    other = cockpit("data", "make", "controls", "out", "--seed", "4", "--minutes", "0.5")
    assert other.returncode == 1
    assert other.stderr.count("choose another folder") == 1
    wrong = cockpit("data", "make", "controls", "other", "--set", "speed=fast")
    assert wrong.returncode == 2
    assert "speed is no argument" in wrong.stderr
    assert not (tmp_path / "other").exists()


def test_interrupting_data_make_stops_it_and_it_goes_on_later(tmp_path: Path, runs: Path) -> None:
    command = [*COMMAND, "data", "make", "controls", "out", "--sessions", "500", "--minutes", "0.5"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as make:
        assert make.stderr is not None
        while "demo_001" not in make.stderr.readline():
            assert make.poll() is None
        make.send_signal(signal.SIGINT)
        assert "stopped: stopped on request" in make.stderr.read()
        assert make.wait() == 130
    notes = json.loads((tmp_path / "out" / "demo.json").read_text())
    assert notes["complete"] is False
    assert 2 <= len(notes["finished"]) < 500


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("typed", "code", "message"),
    [
        (["make", "contrls", "out"], 2, "No project is called 'contrls' (did you mean 'controls'?)"),
        (["make", "controls", "out", "--set", "speed"], 2, "--set speed: expected key=value."),
        (["parse", "nowhere", "out"], 1, "nowhere: there is no such file or folder."),
        (["parse", ".", "out", "--project", "sim5"], 2, "No project is called 'sim5'"),
        (["stats", ".", "--project", "sim5"], 2, "No project is called 'sim5'"),
    ],
)
def test_wrong_use_of_data_is_one_sentence(
    capsys: pytest.CaptureFixture[str], typed: list[str], code: int, message: str
) -> None:
    assert main(["data", *typed]) == code
    answer = capsys.readouterr()
    assert message in answer.err
    assert answer.err.count("\n") == 1


def test_a_project_without_the_task_says_so() -> None:
    bare = specs.Spec(
        name="bare", title="", config="", project="", columns=(), heads=(), tasks={"makes": specs.Task("m:f", "")}
    )
    with pytest.raises(UserError, match=r"The project 'bare' has no task 'make' \(did you mean 'makes'\?\)"):
        tasks.carry_out(tasks.Target(bare), "make", {}, [])


def test_statistics_are_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = {"sessions": {"columns": ["session", "frames"], "rows": [["a", 600]], "note": "made"}}
    asked: list[Any] = []

    def answer(module: str, arguments: list[str], *, doing: str) -> Any:
        asked.append((module, arguments))
        return tables

    monkeypatch.setattr(data, "ask_engine", answer)
    np.savez(tmp_path / "a.npz", frames=[0], controls=[0])
    assert main(["data", "stats", str(tmp_path)]) == 0
    assert asked == [("engines.stats", ["controls", str(tmp_path)])]
    assert capsys.readouterr().out == "sessions\nsession  frames\n-------  ------\na           600\nmade\n"
    assert main(["data", "stats", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == tables


def test_a_fault_in_the_data_is_a_sentence_and_its_exit_code(cockpit: Cockpit, tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04cut")
    answer = cockpit("data", "stats", ".")
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"cockpit: {tmp_path / 'a.npz'}: damaged or not an .npz file")
    assert answer.stderr.count("\n") == 1
