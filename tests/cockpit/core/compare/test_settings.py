"""Configs read section by section are what they are when read whole, and a seed is told from all else."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.core.compare import settings
from cockpit.core.compare.settings import Settings, read_settings, read_whole
from engines.basics.errors import DataError
from engines.contract.config import load_config
from engines.contract.rundir import RunDirectory

CONFIGS = sorted((Path(__file__).resolve().parents[4] / "configs").glob("*.yaml"))
STRANGE = (
    "project: controls\ndata:\n  path: a\ndata:\n  path: b\n",  # twice: refused
    "project: controls\nnote: 'spans\nmore: lines'\ndata:\n  path: a\n",
    "# words\nproject: controls\ntraining:\n  seed: 1  # why\n\n  lr: 5e-4\n",
    "project: controls\ntraining:\n  learning_rate: 0.1\n",  # another name of training.lr
    "project: controls\ntraining:\n  amp: false\n",  # our word for it is off
    "project: unknown\ntraining: {seed: [1, 2]}\n",
    "{project: controls, training: {seed: 3}}\n",
    "- a\n",
    "project: [controls\n",
    "",
)


def run(folder: Path, text: str) -> RunDirectory:
    made = RunDirectory(folder / "controls-20261127-201400-amber")
    made.path.mkdir(exist_ok=True)
    made.config.write_text(text)
    return made


def whole(one: RunDirectory) -> object:
    try:
        return dict(read_whole(one, ()).flat)
    except DataError as error:
        return str(error)


def quick(one: RunDirectory) -> object:
    try:
        return dict(read_settings(one, ()).flat)
    except DataError as error:
        return str(error)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_every_config_is_read_as_in_one_piece(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = run(tmp_path, load_config(config, []).dump())
    expected = whole(one)
    monkeypatch.setattr(settings, "read_whole", None)  # it is not needed
    assert quick(one) == expected


@pytest.mark.parametrize("text", STRANGE)
def test_what_is_written_otherwise_too(text: str, tmp_path: Path) -> None:
    one = run(tmp_path, text)
    assert quick(one) == whole(one)


def test_the_seed_and_what_does_not_touch_the_training() -> None:
    flat = {
        "project": "p", "training.seed": 1, "data.seed": 2, "training.lr": 0.1, "training.seeds": 3,
        "launch.device": "cpu", "cost.usd_per_hour": 1.0, "output.dir": "x", "training.log_every": 10,
    }  # fmt: skip
    one = Settings(flat)
    assert set(one.training) == {"project", "training.seed", "data.seed", "training.lr", "training.seeds"}
    other = Settings(flat | {"training.seed": 7, "launch.device": "cuda", "training.log_every": 1})
    assert one.but_seed == other.but_seed
    assert one.seed != other.seed
    for change in ({"training.lr": 0.2}, {"training.seeds": 4}, {"new": 1}, {"training.seed": True}):
        changed = Settings(flat | change)
        assert (changed.but_seed, changed.seed) != (one.but_seed, one.seed)
    assert Settings(flat | {"training.lr": 0.10}).but_seed == one.but_seed
