"""Statistics of a folder, counted again by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.basics.errors import DataError
from engines.training.project import Table
from projects.controls.demo.names import ATTACK, FIRST_SLOT, LEFT_CLICK
from projects.controls.layout import SCREEN_OPEN
from projects.controls.recordings import Recording, read_folder, write_recording
from projects.controls.stats import tables
from tests.projects.controls.sessions import random_session
from tests.projects.controls.test_demo_task import make_small


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Table], list[Recording]]:
    folder = tmp_path_factory.mktemp("demo")
    make_small(folder, sessions=5)
    return tables(str(folder)), read_folder(folder)


def column(table: Table, name: str) -> dict[object, object]:
    """The cells of a column by the cell that begins their row."""
    return {row[0]: row[table.columns.index(name)] for row in table.rows}


def test_sessions_are_listed_and_summed(made: tuple[dict[str, Table], list[Recording]]) -> None:
    table, recordings = made[0]["sessions"], made[1]
    frames = column(table, "frames")
    assert {r.name: frames[r.name] for r in recordings} == {r.name: 600 for r in recordings}
    assert (frames["5 sessions"], column(table, "minutes")["5 sessions"]) == (3000, 2.5)
    assert column(table, "type")["5 sessions"] == "4 types"
    assert list(column(table, "part").values()).count("validation") == 1


def test_support_is_counted_where_controls_are_judged(made: tuple[dict[str, Table], list[Recording]]) -> None:
    table, recordings = made[0]["controls"], made[1]
    on, share = column(table, "frames on"), column(table, "share")
    for name, control, in_screen in (("attack", ATTACK, False), ("inv_left_click", LEFT_CLICK, True)):
        judged = [row for r in recordings for row in r.controls[(r.state[:, SCREEN_OPEN] > 0) == in_screen]]
        count = sum(row[control] > 0.5 for row in judged)
        assert on[name] == count
        assert share[name] == pytest.approx(count / len(judged), abs=1e-5)
        assert column(table, "presses")[name] == count  # each is a single frame
        assert column(table, "in train")[name] + column(table, "in validation")[name] == count  # type: ignore[operator]
    assert on["hotbar_1"] == sum(r.controls[:, FIRST_SLOT].sum() for r in recordings)
    assert on["cursor"] == sum((r.state[:, SCREEN_OPEN] > 0).sum() for r in recordings)


def test_controls_with_few_frames_in_validation_are_flagged(made: tuple[dict[str, Table], list[Recording]]) -> None:
    table = made[0]["controls"]
    counts, frames = column(table, "counts"), column(table, "in validation")
    assert set(counts.values()) == {"yes", "no"}
    assert {name: "no" if int(count) < 20 else "yes" for name, count in frames.items()} == counts  # type: ignore[call-overload]


def test_held_controls_have_fewer_presses_than_frames(made: tuple[dict[str, Table], list[Recording]]) -> None:
    table, recordings = made[0]["controls"], made[1]
    presses = 0
    for recording in recordings:
        before = 0.0
        for value in recording.controls[:, 0]:
            presses += value > before
            before = value
    assert column(table, "presses")["move_forward"] == presses


def test_baselines_and_ceiling_stand_side_by_side(made: tuple[dict[str, Table], list[Recording]]) -> None:
    score = column(made[0]["baselines"], "score")
    assert list(score) == ["all-zero", "repeat-last", "logistic", "window-linear", "ceiling"]
    assert score["ceiling"] == max(score.values())  # type: ignore[type-var]


def test_data_without_a_ceiling_has_no_such_row(tmp_path: Path) -> None:
    for k in range(3):
        write_recording(tmp_path / f"{k}.npz", random_session(str(k), 120, k))
    assert list(column(tables(str(tmp_path))["baselines"], "score")) == [
        "all-zero", "repeat-last", "logistic", "window-linear",
    ]  # fmt: skip


def test_no_data_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no recordings"):
        tables(str(tmp_path))
