"""`cockpit data stats` counts what a store has."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from projects.melee.demo.task import make
from projects.melee.stats import tables
from projects.melee.store import Store
from tests.projects.controls.task_context import Listener
from tests.projects.melee.tables import columns, write_table
from tests.projects.melee.test_parse import parsed


def rows(path: Path, table: str) -> dict[object, object]:
    return {row[0]: row[1] for row in tables(str(path))[table].rows}  # the engine gives the path as text


def test_demo_games_are_counted(tmp_path: Path) -> None:
    make({"out": str(tmp_path), "games": 3, "minutes": 0.2}, Listener())
    store = rows(tmp_path, "store")
    assert (store["games"], store["with every field"], store["frames"]) == (3, 3, 3 * 720)
    assert rows(tmp_path, "stages") == {"Fountain of Dreams": 1, "Pokémon Stadium": 1, "Yoshi's Story": 1}
    percent = np.concatenate([Store(tmp_path).game(k)[0]["players"]["percent"].ravel() for k in range(3)])
    field, least, mean, most = tables(tmp_path)["fields"].rows[0]
    assert (field, least, most) == ("percent", 0, round(float(percent.max()), 2))
    assert mean == round(float(percent.mean(dtype=np.float64)), 3)


def test_what_is_missing_and_what_was_left_out_is_counted(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write_table(folder / "a.parquet", columns(150, 1, speeds=False))
    write_table(folder / "b.parquet", columns(150, 2))
    write_table(folder / "c.parquet", columns(20, 3))
    parsed(folder, tmp_path / "out")
    missing = rows(tmp_path / "out", "missing fields")
    assert (missing["speed_y"], missing["owner"]) == (1, 2)
    assert rows(tmp_path / "out", "left out") == {"too short": 1}
    assert tables(tmp_path / "out")["fields"].rows[0][0] == "percent"
