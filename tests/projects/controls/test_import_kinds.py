"""Files are known by how they begin; action lists, folders, and what is none of the kinds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.basics.errors import DataError
from projects.controls.demo.names import ATTACK, BACK, DROP, FIRST_SLOT, FORWARD, INVENTORY, JUMP, PITCH, SPRINT, YAW
from projects.controls.importers.kinds import KINDS, recognise
from projects.controls.importers.task import parse
from projects.controls.layout import LOOK, SCREEN_OPEN, WINDOW
from projects.controls.recordings import read_folder
from tests.projects.controls import test_import_minerl, test_import_vpt
from tests.projects.controls.sessions import random_session
from tests.projects.controls.task_context import Listener
from tests.projects.controls.test_import_v1 import version_1

REAL = Path(__file__).parents[4] / "shared" / "data" / "minecraft" / "infatoshi_vpt_mc-0.json"


def lines(ticks: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(tick) + "\n" for tick in ticks).encode()


def items(count: int, **held: int) -> list[dict[str, Any]]:
    return [{"ESC": 0, "noop": [], "camera": [0.0, 1.5], **held} for _ in range(count)]


LOGS = {
    "minerl": lines([test_import_minerl.tick(50 * k) for k in range(40)]),
    "vpt": lines([test_import_vpt.line(k) for k in range(40)]),
    "list": json.dumps(items(40)).encode(),
}


def parsed(source: Path, out: Path, **arguments: Any) -> list[str]:
    listener = Listener()
    parse({"source": str(source), "out": str(out), **arguments}, listener)
    return listener.lines


def test_each_kind_is_known_by_its_content_and_not_by_its_name(tmp_path: Path) -> None:
    version_1(tmp_path / "v1", rows=40)
    for name, content in LOGS.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / f"{name}-bom").write_bytes(b"\xef\xbb\xbf" + content)
    for kind in KINDS:
        assert recognise(tmp_path / kind.name) is kind
        assert [other.name for other in KINDS if other.recognises((tmp_path / kind.name).read_bytes())] in (
            [kind.name], [],  # a log of many lines is no single line
        )  # fmt: skip
    for name in LOGS:
        parsed(tmp_path / f"{name}-bom", tmp_path / "out" / name)
        assert sum(map(len, read_folder(tmp_path / "out" / name))) == 40


def test_a_kind_that_is_named_is_not_questioned(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(LOGS["vpt"])
    with pytest.raises(DataError, match=r"line 1: Object missing required field `action`; expected action\.keyboard"):
        parsed(tmp_path / "log", tmp_path / "out", kind="minerl")
    with pytest.raises(DataError, match=r"expected an \.npz of plain number arrays"):
        parsed(tmp_path / "log", tmp_path / "out", kind="v1")


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (b"", "is empty"),
        (b"\n" + LOGS["vpt"], r"begins with '\\n'"),
        (b"time,key\n", r"begins with 'time,key\\n'"),
        (b"\x1b[2Jhello", r"begins with '\\x1b\[2Jhello'"),
        ("naïve".encode("utf-16"), r"begins with '\\ufffd\\ufffdn"),
        (b"[[1, 2]]", r"begins with '\[\[1, 2\]\]'"),
        (b"[" * 100_000, r"begins with '\[{40}'"),
        (b'{"action": 1}', "begins with"),
    ],
    ids=["empty", "empty line", "csv", "terminal control", "utf-16", "other lists", "deep nesting", "other objects"],
)
def test_what_is_of_no_kind_is_told_with_what_was_seen(tmp_path: Path, content: bytes, seen: str) -> None:
    (tmp_path / "log").write_bytes(content)
    with pytest.raises(DataError, match=seen) as caught:
        parsed(tmp_path / "log", tmp_path / "out")
    assert all(f"({kind.name})" in str(caught.value) for kind in KINDS)
    assert str(caught.value).isprintable()
    assert not (tmp_path / "out").exists()


def test_a_folder_gives_at_least_a_session_for_each_log(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(3):
        (folder / f"part{number}.jsonl").write_bytes(lines([test_import_vpt.line(k) for k in range(100)]))
    (folder / "long.txt").write_bytes(lines([test_import_minerl.tick(50 * k) for k in range(600)]))
    (folder / "video.mp4").write_bytes(b"\x00\x00\x00\x20ftyp")
    (folder / "nested").mkdir()
    said = parsed(folder, tmp_path / "out", sessions=6)
    lengths = {recording.name: len(recording) for recording in read_folder(tmp_path / "out")}
    assert lengths == {**{f"long_{k}": 150 for k in range(4)}, "part0": 100, "part1": 100, "part2": 100}
    assert "other files are left out (1): 'video.mp4'." in said[0]
    assert parsed(folder, tmp_path / "vpt", kind="vpt", sessions=3)[0].endswith(
        "left out (2): 'long.txt', 'video.mp4'."
    )
    assert len(read_folder(tmp_path / "vpt")) == 3


def test_every_log_has_a_body_of_its_own_and_always_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_bytes(LOGS["minerl"])
    for out in ("once", "again"):
        parsed(folder, tmp_path / out)
    a, b = read_folder(tmp_path / "once")
    assert np.array_equal(a.controls, b.controls)
    assert not np.array_equal(a.frames, b.frames)
    for before, after in zip((a, b), read_folder(tmp_path / "again"), strict=True):
        assert np.array_equal(before.frames, after.frames)


def test_a_folder_with_one_bad_log_gives_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a").write_bytes(LOGS["vpt"])
    (folder / "b").write_bytes(LOGS["vpt"].replace(b'"tick": 30', b'"tick": "x"'))
    with pytest.raises(DataError, match=r"b line 31: Expected `int \| null`"):
        parsed(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_without_logs_and_logs_of_the_same_name_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "notes.txt").write_text("nothing")
    with pytest.raises(DataError, match="holds no file to read among 1, expected a JSON object a line"):
        parsed(folder, tmp_path / "out")
    for name in ("log.json", "log.jsonl"):
        (folder / name).write_bytes(LOGS["vpt"])
    with pytest.raises(DataError, match=r"log\.json: another file would give sessions of the same name"):
        parsed(folder, tmp_path / "out")


def test_the_real_list_becomes_sessions(tmp_path: Path) -> None:
    if not REAL.is_file():
        pytest.skip("the human log is not beside this project (../shared/data/minecraft)")
    ticks = json.loads(REAL.read_text())
    said = parsed(REAL, tmp_path / "out")
    recordings = read_folder(tmp_path / "out")
    assert len(recordings) == 3
    assert min(map(len, recordings)) >= WINDOW
    assert "112 frames in 3 sessions" in said[-1]
    controls = np.concatenate([recording.controls for recording in recordings])
    for control, key in ((FORWARD, "forward"), (SPRINT, "sprint"), (JUMP, "jump")):
        assert controls[:, control].tolist() == [float(key in tick) for tick in ticks]
    turned = np.sum([tick["camera"][::-1] for tick in ticks], axis=0)
    assert controls[:, LOOK].astype(np.float64).sum(axis=0) * 15 == pytest.approx(turned, abs=1e-3)
    assert all(recording.synthesised_pose and recording.session_type == "list" for recording in recordings)


def test_what_is_present_in_a_list_is_held_and_presses_fire_once(tmp_path: Path) -> None:
    ticks = items(10, forward=1) + items(10, forward=0, drop=1, attack=1) + items(20, **{"hotbar.3": 1, "back": 1})
    ticks[25]["inventory"] = 1
    (tmp_path / "log").write_text(json.dumps(ticks))
    parsed(tmp_path / "log", tmp_path / "out", sessions=1)
    (recording,) = read_folder(tmp_path / "out")
    on = {control: np.flatnonzero(recording.controls[:, control] > 0.5).tolist() for control in range(28)}
    assert on[FORWARD] == list(range(10))
    assert (on[DROP], on[ATTACK]) == ([10], list(range(10, 20)))
    assert (on[FIRST_SLOT + 2], on[INVENTORY]) == ([20], [25])
    assert on[BACK] == list(range(20, 26))
    assert np.flatnonzero(recording.state[:, SCREEN_OPEN]).tolist() == list(range(26, 40))
    assert recording.controls[:26, YAW] == pytest.approx(0.1)
    assert not recording.controls[:, PITCH].any()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (json.dumps(items(40))[:-20], "not an action list .*; expected one JSON array"),
        (json.dumps([*items(30), {"forward": 1}]), r"tick 31: camera is None, expected \[pitch, yaw\]"),
        (json.dumps([*items(30), {"camera": [1.0]}]), r"tick 31: camera is \[1.0\], expected \[pitch, yaw\]"),
        (json.dumps([*items(30), {"camera": [0.0, -1e6]}]), "tick 31: camera is .*, expected at most 180 degrees"),
        (json.dumps([*items(30), {"camera": [0.0, "\x1b"]}]), r"at `\$\[30\]\[\.\.\.\]\[1\]`"),
        (json.dumps(items(29)), "gives 29 frames at 20 a second, expected at least 30"),
    ],
    ids=["cut short", "no camera", "half a camera", "far too fast", "text", "too short"],
)
def test_a_bad_list_is_told(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "log").write_text(content)
    with pytest.raises(DataError, match=said):
        parsed(tmp_path / "log", tmp_path / "out")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_but_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    kind = data.draw(st.sampled_from([*LOGS, "v1"]))
    log = folder / "log"
    if kind == "v1":
        version_1(log, rows=31)
    content = bytearray(LOGS.get(kind) or log.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        damage = data.draw(st.sampled_from([b"", b"\x00", b"\xff", b"9", b"e9", b"-", b'"', b"\n", b"[", b"null"]))
        content[at : at + data.draw(st.integers(0, 3))] = damage
    log.write_bytes(bytes(content))
    try:
        parsed(log, folder / "out", kind=data.draw(st.sampled_from([None, kind])))
    except DataError as error:
        assert str(error).startswith(f"{log}")  # noqa: PT017
        assert not (folder / "out").exists()
    else:
        for recording in read_folder(folder / "out"):
            assert np.abs(recording.controls[:, LOOK]).max() <= 1


def test_a_recording_of_version_2_needs_no_parsing(tmp_path: Path) -> None:
    session = random_session("a", 40, 0)
    np.savez(tmp_path / "a.npz", frames=session.frames, controls=session.controls, game_state=session.state)
    with pytest.raises(DataError, match="this is a version-2 recording already"):
        parsed(tmp_path / "a.npz", tmp_path / "out")
