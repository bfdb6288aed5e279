"""The guide's own project: as short as it says, checked, trained in two stages, killed, resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engines.contract.steps import read_series
from tests.engines.conftest import LiveRun, effective_table, prepare_example
from tests.support.example_project import ExampleProject, blocks


@pytest.fixture
def example(tmp_path: Path) -> ExampleProject:
    return ExampleProject(tmp_path / "example")


def test_it_is_under_100_lines() -> None:
    code = [line for name, text in blocks().items() for line in text.splitlines() if name.endswith(".py") and line]
    assert 0 < len(code) < 100


def test_it_is_checked_trained_in_stages_and_resumed(example: ExampleProject, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = example.python("-m", "cockpit.cli", "check", str(example.config), "--json")
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["parameters"]["total"] == 2 * 32 + 32 + 32 * 2 + 2
    live = LiveRun(prepare_example(example, monkeypatch, example.folder))
    live.killed_here(40)  # in the second epoch, the first stage
    assert live.resume_here() == "finished", live.log()
    rows = effective_table(live.run)
    assert [row["stage"] for row in rows] == ["radius only"] * 2 + ["everything"] * 4
    assert [row["train"]["side"] is None for row in rows] == [True] * 2 + [False] * 4
    assert max(row["score"] for row in rows) > 0.9  # two spirals told apart by more than luck
    steps, _ = read_series(live.run.steps, "loss")
    assert steps.tolist() == list(range(6 * 2048 // 64))
