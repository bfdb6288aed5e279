"""The study of the parts of the model: its rows are models that there are, and its table says what the reports say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from engines.contract.config import load_config
from engines.contract.rundir import RunDirectory
from engines.contract.tables import encode
from projects.melee.config import MeleeConfig
from projects.melee.frames import ACTION, PERCENT
from projects.melee.project import Melee
from projects.melee.rollout import constant_velocity, persistence
from projects.melee.scores import HORIZONS, MODEL, STILL, TRUTH, VELOCITY_LINE, Scores
from projects.melee.study import ROWS, STUDY, outcome, table
from projects.melee.views import PARTS
from projects.melee.world import WorldModel
from tests.projects.melee.made import frames
from tests.projects.melee.test_world import led

CONFIG = Path(__file__).parents[3] / "configs" / "melee_mlp.yaml"


@pytest.mark.parametrize("row", list(ROWS))
def test_a_row_is_another_model_or_objective(row: str) -> None:
    cfg, full = (load_config(CONFIG, settings).settings for settings in (ROWS[row][1], ()))
    assert isinstance(cfg, MeleeConfig)
    assert (cfg.model_dump() == full.model_dump()) == (row == "full")
    with torch.device("meta"):
        assert isinstance(Melee().build(cfg), WorldModel)


def said(*without: str) -> dict[str, torch.Tensor]:
    """What a model with random weights everywhere predicts, whose parts are left out."""
    torch.manual_seed(0)
    model = WorldModel(architecture="mlp", d_model=32, n_layers=1, K=1, without=without).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
        answer = model(*led(frames(3, 4)))
    return {"place": answer.continuous[..., 1:3], "speed": answer.velocity, "action": answer.classes["action"]}


@pytest.mark.parametrize(
    ("part", "same"), [("stay", ()), ("reset", ("action",)), ("ground", ()), ("by_action", ("action",))]
)
def test_a_part_that_is_left_out_says_nothing(part: str, same: tuple[str, ...]) -> None:
    assert part in PARTS
    whole, less = said(), said(part)
    assert [name for name in whole if torch.equal(whole[name], less[name])] == list(same)


def run_with(folder: Path, shift: float) -> tuple[RunDirectory, Scores]:
    """The report of a run whose places are so many units off, and which is right in half of its actions."""
    truth = frames(6, 1 + HORIZONS[-1], seed=3)
    start, after = truth.at(0), truth.at(slice(1, None))
    rolled = after.map(torch.clone)
    rolled.state[..., 1:3] += shift * 0.05
    rolled.ints[:3, ..., ACTION] = 300
    rolled.state[..., PERCENT] += 0.01
    scores = Scores()
    for line, some in (
        (MODEL, rolled), (STILL, persistence(start, 60)), (VELOCITY_LINE, constant_velocity(start, 60)), (TRUTH, after),
    ):  # fmt: skip
        scores.add(line, start, some, after)
    folder.mkdir(parents=True)
    run = RunDirectory(folder)
    run.report.write_bytes(encode(scores.tables()))
    return run, scores


def test_the_table_has_means_and_spreads_of_the_seeds(tmp_path: Path) -> None:
    runs = [run_with(tmp_path / str(shift), shift) for shift in (1.0, 2.0)]
    found = {"full": {seed: outcome(run) for seed, (run, _) in enumerate(runs)}, "joint": {}}
    lines = table(found).splitlines()
    assert len(lines) == 3
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[:2] == ["nothing", "2"]
    scores = runs[0][1]
    shares = [1.0 / (scores.position(VELOCITY_LINE, h) or 1) for h in HORIZONS[:-1]]  # half as far off as the second
    assert cells[2].split(" / ")[1] == f"{1.5 * shares[1]:.3f} ± {0.5 * shares[1]:.3f}".replace("0.", ".")
    assert cells[
        3
    ] == f"{1.5 / (scores.position(STILL, 60) or 1):.3f} ± {0.5 / (scores.position(STILL, 60) or 1):.3f}".replace(
        "0.", "."
    )
    assert cells[4].split(" / ")[0] == ".500 ± .000"
    assert json.loads(runs[0][0].report.read_bytes())["tables"]["Percent"]


def test_rows_that_there_are_not_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        STUDY.main("study", "", 2, [str(CONFIG), str(tmp_path), "--rows", "full,half"])
    assert "no row 'half'" in capsys.readouterr().err
