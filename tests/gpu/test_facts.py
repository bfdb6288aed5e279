"""The facts themselves: on the CPU, which has what most of them ask about, and each guarded."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.gpu.fact_projects import Projects, waits_noted
from tests.gpu.facts import Fact, Recorder, facts, main

CPU = torch.device("cpu")


def taken(path: Path, *wanted: Fact, seconds: float = 60.0) -> list[dict[str, Any]]:
    with path.open("w") as out:
        recorder = Recorder(seconds, out, CPU)
        for fact in wanted:
            recorder.take(fact)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_fact_is_guarded_and_capped_and_a_line_of_its_own(tmp_path: Path) -> None:
    def fail() -> None:
        raise RuntimeError("CUDA error: no kernel image")

    lines = taken(
        tmp_path / "facts", Fact("fails", 9, fail), Fact("hangs", 0.05, lambda: time.sleep(30)),
        Fact("gpu", 9, fail, needs_gpu=True), Fact("fine", 9, lambda: {"ms": 1.23456789, "places": ("a.py:1",)}),
    )  # fmt: skip
    assert [line["fact"] for line in lines] == ["fails", "hangs", "gpu", "fine"]
    assert lines[0]["error"] == "RuntimeError: CUDA error: no kernel image"
    assert lines[1]["error"] == "not done within 0 s"
    assert lines[2]["skipped"] == "needs a GPU"
    assert lines[3]["value"] == {"ms": 1.2346, "places": ["a.py:1"]}
    (late,) = taken(tmp_path / "late", Fact("late", 9, fail), seconds=0.5)
    assert late["skipped"] == "no time left"


def test_a_fact_that_failed_or_had_no_time_is_named_and_the_exit_code_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def code(seconds: float, *wanted: Fact) -> int:
        monkeypatch.setattr("tests.gpu.facts.facts", lambda device, folder: wanted)
        monkeypatch.setattr("sys.argv", ["facts", "--seconds", str(seconds)])
        return main()

    fails, fine = Fact("fails", 9, lambda: 1 / 0), Fact("fine", 9, lambda: 1)
    monkeypatch.setenv("COCKPIT_GPU_TESTS_ON", "cpu")
    assert code(60, fine, Fact("gpu", 9, lambda: 1, needs_gpu=True)) == 0
    assert capsys.readouterr().err == ""
    assert code(60, fails, fine) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "1 of 2 facts failed or had no time left: fails"
    assert code(0.5, fine) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "1 of 1 facts failed or had no time left: fine"


def test_a_project_has_its_facts_on_the_cpu(tmp_path: Path) -> None:
    of_sim = [fact for fact in facts(CPU, tmp_path / "work") if fact.name.startswith("sim: ")]
    lines = {line["fact"].removeprefix("sim: "): line for line in taken(tmp_path / "facts", *of_sim)}
    assert [name for name, line in lines.items() if "error" in line] == []
    assert lines["waits in a step"]["value"] == {"off": {}}
    assert lines["a bad step"]["value"] == {"off": True}
    assert lines["resumed to the bit"]["value"]["differ"] == []
    assert lines["ms a step by precision"]["value"]["off, 64"]["step"] > 0
    assert lines["memory"]["skipped"] == "needs a GPU"


def test_a_wait_is_told_by_its_place(tmp_path: Path) -> None:
    live = Projects(CPU, tmp_path)._trainer("sim")
    with waits_noted(CPU) as seen:
        bool(live.steps(2).sum() > 0)
    assert [name.split()[1] for name in seen] == ["_local_scalar_dense"]
