"""Replays become a store: what is taken, what is left and why, and the same files however often it was interrupted."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import signal
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import peppi_py
import pytest

from engines.basics.errors import DataError, UserError
from projects.melee.game import Game
from projects.melee.layout import BUTTONS, MOST_ITEMS
from projects.melee.parse import parse, read
from projects.melee.replay import game_of
from projects.melee.sources import Source, reads, sources
from projects.melee.store import Store
from projects.melee.table import read_table
from tests.projects.controls.task_context import Listener
from tests.projects.melee.tables import columns, write_table
from tests.support.readers import wait_for

REPLAYS = Path(__file__).parents[4] / "shared/data/melee"
needs_replays = pytest.mark.skipif(not REPLAYS.is_dir(), reason="the real replays are not here")


def parsed(source: Path, out: Path, **settings: object) -> Listener:
    context = Listener()
    parse({"source": str(source), "out": str(out), "workers": 1, "least_frames": 100, **settings}, context)
    return context


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def made_tables(folder: Path, count: int, frames: int = 150) -> Path:
    folder.mkdir(exist_ok=True)
    for k in range(count):
        write_table(folder / f"game_{k:02d}.parquet", columns(frames, k), packed=k % 2 == 0)
    return folder


def test_a_table_keeps_every_number(tmp_path: Path) -> None:
    made = columns(150, seed=1)
    write_table(tmp_path / "a.parquet", made)
    game = read_table(tmp_path / "a.parquet", 100)
    assert (game.missing, game.stage, len(game.frames)) == (("owner",), 24, 150)
    for place in range(2):
        mine, theirs = game.frames["players"][:, place], made[f"p{place}"]
        assert np.array_equal(mine["x"], theirs["x"])
        assert np.array_equal(mine["speed_attack_y"], theirs["speed_attack_y"])
        assert np.array_equal(mine["last_attack"], theirs["last_attack_landed"])
        assert np.array_equal(mine["airborne"] == 0, theirs["on_ground"])
        stick = theirs["controller"]["main_stick"]["x"]
        assert mine["main_x"] / 160 + 0.5 == pytest.approx(stick, abs=1e-7)
        for name, bit in BUTTONS.items():
            assert np.array_equal(mine["buttons"] & bit != 0, theirs["controller"]["buttons"][name])
    there = np.stack([made["items"][f"item_{k}"]["exists"] for k in range(MOST_ITEMS)], axis=1)
    assert np.array_equal(game.frames["items"], there.sum(axis=1))
    frame = int(np.argmax(there.sum(axis=1)))
    first, count = int(game.frames["first_item"][frame]), int(game.frames["items"][frame])
    slots = [made["items"][f"item_{k}"] for k in np.flatnonzero(there[frame])]
    assert game.items["type"][first : first + count].tolist() == [int(slot["type"][frame]) for slot in slots]
    assert game.items["y"][first : first + count].tolist() == [float(slot["y"][frame]) for slot in slots]


def test_a_plain_table_lacks_what_it_does_not_have(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", columns(150, seed=1, speeds=False))
    missing = read_table(tmp_path / "a.parquet", 100).missing
    assert {"speed_air_x", "stocks", "hitlag", "ground", "l_cancel"} <= set(missing)
    assert "percent" not in missing


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), 3e38])
def test_a_value_that_no_game_has_is_damage(tmp_path: Path, value: float) -> None:
    made = columns(150, seed=1)
    made["p1"]["y"][7] = value
    write_table(tmp_path / "a.parquet", made)
    with pytest.raises(DataError, match=r"a value in row 7 is .*, expected a number within ±100000"):
        read_table(tmp_path / "a.parquet", 100)
    made["p1"]["y"][7], made["p1"]["controller"]["main_stick"]["x"][7] = 0, 40
    write_table(tmp_path / "a.parquet", made)
    assert read_table(tmp_path / "a.parquet", 100).frames["players"]["main_x"][7, 1] == 80  # as far as a stick goes


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"x\x9cnot zlib", b"hello"])
def test_what_is_no_table_is_said_in_a_sentence(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "a.parquet").write_bytes(damage)
    with pytest.raises(DataError):
        read_table(tmp_path / "a.parquet")


def test_every_replay_is_taken_or_left_with_a_reason(tmp_path: Path) -> None:
    folder = made_tables(tmp_path / "in", 3)
    (folder / "game_07.slp").write_bytes(b"not a replay")
    with gzip.open(folder / "game_08.slp.gz", "wb") as packed:
        packed.write(b"not one either")
    with zipfile.ZipFile(folder / "more.zip", "w") as archive:
        archive.writestr("inside/game.slp", b"nor this")
        archive.writestr("readme.txt", b"never looked at")
    (folder / "broken.zip").write_bytes(b"PK no zip")
    write_table(folder / "short.parquet", columns(99, 5))
    write_table(folder / "twin.parquet", columns(150, 1))
    context = parsed(folder, tmp_path / "out")
    store = Store(tmp_path / "out")
    assert [placed.game.name for placed in store.games] == ["game_00", "game_01", "game_02"]
    counts, reasons = {row[0]: row[1] for row in context.tables["counts"].rows}, context.tables["left"].rows
    assert counts == {"files": 9, "taken": 3, "with every field": 0, "frames": 450}
    assert [row[:2] for row in reasons] == [
        ("damaged", 4), ("players", 0), ("computer", 0), ("length", 1), ("copy", 1),
    ]  # fmt: skip
    left = {one.source: one.reason for one in store.contents[0].left}
    assert left == {
        "broken.zip": "damaged", "game_07.slp": "damaged", "game_08.slp.gz": "damaged",
        "more.zip/inside/game.slp": "damaged",
        "short.parquet": "length", "twin.parquet": "copy",
    }  # fmt: skip


def test_run_again_it_takes_nothing_twice_and_adds_what_is_new(tmp_path: Path) -> None:
    folder, out = made_tables(tmp_path / "in", 3), tmp_path / "out"
    parsed(folder, out)
    before = content(out)
    parsed(folder, out)
    assert content(out) == before
    made_tables(folder, 5)
    parsed(folder, out)
    after = content(out)
    kept = before.keys() - {"melee.json"}
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert [placed.game.name for placed in Store(out).games] == [f"game_{k:02d}" for k in range(5)]


PARSE = """
import sys
from pathlib import Path
from tests.projects.melee.test_parse import parsed

