"""Whatever a host says, nothing is written but the small files of runs, below the folder of that host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.core.hosts import mirror as module
from cockpit.core.hosts.follower import CHUNK
from cockpit.core.hosts.mirror import Frames, Mirror, Refused, Said

RUN = "controls-20261127-201400-amber"


def everything_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.behaviour("hostile-host")
@pytest.mark.parametrize(
    "said",
    [
        {"run": "../x", "file": "run.json", "of": 1},
        {"run": "..", "file": "run.json", "of": 1},
        {"run": "/tmp/x", "held": True},
        {"run": ".hidden", "held": True},
        {"run": "a\x1b[2J", "held": True},
        {"run": "a" * 256, "held": True},
        {"run": RUN, "file": "../x", "of": 1},
        {"run": RUN, "file": "/etc/passwd", "of": 1},
        {"run": RUN, "file": "checkpoints/last.pt", "of": 1},
        {"run": RUN, "file": "export/x.py", "of": 1},
        {"run": RUN, "file": "logs/../../x.log"},
        {"run": RUN, "file": "attempts/1.json\n", "of": 1},
        {"run": RUN, "file": "engine.lock", "of": 1},
        {"run": RUN, "file": "events.jsonl", "of": 1},
        {"run": RUN, "file": "run.json"},
        {"run": RUN, "file": "run.json", "of": 1, "at": -1},
        {"run": RUN, "file": "run.json", "of": 1 << 40, "at": 1 << 39},
        {"run": RUN, "file": "run.json", "of": 1, "modified": 1 << 63},
        {"run": RUN, "file": "run.json", "of": 9, "at": 4},
        {"run": RUN, "file": "events.jsonl", "at": 1 << 30},
        {"runs": ["ok", "../x"]},
        {"runs": [str(number) for number in range(10_001)]},
    ],
)
def test_what_no_follower_says_is_refused_and_leaves_nothing(tmp_path: Path, said: dict[str, Any]) -> None:
    mirror = Mirror(tmp_path / "host")
    mirror.have()
    before = everything_in(tmp_path)
    with pytest.raises(Refused):
        mirror.take(Said(**said, bytes=1 if "file" in said else 0), b"x" * ("file" in said))
    assert everything_in(tmp_path) - before <= {f"host/1/{RUN}"}


def test_a_hole_in_a_growing_file_is_refused(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path)
    mirror.have()
    mirror.take(Said(run=RUN, file="events.jsonl", at=0, bytes=3), b"abc")
    mirror.take(Said(run=RUN, file="events.jsonl", at=3, bytes=2), b"de")
    with pytest.raises(Refused, match="gap"):
        mirror.take(Said(run=RUN, file="events.jsonl", at=6, bytes=1), b"g")
    assert (mirror.folder / RUN / "events.jsonl").read_bytes() == b"abcde"


def test_each_process_has_a_copy_of_its_own(tmp_path: Path) -> None:
    first, second = Mirror(tmp_path), Mirror(tmp_path)
    assert (first.folder, second.folder) == (tmp_path / "1", tmp_path / "2")
    first.close()
    assert Mirror(tmp_path).folder == tmp_path / "1"


def test_no_link_in_the_folder_is_written_through(tmp_path: Path) -> None:
    mirror, other = Mirror(tmp_path / "host"), tmp_path / "mine"
    mirror.have()
    other.write_text("mine")
    (mirror.folder / RUN).mkdir()
    (mirror.folder / RUN / "events.jsonl").symlink_to(other)
    with pytest.raises(OSError, match="symbolic links"):
        mirror.take(Said(run=RUN, file="events.jsonl", at=4, bytes=1), b"x")
    mirror.take(Said(run=RUN, file="events.jsonl", at=0, bytes=1), b"x")
    assert other.read_text() == "mine"
    assert (mirror.folder / RUN / "events.jsonl").read_bytes() == b"x"


def test_curves_and_output_make_room_and_what_is_small_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES", 10)
    mirror = Mirror(tmp_path)
    mirror.have()
    mirror.take(Said(run=RUN, file="events.jsonl", at=0, bytes=5), b"event")
    mirror.take(Said(run=RUN, file="logs/stdout.log", at=0, bytes=7), b"printed")
    assert {run: [*files] for run, files in mirror.have().items()} == {RUN: ["events.jsonl"]}
    assert not (mirror.folder / RUN / "logs" / "stdout.log").exists()


def test_a_host_cannot_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 2 * module.ENTRY_BYTES + 10)
    mirror = Mirror(tmp_path)
    mirror.have()
    mirror.take(Said(run=RUN, file="events.jsonl", at=0, bytes=8), b"x" * 8)
    mirror.close()
    again = Mirror(tmp_path)
    again.have()  # what is there counts
    with pytest.raises(Refused, match="more than"):
        again.take(Said(run=RUN, file="commands.jsonl", at=0, bytes=3), b"xxx")


def test_a_host_cannot_fill_the_disk_with_what_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 8 * module.ENTRY_BYTES)
    monkeypatch.setattr(module, "MOST_RUNS", 3)
    mirror = Mirror(tmp_path)
    mirror.have()
    for number in range(1, 9):
        mirror.take(Said(run=RUN, file=f"attempts/{number}.json", of=0), b"")
    with pytest.raises(Refused, match="more than 4 GiB"):
        mirror.take(Said(run=RUN, file="attempts/9.json", of=0), b"")
    for name in "ab":
        mirror.take(Said(run=name, held=True), b"")
    with pytest.raises(Refused, match="more than 3 runs"):
        mirror.take(Said(run="c", held=True), b"")
    assert sorted(path.name for path in mirror.folder.iterdir()) == ["a", "b", RUN]
    mirror.take(Said(runs=[RUN]), b"")
    mirror.take(Said(run="another", held=True), b"")


@pytest.mark.parametrize(
    "sent",
    [b"\x00" * 100 + b"\n", b"[]\n", b'{"bytes": -1}\n', b'{"run": 3}\n', b'{"bytes": %d}\n' % (CHUNK + 1),
     b"[" * 100_000 + b"\n", b"x" * (module.LONGEST_WORDS + 1)],
)  # fmt: skip
def test_what_is_no_record_is_refused(sent: bytes) -> None:
    with pytest.raises(Refused):
        list(Frames().feed(sent))


@given(st.lists(st.binary(max_size=20), max_size=6), st.data())
def test_frames_are_the_same_however_they_are_cut(contents: list[bytes], data: st.DataObject) -> None:
    sent = b"".join(
        json.dumps({"run": str(number), "bytes": len(content)}).encode() + b"\n" + content
        for number, content in enumerate(contents)
    )
    frames, got, place = Frames(), [], 0
    while place < len(sent):
        size = data.draw(st.integers(1, 30))
        got += list(frames.feed(sent[place : place + size]))
        place += size
    assert [(said.run, content) for said, content in got] == [(str(n), content) for n, content in enumerate(contents)]
