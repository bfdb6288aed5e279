"""Games with one row a frame: values worked out by hand, and the real games where they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.basics.errors import DataError
from projects.agent.latents import open_latents
from projects.agent.layout import ABILITIES, NONE, UNKNOWN
from projects.agent.league import CHANNELS, TILT, ability, is_game, read_game, reads
from projects.agent.parse import NOTES, parse
from projects.agent.recordings import read_recordings
from projects.agent.rewards import rewards
from projects.agent.stats import tables
from tests.projects.controls.task_context import Listener

LEAGUE = Path(__file__).resolve().parents[4] / "shared" / "data" / "league"
REAL = pytest.mark.skipif(not LEAGUE.is_dir(), reason="needs the real games in ../shared/data/league")
NAN = float("nan")


def written(path: Path, frames: int = 40, **changed: Any) -> Path:
    """A game whose player goes 17 units north-east a frame; `changed` are other columns."""
    steps = 12.0 * np.arange(frames)
    rows: dict[str, Any] = {
        "gt": 1 + 0.05 * np.arange(frames), "hp": np.full(frames, 700.0), "hp_max": np.full(frames, 700.0),
        "gold_total": np.full(frames, 500.0), "level": np.ones(frames), "cw_x": 1000 + steps, "cw_y": 2000 + steps,
        "cs_x": np.full(frames, 640.0), "cs_y": np.full(frames, 340.0), "casts_t": np.empty(0),
        "casts_name": np.empty(0, "U1"), "meta": np.array([json.dumps({"team": "red"})]),
    } | changed  # fmt: skip
    np.savez(path, **{key: value for key, value in rows.items() if value is not None})
    return path


def test_without_an_order_a_movement_is_the_change_of_position(tmp_path: Path) -> None:
    x = 1000 + 12.0 * np.arange(40)
    x[20:] = x[19]  # it goes north only
    y = 2000 + 12.0 * np.arange(40)
    y[30:] = y[29]  # and stands
    y[35:] += 9000  # a teleport
    game = read_game(written(tmp_path / "g.npz", cw_x=x, cw_y=y))
    expected = [UNKNOWN] + [2] * 19 + [4] * 10 + [NONE] * 10  # 45° is nearest to slice 2, 90° lies between 4 and 5
    assert game.features.movement.tolist() == expected
    assert list(game.sources.values()) == [0, 0, 29 / 40, 10 / 40, 1 / 40]
    assert game.team == "red"


def test_an_order_on_the_screen_counts_before_one_in_the_world_and_both_before_the_change(tmp_path: Path) -> None:
    hx, hy = np.full(40, NAN), np.full(40, NAN)
    hx[5:10], hy[5:10] = 640 + 100, 340 - 100 * np.sin(np.deg2rad(TILT)) * np.tan(np.deg2rad(60))
    wx, wy = np.full(40, NAN), np.full(40, NAN)
    wx[8:20], wy[8:20] = -1e5, 2000 + 12.0 * np.arange(8, 20)  # far in the west
    hp = np.full(40, 700.0)
    hp[15:18] = 0
    game = read_game(written(tmp_path / "g.npz", mv_hx=hx, mv_hy=hy, wp_x=wx, wp_y=wy, hp=hp))
    expected = [UNKNOWN] + [2] * 4 + [3] * 5 + [9] * 5 + [NONE] * 3 + [9] * 2 + [2] * 20
    assert game.features.movement.tolist() == expected
    assert [round(40 * share) for share in game.sources.values()] == [5, 7, 24, 3, 1]


def test_an_order_that_is_the_future_is_not_read(tmp_path: Path) -> None:
    """`mv_speed` is the distance of the next ten frames: `mv_hx` is where the player will be, not where it wants to."""
    ahead = np.full(40, 120 * np.sqrt(2))
    point: dict[str, Any] = {"mv_hx": np.full(40, 300.0), "mv_hy": np.full(40, 340.0)}
    game = read_game(written(tmp_path / "g.npz", mv_speed=ahead, **point))
    assert set(game.features.movement[1:].tolist()) == {2}
    assert game.sources["order on the screen"] == 0
    assert "where the player is half a second later" in game.notes[0]
    order = read_game(written(tmp_path / "h.npz", mv_speed=np.full(40, 340.0), **point))
    assert set(order.features.movement.tolist()) == {9}
    assert not order.notes


def test_frames_with_nan_are_left_out_and_what_follows_one_is_not_known(tmp_path: Path) -> None:
    hp = np.full(40, 700.0)
    hp[[10, 11, 25]] = NAN
    gold = 500 + np.cumsum(np.where(np.arange(40) == 11, 20.0, 1.0))
    game = read_game(written(tmp_path / "g.npz", hp=hp, gold_total=gold))
    number = [*range(10), *range(12, 25), *range(26, 40)]
    assert game.features.number.tolist() == number
    assert [number[row] for row in np.flatnonzero(game.features.movement == UNKNOWN)] == [0, 12, 26]
    assert game.features.gold[number.index(12)] == 1 + 20 + 1
    assert game.notes == ("3 of 40 frames are not known and left out",)
    assert np.isfinite(game.latents).all()
    assert not rewards(game.features).known[number.index(12)]


def test_casts_and_items_are_abilities_of_the_frame_they_end_in(tmp_path: Path) -> None:
    spell = np.full(40, "", "U20")
    spell[20:24], spell[30] = "3077Active", "GarenQAttack"
    times, names = np.array([1.0, 1.12, 1.2, 99.0]), np.array(["GarenQ", "GarenR", "recall", "GarenW"])
    game = read_game(written(tmp_path / "g.npz", spell=spell, casts_t=times, casts_name=names))
    pressed = [(int(row), ABILITIES[key]) for row, key in np.argwhere(game.features.abilities)]
    assert pressed == [(0, "q"), (3, "r"), (4, "b"), (20, "item")]


@pytest.mark.parametrize(
    ("cast", "key"),
    [
        ("GarenQ", "q"), ("AhriW", "w"), ("GarenE", "e"), ("LuxR", "r"), ("SummonerFlash", "f"), ("SummonerDot", "d"),
        ("recall", "b"), ("SuperRecall", "b"), ("6631Active", "item"), ("GarenBasicAttack", None), ("", None),
    ],
)  # fmt: skip
def test_names_of_casts(cast: str, key: str | None) -> None:
    assert ability(cast) == key


def test_a_death_is_lost_hp_and_latents_hold_the_state(tmp_path: Path) -> None:
    hp = np.full(40, 350.0)
    hp[20:30] = 0
    gold = 500 + 30.0 * (np.arange(40) >= 12)
    game = read_game(written(tmp_path / "g.npz", hp=hp, gold_total=gold, cs_x=np.full(40, NAN)))
    found = rewards(game.features)
    assert np.flatnonzero(found.death).tolist() == [20]
    assert np.flatnonzero(found.event).tolist() == [12, 20]
    state = {name: game.latents[:, place, 0, 0] for place, name in enumerate(CHANNELS)}
    assert game.latents.shape == (40, len(CHANNELS), 1, 1)
    assert state["x"][3] == pytest.approx((1036 - 7500) / 7500)
    assert state["step x"][:2].tolist() == pytest.approx([0, 0.6])
    assert state["hp"][[19, 20]].tolist() == [0.5, 0]
    assert state["hp change"][20] == pytest.approx(-3.5)
    assert state["alive"][[19, 20, 30]].tolist() == [1, 0, 1]
    assert state["gold gained"][11:14].tolist() == pytest.approx([0, np.log(31), 0])
    assert not state["opponent known"].any()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"hp_max": None}, "the array 'hp_max' is missing"),
        ({"cw_x": np.zeros(39)}, r"cw_x is \(39,\) of float64, expected \(40,\) numbers as gt has"),
        ({"cw_x": np.full(40, "a")}, "cw_x is .* expected"),
        ({"hp": np.full(40, NAN)}, "has no frame with time, hp"),
        ({"gt": np.arange(40.0)[::-1]}, "gt goes back"),
        ({"casts_t": np.zeros(3)}, "casts_t .* and casts_name .* do not fit"),
        ({"meta": np.array(["{"])}, "meta is no JSON object"),
        ({"meta": np.array(['{"projection": {"tilt_deg": 0}}'])}, "tilt_deg 0.0, expected 10 to 90"),
    ],
)
def test_each_fault_is_one_sentence(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_game(written(tmp_path / "g.npz", **changed))


def test_parse_writes_what_recordings_read_and_resumes(tmp_path: Path) -> None:
    (tmp_path / "games").mkdir()
    hp = np.full(60, 700.0)
    hp[30:] = 0
    for name in ("one", "two"):
        written(tmp_path / "games" / f"{name}.npz", 60, hp=hp)
    np.savez(tmp_path / "games" / "other.npz", x=np.zeros(3))
    order, context = {"source": str(tmp_path / "games"), "out": str(tmp_path / "out")}, Listener()
    parse(order, context)
    first = {path.relative_to(tmp_path): path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}
    assert len(first) == 5
    assert context.lines[0].startswith("one: 60 frames; movement from order on the screen 0.0 %, ")
    assert context.tables["games"].rows[0][:4] == ("one", 60, 1, 0)
    (tmp_path / "out" / "latents" / "two.npz").unlink()
    parse(order, Listener())
    assert {path.relative_to(tmp_path): path.read_bytes() for path in (tmp_path / "out").rglob("*.*")} == first
    games = read_recordings(tmp_path / "out", lambda done, total: None)
    assert [(one.name, len(one), int(one.rewards.death.sum())) for one in games] == [("one", 60, 1), ("two", 60, 1)]
    np.testing.assert_array_equal(
        open_latents(tmp_path / "out" / "latents" / "one.npz").values,
        read_game(tmp_path / "games" / "one.npz").latents.astype(np.float16),
    )
    assert tables(tmp_path / "out")["games"].rows[0][:8] == ("one", 60, 0, 0, 0, "14 × 1 × 1", 1, 0)


def test_reads_knows_games_parsed_or_not(tmp_path: Path) -> None:
    game = written(tmp_path / "g.npz")
    assert is_game(game)
    assert reads(game) == reads(tmp_path) == ""
    parse({"source": str(game), "out": str(tmp_path / "out")}, Listener())
    assert reads(tmp_path / "out") == ""
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "a.npz").write_text("no zip")
    assert "no recorded game" in reads(tmp_path / "none")
    assert (tmp_path / "out" / NOTES).is_file()
    with pytest.raises(DataError, match=r"holds no game, expected \.npz files with one row a frame"):
        parse({"source": str(tmp_path / "none"), "out": str(tmp_path / "other")}, Listener())


@REAL
def test_the_real_games_have_their_deaths_and_repeat_their_movements(tmp_path: Path) -> None:
    """5551160159 has nine deaths: the tenth in a count of hp at 0 follows a gap in the middle of the seventh."""
    context = Listener()
    parse({"source": str(LEAGUE), "out": str(tmp_path)}, context)
    rows = {str(row[0]): row[1:4] for row in context.tables["games"].rows}
    assert rows == {
        "NA1_5549995114": (11301, 1, 68),
        "NA1_5551160159": (34222, 9, 179),
        "NA1_5551816295": (24994, 11, 134),
        "NA1_5553385868": (5988, 0, 34),
    }
    repeats = [row[-1] for row in tables(tmp_path)["games"].rows]
    assert all(isinstance(share, float) and 0.82 < share < 0.9 for share in repeats)
    assert sum("is half a second later" in line for line in context.lines) == 4
