"""`cockpit task` and its short forms: what a project can do, done under a supervisor, with its report and its end."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engines.runs.state import RunReader
from engines.runs.store import create_run, find_run
from tests.cockpit.cli.conftest import COMMAND, Cockpit
from tests.support import walking_project
from tests.support.command import Answer

SUMS = {"sums": {"columns": ["n", "sum", "share"], "rows": [[5, 10, None]], "note": "added up"}}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return walking_project.install(tmp_path / "installed", monkeypatch)


def outcome(answer: Answer, code: int = 0) -> Any:
    assert answer.returncode == code, answer.stderr
    return json.loads(answer.stdout)


def test_the_tasks_of_a_project_are_listed_with_what_they_are_of(cockpit: Cockpit, config: Path) -> None:
    lines = cockpit("task", "walk").stdout.splitlines()
    assert lines[2].split(maxsplit=2) == ["count", "PROJECT", "add numbers up"]
    assert lines[5].split(maxsplit=2) == ["cache", "CONFIG", "keep the steps of a config"]
    assert outcome(cockpit("task", str(config), "--json"))["tasks"][4] == {
        "name": "rollout", "of": "RUN", "help": "walk by itself",
    }  # fmt: skip


@pytest.mark.behaviour("task-project-can-started")
def test_a_task_prints_one_document_and_its_report_stays_with_its_run(cockpit: Cockpit, config: Path) -> None:
    found = outcome(cockpit("task", "walk", "count", "--set", "to=5", "--json"))
    run = find_run(found["run"])
    assert found == {
        "run": run.info.id, "task": "count", "project": "walk", "state": "finished", "detail": "", "exit_code": 0,
        "path": str(run.path), "tables": SUMS,
    }  # fmt: skip
    assert outcome(cockpit("report", run.info.id, "--json")) == SUMS
    assert run.info.title == "count of walk"
    printed = cockpit("task", "walk", "count", "--set", "to=5").stdout
    assert printed == cockpit("report", run.info.id).stdout
    assert [line.split() for line in printed.splitlines()][3:] == [["5", "10", "—"], ["added", "up"]]


@pytest.mark.behaviour("task-project-can-started")
def test_a_task_that_fails_says_why_and_keeps_what_it_reported(cockpit: Cockpit, config: Path) -> None:
    answer = cockpit("task", "walk", "fall", "--json")
    found = outcome(answer, 1)
    assert (found["state"], found["exit_code"]) == ("failed", 1)
    assert found["tables"]["before"]["rows"] == [[3]]
    assert "the floor ends at step 4" in answer.stderr


@pytest.mark.behaviour("task-project-can-started")
def test_the_first_ctrl_c_stops_a_task(runs: Path, config: Path, tmp_path: Path) -> None:
    command = [*COMMAND, "task", "walk", "wait", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        while "waiting" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert (json.loads(out)["state"], json.loads(out)["exit_code"]) == ("stopped", 130)
    assert RunReader(find_run("last")).status().state == "stopped"


def test_a_task_of_a_config_gets_it_whole_with_its_changes(cockpit: Cockpit, config: Path, tmp_path: Path) -> None:
    more = ("--set", "pace.batch=8", "--set", "workers=2", "--json")
    found = outcome(cockpit("task", str(config), "cache", *more))
    assert found["tables"]["config"]["rows"] == [
        ["path", str(tmp_path / "steps")], ["batch", 8], ["more", "workers=2"],
    ]  # fmt: skip
    answer = cockpit("task", str(config), "cache", "--set", "training.lr=fast")
    assert answer.returncode == 2
    assert "--set training.lr=fast: training.lr: input should be a valid number" in answer.stderr


def test_short_forms_are_tasks_of_the_run(cockpit: Cockpit, config: Path, tmp_path: Path) -> None:
    run = create_run("walk", config.read_text(), kind="training", engine="engines.train", title="walk.yaml")
    found = outcome(cockpit("rollout", run.info.id, "--set", "length=7", "--json"))
    assert (found["task"], found["tables"]["given"]["rows"]) == ("rollout", [["length", "7"], ["run", str(run.path)]])
    found = outcome(cockpit("evaluate", "last", "--data", "elsewhere", "--json"))
    given = [["data", str(tmp_path / "elsewhere")], ["run", str(run.path)]]
    assert (found["task"], found["tables"]["given"]["rows"]) == ("evaluate", given)
    assert outcome(cockpit("task", run.info.id, "cache", "--json"))["tables"]["config"]["rows"][1] == ["batch", 16]


@pytest.mark.behaviour("run-from-elsewhere-asks")
def test_a_config_of_a_run_from_elsewhere_is_named_by_its_file(cockpit: Cockpit, config: Path) -> None:
    run = create_run("walk", config.read_text(), kind="training", engine="engines.train", title="walk.yaml")
    run.write_info(msgspec.structs.replace(run.info, seal="0" * 32))
    for typed in (("task", run.info.id, "cache"), ("check", run.info.id, "--profile")):
        answer = cockpit(*typed)
        assert (answer.returncode, str(run.config) in answer.stderr) == (2, True)
        assert "was made elsewhere" in answer.stderr
    assert outcome(cockpit("task", str(run.config), "cache", "--json"))["state"] == "finished"


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (("task", "wlak"), ", walk) or a .yaml file either."),
        (
            ("task", "walk", "cuont"),
            "The project 'walk' has no task 'cuont' (did you mean 'count'?); it has count",
        ),
        (("task", "walk", "rollout"), "rollout of walk needs a run: `cockpit task RUN rollout`."),
        (("task", "walk", "cache"), "cache of walk needs a config or a run: `cockpit task CONFIG cache`."),
        (("task", "walk", "count", "--set", "to"), "--set to: expected key=value."),
        (("task", "none.yaml"), "none.yaml: no such config file; `cockpit init` writes one"),
        (("evaluate", "last", "--json"), "--set and --json need --data DIR"),
        (("data", "make", "walk", "out", "--set", "=1"), "--set =1: expected key=value."),
    ],
)
def test_wrong_use_is_one_sentence(cockpit: Cockpit, config: Path, typed: tuple[str, ...], message: str) -> None:
    answer = cockpit(*typed)
    assert answer.returncode == 2
    assert message in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_project_without_the_task_of_a_short_form_says_so(cockpit: Cockpit, runs: Path) -> None:
    create_run("controls", "", kind="training", engine="engines.train", title="a.yaml")
    answer = cockpit("rollout", "last")
    assert answer.returncode == 2
    assert "The project 'controls' has no task 'rollout'" in answer.stderr
