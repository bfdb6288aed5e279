"""`cockpit demo --headless` and what it leaves: the table, the run directory, the exported files, the report."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.store import list_runs
from tests.e2e.conftest import COCKPIT, environment
from tests.engines.conftest import LiveRun, effective_table

QUICK = ("training.steps_per_epoch=12", "training.batch_size=16", "launch.threads=1")
COLUMNS = "Ep TrLoss Act Look Hbar Curs Inv Idle VlLoss VlF1 Score LR".split()


def cockpit(env: dict[str, str], cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COCKPIT, *arguments], env=env, cwd=cwd, capture_output=True, text=True, check=False, timeout=400
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, demo_data: Path) -> tuple[str, RunDirectory]:
    folder = tmp_path_factory.mktemp("finished")
    overrides = [f"data.path={demo_data}", "training.epochs=3", *QUICK]
    arguments = [part for one in overrides for part in ("--set", one)]
    done = cockpit(environment(folder), folder, "demo", "--headless", *arguments)
    assert done.returncode == 0, done.stderr
    [run] = list_runs(folder / "runs")
    return done.stdout, run


def test_the_table_and_the_whole_run_directory(
    finished: tuple[str, RunDirectory], env: dict[str, str], tmp_path: Path
) -> None:
    table, run = finished
    lines = table.splitlines()
    assert lines[0].split() == COLUMNS
    rows = [line.split() for line in lines[2:]]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    scores = [row["score"] for row in effective_table(run)]  # as printed, two may be the same
    assert [row[COLUMNS.index("Score")] for row in rows] == [f"{score:.3f}" for score in scores]
    marked = [row[-1] == "*" for row in rows]
    assert marked == [score > max(scores[:index], default=-1) for index, score in enumerate(scores)]

    assert {path.name for path in run.path.iterdir()} == {
        "run.json", "config_resolved.yaml", "attempts", "engine.lock", "events.jsonl", "commands.jsonl", "metrics",
        "checkpoints", "logs", "review", "report.json", "export",
    }  # fmt: skip
    assert len(run.train_metrics.read_text().splitlines()) == len(run.val_metrics.read_text().splitlines()) == 3
    assert run.last.is_file()
    assert run.best.is_file()

    exported = json.loads((run.export / "control_config_v2.json").read_text())
    assert exported["version"] == 2
    assert exported["thresholds_reviewed"] is False
    assert exported["model"]["input_dim"] == 671
    assert len(exported["thresholds"]["action"]) == 12
    log = json.loads((run.export / "training_log_v2.json").read_text())
    assert "NaN" not in json.dumps(exported) + json.dumps(log)
    weights = torch.load(run.export / "control_policy_v2.pt", weights_only=True)
    best = torch.load(run.best, weights_only=True)["model"]
    assert weights.keys() == best.keys()
    assert all(torch.equal(weights[name], best[name]) for name in best)

    report = json.loads(cockpit(env, tmp_path, "report", str(run.path), "--json").stdout)
    baselines = report["baselines"] if "baselines" in report else report["tables"]["baselines"]
    shown = {row[0] for row in baselines["rows"]}
    assert {"this run", "all-zero", "repeat-last", "logistic", "ceiling"} <= shown

    review = {file.stem: np.load(file, allow_pickle=False) for file in run.review.glob("*.npy")}
    assert len({len(review[name]) for name in review if "score" in name or "target" in name}) == 1


def test_the_same_config_resolved_starts_again(
    finished: tuple[str, RunDirectory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """config_resolved.yaml holds everything: a run from it gives the very same table. Its report is not waited for."""
    _, run = finished
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path))
    again = LiveRun(launch.prepare_training(run.config))
    again.send(cmd.Stop(attempt=1, at_step=2 * 12 + 1, when="after_epoch"))
    assert again.here() == "stopped", again.log()
    assert effective_table(again.run) == effective_table(run)
    assert len(effective_table(run)) == 3


def test_a_users_mistakes_are_sentences(env: dict[str, str], tmp_path: Path, demo_data: Path) -> None:
    config = tmp_path / "mistakes.yaml"
    config.write_text(
        f"project: controls\ndata:\n  path: {demo_data}\ntraining:\n  epocs: 5\n  lr: fast\n  batch_size: 5e-4\n"
    )
    wrong = cockpit(env, tmp_path, "train", str(config))
    assert wrong.returncode == 2
    assert "mistakes.yaml:5" in wrong.stderr
    assert "did you mean 'epochs'?" in wrong.stderr
    assert "mistakes.yaml:6" in wrong.stderr
    assert "mistakes.yaml:7" in wrong.stderr
    assert "Traceback" not in wrong.stderr
    (tmp_path / "nothing").mkdir()
    empty = cockpit(env, tmp_path, "demo", "--headless", "--set", "data.path=/proc/nowhere/at all")
    assert empty.returncode == 1
    assert "Traceback" not in empty.stderr
    config.write_text(f"project: controls\ndata:\n  path: {tmp_path / 'nothing'}\n")
    failed = cockpit(env, tmp_path, "train", str(config))
    assert failed.returncode == 1
    assert str(tmp_path / "nothing") in failed.stderr
    assert "Traceback" not in failed.stderr
