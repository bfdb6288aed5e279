"""A sweep's combinations, and that a fault in any of them makes no run at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.core.launch.sweep import Combination, combinations, prepare_sweep
from engines.basics.errors import UserError
from engines.contract.config import load_config
from engines.runs.store import list_runs

CONFIG = "project: controls\ndata: {path: recordings}\n"


def test_every_combination_in_the_order_of_the_values() -> None:
    assert combinations(["data.K=10,60", "training.seed=1,2"]) == [
        Combination("K=10 seed=1", ("data.K=10", "training.seed=1")),
        Combination("K=10 seed=2", ("data.K=10", "training.seed=2")),
        Combination("K=60 seed=1", ("data.K=60", "training.seed=1")),
        Combination("K=60 seed=2", ("data.K=60", "training.seed=2")),
    ]


def test_values_are_read_as_a_config_reads_them() -> None:
    assert [one.label for one in combinations(["a.lr=5e-4, 1e-5"])] == ["lr=0.0005", "lr=1e-05"]
    assert [one.label for one in combinations(["launch.device=cuda:0,cuda:1"])] == ["device=cuda:0", "device=cuda:1"]
    assert [one.label for one in combinations(["a.sizes=[1, 2],[3]"])] == ["sizes=[1, 2]", "sizes=[3]"]
    assert [one.label for one in combinations(["a.dim=1", "b.dim=2"])] == ["a.dim=1 b.dim=2"]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (["data.K"], "--sweep data.K: expected section.key=value,value…"),
        (["=1,2"], "--sweep =1,2: expected"),
        (["data.K="], "--sweep data.K=: expected"),
        (["data.K=[1"], r"--sweep data.K=\[1: expected"),
        (["a=1", "a=2"], "--sweep a=…: the setting is given twice"),
        (["a=0,1,0"], "--sweep a=0,1,0: 0 is given twice, and would be trained twice"),
        (["a=" + ",".join("123456789xy"), "b=" + ",".join("1234567890")], "110 combinations; expected at most 100"),
    ],
)
def test_what_is_no_sweep_is_said_in_a_sentence(axes: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        combinations(axes)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    (tmp_path / "a.yaml").write_text(CONFIG)
    return tmp_path / "runs"


def test_each_run_is_labelled_and_will_wait(runs: Path, tmp_path: Path) -> None:
    made = prepare_sweep(tmp_path / "a.yaml", ["training.epochs=3"], ["training.lr=1e-4,2e-4"], name="try")
    assert [run.info.label for run in made] == ["try lr=0.0001", "try lr=0.0002"]
    configs = [load_config(run.config).settings for run in made]
    assert [(cfg.training.epochs, cfg.training.lr, cfg.launch.queue) for cfg in configs] == [
        (3, 1e-4, True),
        (3, 2e-4, True),
    ]
    assert {run.path for run in list_runs(runs)} == {run.path for run in made}


@pytest.mark.parametrize(
    ("overrides", "axis", "message"),
    [
        ([], "training.lr=1e-4,-1", "--set training.lr=-1: training.lr: input should be greater than 0"),
        ([], "training.epohcs=1,2", "training.epohcs is not a known key"),
        (["output.dir=one"], "training.seed=1,2", "output.dir is one directory"),
    ],
)
def test_one_faulty_combination_makes_no_run(
    runs: Path, tmp_path: Path, overrides: list[str], axis: str, message: str
) -> None:
    with pytest.raises(UserError) as raised:
        prepare_sweep(tmp_path / "a.yaml", overrides, [axis])
    assert message in str(raised.value)
    assert list_runs(runs) == []
