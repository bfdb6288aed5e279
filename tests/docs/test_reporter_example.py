"""The script in docs/watch.md runs as it stands, and what it reports is a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engines.contract.steps import read_series
from engines.runs.state import RunReader
from engines.runs.store import list_runs

DOCUMENT = Path(__file__).parents[2] / "docs" / "watch.md"


def test_three_lines_make_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path))
    (script,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    exec(
        compile(script, str(DOCUMENT), "exec"),
        {"batches": range(3), "loss": 0.5, "lr": 1e-3, "accuracy": 0.9, "val_loss": 0.6},
    )
    (run,) = list_runs(tmp_path)
    reader = RunReader(run)
    assert reader.status().state == "finished"
    assert list(reader.history.epochs) == list(range(1, 21))
    assert [epoch for epoch, row in reader.history.epochs.items() if row.best] == [1]  # the same score is no better one
    assert read_series(run.steps, "loss")[0].tolist() == list(range(60))
