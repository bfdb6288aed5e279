"""The study of what dreams add: its tables, what is trained again, and one seed of it with the demo's config."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from engines.basics import yaml12
from engines.basics.errors import UserError
from engines.contract.config import load_config
from engines.contract.rundir import RunDirectory
from engines.contract.tables import Table, encode
from engines.runs import launch
from engines.runtime.attempt import carry_out
from engines.training.engine import train
from projects.agent.report import PLAYERS
from projects.agent.study import ROWS, STUDY, outcome
from tests.projects.agent.runs import config as config_of
from tests.projects.agent.runs import games

ROOT = Path(__file__).resolve().parents[3]
RETURNS = {1: (1.0, 3.0, -5.0, -1.0), 2: (2.0, 3.0, -6.0, 1.0), 3: (3.0, 3.0, -7.0, 0.0)}
"""By seed: this run sampled and greedy, the prior sampled and greedy."""


class Trainings:
    """Finishes a run at once, with what was played by `RETURNS`."""

    def __init__(self, fail: int = 99) -> None:
        self.made: list[str] = []
        self._fail = fail

    def __call__(self, config: Path, run: RunDirectory, settings: Sequence[str]) -> None:
        if len(self.made) == self._fail:
            raise UserError("the machine went down")
        self.made.append(run.path.name)
        launch.prepare_training(config, settings, run_dir=run.path)
        seed = load_config(run.config).settings.training.seed
        rows = tuple(
            (name, value, 0.5, 0.0, 0.1, 1.5, 800.0)
            for name, value in zip(PLAYERS, (*RETURNS[seed], -10.0, 9.0), strict=True)
        )
        columns = ("player", "return", "± 95 %", "this run, sampled, less it", "± 95 %, paired", "deaths", "gold")
        actions = (
            ("this run", 0.9, 0.3 * seed),
            ("repeat-last", 0.8, 0.0),
            ("linear on the window", 0.8, 0.2),
            ("simulator's odds", 1.0, 0.9),
        )
        rewards = ((0, 0.99, 1.0, 5), (1, 0.9, None, 5))
        run.val_metrics.parent.mkdir(exist_ok=True)
        epochs = [
            {"epoch": epoch, "change_accuracy": right} for epoch, right in ((2, None), (3, 0.1), (4, 0.45), (5, 0.2))
        ]
        run.val_metrics.write_text("".join(json.dumps(epoch) + "\n" for epoch in epochs))
        run.report.write_bytes(encode({
            "Played": Table(columns, rows),
            "Actions": Table(("", "movement", "movement changes"), (*actions, ("✗ worse than", "", ""))),
            "Rewards": Table(("frames ahead", "AUC, this run", "AUC, simulator's odds", "events"), rewards),
            "stages": Table(("stage", "name", "best epoch"), ((1, "world", 2), (2, "agent", 4), (3, "dream", 5))),
        }))  # fmt: skip


@pytest.fixture
def config(tmp_path: Path) -> Path:
    games(tmp_path / "games", count=2, frames=40)
    path = tmp_path / "agent.yaml"
    settings = config_of(tmp_path / "games").model_dump(mode="json", exclude_none=True)
    path.write_text(yaml12.write(settings))
    return path


def test_the_tables_have_means_and_intervals_paired_by_seed(config: Path, tmp_path: Path) -> None:
    said = STUDY.run(config, tmp_path / "out", list(ROWS), 3, [], Trainings())
    cells = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in said.splitlines()
             if line}  # fmt: skip
    # sampled less prior sampled 6, 8, 10: deviation 2, so 4.303 · 2 / √3; greedy 8, 9, 10: deviation 1
    assert cells["prior, sampled"] == ["-6.0", "+8.0 ± 5.0", "+9.0 ± 2.5", "1.50", "800"]
    # sampled less prior greedy 2, 1, 3
    assert cells["prior, greedy"][1] == "+2.0 ± 2.5"
    assert cells["this run, sampled"][:3] == ["2.0", "", "+1.0 ± 2.5"]
    assert cells["this run"] == ["0.600", "0.33 to 1.00"]
    assert cells["cloned, before it dreamed"] == ["0.450", "0.50 to 0.50"]
    assert cells["0"] == ["0.990", "1.000"]
    assert "worse than" not in said
    assert (tmp_path / "out" / "study.md").read_text() == said


def test_what_has_its_report_is_not_trained_again(config: Path, tmp_path: Path) -> None:
    stopped, again = Trainings(fail=1), Trainings()
    with pytest.raises(UserError, match="went down"):
        STUDY.run(config, tmp_path / "out", list(ROWS), 2, [], stopped)
    assert (tmp_path / "out" / "study.md").is_file()
    half = RunDirectory(tmp_path / "out" / "phases" / "seed_3")
    half.make()
    half.report.write_bytes(encode({"Actions": Table(("",), (("this run",),))}))
    assert not outcome(half)
    STUDY.run(config, tmp_path / "out", list(ROWS), 2, [], again)
    assert (stopped.made, again.made) == (["seed_1"], ["seed_2"])


def test_other_settings_and_settings_that_cannot_be_are_refused_first(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    STUDY.run(config, tmp_path / "out", list(ROWS), 1, [], Trainings())
    nothing = Trainings()
    with pytest.raises(UserError, match=r"seed_1: was trained with other settings; name another folder"):
        STUDY.run(config, tmp_path / "out", list(ROWS), 2, ["imagination.beta=0.5"], nothing)
    asked = [str(config), str(tmp_path / "new"), "--set", "imagination.steps=3"]
    assert STUDY.main("study", "", 5, asked) != 0
    assert "power of two" in capsys.readouterr().err
    assert not nothing.made
    assert not (tmp_path / "new").exists()


@pytest.mark.slow  # ten minutes of CPU
def test_a_demo_learns_in_dreams_what_its_recordings_do_not_show(tmp_path: Path) -> None:
    """Seed 1 of the study, games made first: rewards, actions beside their ceiling, a policy better than its prior."""

    def here(config: Path, run: RunDirectory, settings: Sequence[str]) -> None:
        assert carry_out(launch.prepare_training(config, settings, run_dir=run.path), 1, train) == 0

    settings = [f"data.path={tmp_path / 'games'}", "launch.device=cpu", "launch.threads=1"]
    STUDY.run(ROOT / "configs" / "agent_demo.yaml", tmp_path / "out", list(ROWS), 1, settings, here)
    tables = outcome(RunDirectory(tmp_path / "out" / "phases" / "seed_1"))
    assert list(tables["Rewards"]) == [str(offset) for offset in range(9)]
    assert tables["Rewards"]["0"]["AUC, this run"] > 0.95
    changes = {name: row["movement changes"] for name, row in tables["Actions"].items()}
    assert changes["cloned, before it dreamed"] > 0.6 * changes["simulator's odds"]
    assert changes["repeat-last"] == 0
    played = {name: row["return"] for name, row in tables["Played"].items()}
    assert played["this run, sampled"] > played["prior, sampled"]
