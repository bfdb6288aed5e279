"""Real games: parsed, then trained for some steps by the config that comes with them, and reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engines.runs import launch
from engines.runtime.attempt import carry_out
from engines.training.engine import train
from projects.agent.parse import parse
from tests.projects.controls.task_context import Listener

ROOT = Path(__file__).resolve().parents[3]
LEAGUE = ROOT.parent / "shared" / "data" / "league"
SMALL = (
    "model.width=16", "model.heads=2", "model.hidden=16", "model.registers=1", "training.epochs=2",
    "training.steps_per_epoch=3", "training.batch_size=4", "training.warmup_epochs=0", "played.windows=24",
    "played.self_fed=4", "launch.device=cpu", "launch.threads=1", "data.validation=[NA1_5551816295]",
    "training.stages=[{name: world, epochs: 1, heads: [dynamics]}, {name: agent, heads: [dynamics, reward, bc]}]",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not LEAGUE.is_dir(), reason="the real games are not beside this project (../shared/data)")
def test_real_games_train_to_a_report(tmp_path: Path) -> None:
    parse({"source": str(LEAGUE), "out": str(tmp_path / "games")}, Listener())
    settings = [f"data.path={tmp_path / 'games'}", *SMALL]
    run = launch.prepare_training(ROOT / "configs" / "agent_league.yaml", settings, run_dir=tmp_path / "runs" / "a-run")
    assert carry_out(run, 1, train) == 0
    tables = json.loads(run.report.read_text())["tables"]
    accuracy = {row[0]: row[1] for row in tables["Actions"]["rows"]}
    assert 0.7 < accuracy["repeat-last"] < 0.95
    assert "simulator's odds" not in accuracy
    assert "Played" not in tables
    assert sum(row[-2] for row in tables["Rewards"]["rows"]) > 0
