"""The study of what the language model adds: its rows, what is trained again, and the intervals of its table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from engines.basics.errors import UserError
from engines.contract.config import load_config
from engines.contract.rundir import RunDirectory
from engines.contract.tables import Table, encode
from engines.runs import launch
from engines.tasks.study import interval
from engines.training.comparison import comparison
from projects.sim.config import SimConfig
from projects.sim.drives import write_drive
from projects.sim.study import ROWS, main, study
from tests.projects.sim.logs import random_drive

F1: dict[str, dict[int, tuple[float, float | None]]] = {
    "none": {1: (0.50, 0.60), 2: (0.52, 0.50), 3: (0.54, 0.40)},
    "llm_2": {1: (0.60, 0.60), 2: (0.64, 0.50), 3: (0.68, None)},
}


class Trainings:
    """Finishes a run at once, with the scores of `F1`."""

    def __init__(self, fail: int = 99) -> None:
        self.made: list[str] = []
        self._fail = fail

    def __call__(self, config: Path, run: RunDirectory, settings: Sequence[str]) -> None:
        if len(self.made) == self._fail:
            raise UserError("the machine went down")
        self.made.append(f"{run.path.parent.name}/{run.path.name}")
        if not run.path.is_dir():
            launch.prepare_training(config, settings, run_dir=run.path)
        cfg = load_config(run.config).settings
        assert isinstance(cfg, SimConfig)
        scores = F1[run.path.parent.name][cfg.training.seed]
        named = [dict(zip(("risk F1", "action F1"), values, strict=True)) for values in (scores, (0.25, 0.1))]
        tables = {
            "baselines": comparison(named[0], {"majority": named[1]}, dict.fromkeys(named[0], 1.0), title=""),
            "speed": Table(("windows", "ms"), ((1, 3.0), (16, 40.0))),
        }
        run.report.write_bytes(encode(tables))
        run.train_metrics.parent.mkdir(exist_ok=True)
        epochs = [{"epoch": epoch, "seconds": seconds} for epoch, seconds in ((1, 30.0), (2, 99.0), (2, 60.0))]
        run.train_metrics.write_text("".join(json.dumps(epoch) + "\n" for epoch in epochs))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    write_drive(tmp_path / "data" / "d.npz", random_drive("d", 30, 0))
    path = tmp_path / "sim.yaml"
    path.write_text(
        f"project: sim\ndata: {{path: {tmp_path / 'data'}}}\nmodel: {{llm: tiny-llama, d: 64, vision: grid}}\n"
    )
    return path


def test_the_table_has_means_paired_intervals_and_minutes(config: Path, tmp_path: Path) -> None:
    said = study(config, tmp_path / "out", ["none", "llm_2"], 3, [], Trainings())
    cells = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in said.splitlines()]
    assert cells[0][4:6] == ["risk F1 less no LLM", "action F1 less no LLM"]
    assert cells[2][:4] == ["majority", "", "0.250", "0.100"]
    assert [row[0] for row in cells[3:]] == ["no LLM", "the LLM, 2 layers"]
    assert cells[3] == ["no LLM", "3", "0.520", "0.500", "", "", "40.0", "1.5"]
    # differences .10, .12, .14: deviation .02, so 4.303 · .02 / √3; action has two pairs, both 0
    assert cells[4] == ["the LLM, 2 layers", "3", "0.640", "0.550", "+0.120 ± 0.050", "+0.000 ± 0.000", "40.0", "1.5"]
    assert (tmp_path / "out" / "study.md").read_text() == said


def test_what_has_its_report_is_not_trained_again(config: Path, tmp_path: Path) -> None:
    stopped, again = Trainings(fail=3), Trainings()
    with pytest.raises(UserError, match="went down"):
        study(config, tmp_path / "out", ["none", "llm_2"], 2, [], stopped)
    assert "the LLM" in (tmp_path / "out" / "study.md").read_text()
    half = RunDirectory(tmp_path / "out" / "llm_2" / "seed_2")  # was stopped after its best epoch
    launch.prepare_training(config, [*ROWS["llm_2"][1], "training.seed=2"], run_dir=half.path)
    half.report.write_bytes(encode({"classes": Table(("task",), (("risk",),))}))
    study(config, tmp_path / "out", ["none", "llm_2"], 2, [], again)
    assert (stopped.made, again.made) == (["none/seed_1", "none/seed_2", "llm_2/seed_1"], ["llm_2/seed_2"])


def test_runs_of_other_settings_and_settings_that_cannot_be_are_refused_first(config: Path, tmp_path: Path) -> None:
    study(config, tmp_path / "out", ["none"], 1, [], Trainings())
    nothing = Trainings()
    with pytest.raises(UserError, match=r"none/seed_1: was trained with other settings; name another folder"):
        study(config, tmp_path / "out", ["none"], 2, ["training.lr=0.5"], nothing)
    with pytest.raises(UserError, match="tokens"):
        study(config, tmp_path / "new", ["none"], 2, ["model.tokens=99"], nothing)
    assert not nothing.made
    with pytest.raises(SystemExit):
        main([str(config), str(tmp_path), "--rows", "none,gpt"])


@pytest.mark.parametrize("row", list(ROWS))
def test_a_row_is_a_setting_that_there_is(config: Path, row: str) -> None:
    changed = load_config(config, ROWS[row][1]).settings.model.model_dump()
    assert changed != load_config(config).settings.model.model_dump()


def test_one_difference_has_no_interval() -> None:
    assert interval([0.1]) == "+0.100"
    assert interval([-0.1, -0.3]) == "-0.200 ± 1.271"  # 12.706 · .1414 / √2