if __name__ == "__main__":
    parsed(Path(sys.argv[1]), Path(sys.argv[2]), shard_rows=1000)
"""


@pytest.mark.parametrize("shard", [0, 3])
def test_killed_anywhere_and_run_again_it_ends_with_the_same_bytes(tmp_path: Path, shard: int) -> None:
    folder, out = made_tables(tmp_path / "in", 12, frames=500), tmp_path / "out"
    parsed(folder, tmp_path / "whole", shard_rows=1000)
    script = tmp_path / "parse.py"
    script.write_text(PARSE)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    with subprocess.Popen([sys.executable, script, folder, out], env=environment) as parsing:
        wait_for(out / f"{shard:05d}.frames.npy")
        parsing.send_signal(signal.SIGKILL)
    parsed(folder, out, shard_rows=1000)
    assert content(out) == content(tmp_path / "whole")
    assert len(Store(out).shards) == 6


def test_an_unfinished_or_damaged_store_is_said_in_a_sentence(tmp_path: Path) -> None:
    folder, out = made_tables(tmp_path / "in", 2), tmp_path / "out"
    parsed(folder, out)
    notes = json.loads((out / "melee.json").read_text())
    (out / "melee.json").write_text(json.dumps({**notes, "complete": False}))
    with pytest.raises(DataError, match="is not finished"):
        Store(out)
    (out / "melee.json").write_text(json.dumps(notes))
    (out / "00000.frames.npy").write_bytes((out / "00000.frames.npy").read_bytes()[:-7])
    with pytest.raises(DataError, match="cannot be read"):
        Store(out).frames(0)
    with pytest.raises(DataError, match="is no store of games"):
        Store(folder)


def test_bad_settings_and_places_are_refused(tmp_path: Path) -> None:
    folder = made_tables(tmp_path / "in", 1)
    with pytest.raises(UserError, match="rollback is 'middle', expected"):
        parsed(folder, tmp_path / "out", rollback="middle")
    with pytest.raises(DataError, match="does not exist"):
        parsed(tmp_path / "nowhere", tmp_path / "elsewhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no replay"):
        list(sources(tmp_path / "empty"))
    assert "replays" in reads(tmp_path / "empty")
    parsed(folder, tmp_path / "out")
    assert (reads(str(folder)), reads(tmp_path / "out")) == ("", "")
    with pytest.raises(DataError, match="was made with least_frames 100, not 200"):
        parsed(folder, tmp_path / "out", least_frames=200)


@needs_replays
def test_the_real_replays(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    parse({"source": str(REPLAYS), "out": str(tmp_path / "out"), "workers": 2}, Listener())
    assert capfd.readouterr().err == "", "a panic prints its stack, which is nothing for a user"
    store = Store(tmp_path / "out")
    left = [one for contents in store.contents for one in contents.left]
    counts = Counter(one.reason for one in left)
    assert counts == {"damaged": 28, "players": 12, "computer": 46, "length": 47, "copy": 2}
    assert sum("Panic" in one.text for one in left) == 8
    whole = [placed.game for placed in store.games if not placed.game.missing]
    assert (len(store.games), len(whole)) == (36, 28)
    frames, items = sum(game.frames for game in whole), sum(game.items for game in whole)
    assert frames == 228_424  # distinct frames, counted in the data's own README
    assert (frames * 133 + items * 12) / frames <= 170
    assert "PLYR" not in "".join(path.read_text() for path in (tmp_path / "out").glob("*.json"))


@needs_replays
def test_the_game_that_is_there_as_a_table_agrees_field_by_field() -> None:
    name = "game_32.slp.xz"
    game = read(Source(REPLAYS / "replays" / name, None, name), rollback="first", least_frames=1800)
    assert isinstance(game, Game)
    table = read_table(REPLAYS / "slippi_ai/game_plain.parquet")
    mine, theirs = game.frames["players"], table.frames["players"]
    compared = [field for field in mine.dtype.names or () if field not in table.missing and field != "hurtbox"]
    assert len(compared) > 12
    for field in compared:
        ours = np.floor(mine[field]) if field == "percent" else mine[field]
        if field == "buttons":
            ours = ours & sum(BUTTONS.values())
        assert np.array_equal(ours, theirs[field]), field
    assert np.array_equal(game.frames["items"], table.frames["items"])
    for field in ("x", "y", "type", "state"):
        assert sorted(game.items[field].tolist()) == sorted(table.items[field].tolist())


SPEEDS = {"speed_air_x", "speed_y", "speed_ground_x", "speed_attack_x", "speed_attack_y"}
LATE = {"hitlag", "hurtbox", "items", *SPEEDS}
FRAME_1500 = [
    # read from the bytes of the events by the offsets of DOMAIN 5.1, without peppi
    ("odd/odd_130", "0.1.0", {*LATE, "state_age", "ground", "jumps", "l_cancel", "airborne"}, [
        {"character": 7, "action": 53, "x": 39.24010467529297, "percent": 5.480000019073486, "shield": 60, "stocks": 4},
        {"character": 10, "action": 42, "x": 46.41716384887695, "right": 0, "last_attack": 2, "combo": 1, "stocks": 3},
    ]),
    ("replays/game_18", "2.0.1", LATE, [
        {"action": 191, "x": 0.37502598762512207, "shield": 57.34270095825195, "state_age": 6, "airborne": 1},
        {"action": 24, "y": 9.999999747378752e-05, "percent": 35.72999954223633, "last_attack": 16, "ground": 1},
    ]),
    ("replays/game_32", "3.16.0", set(), [
        {"character": 7, "action": 359, "speed_air_x": 0.8014768958091736, "y": -9.837807655334473, "state_age": 36},
        {"character": 16, "action": 14, "percent": 25, "speed_air_x": 0, "hitlag": 0, "ground": 1, "right": 0},
    ]),
]  # fmt: skip


@needs_replays
@pytest.mark.parametrize(("name", "version", "missing", "fighters"), FRAME_1500, ids=[case[1] for case in FRAME_1500])
def test_what_three_versions_have(
    tmp_path: Path, name: str, version: str, missing: set[str], fighters: list[dict[str, float]]
) -> None:
    (tmp_path / "a.slp").write_bytes(lzma.decompress((REPLAYS / f"{name}.slp.xz").read_bytes()))
    game = game_of(peppi_py.read_slippi(str(tmp_path / "a.slp")))
    assert (game.version, set(game.missing)) == (version, missing)
    for place, values in enumerate(fighters):
        row = game.frames["players"][1500, place]
        assert {field: row[field].item() for field in values} == values
