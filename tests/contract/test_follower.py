"""The follower gives every whole line once and in order, however the bytes arrive and whatever they are."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.basics import jsonl
from engines.basics.jsonl import Damage, LineFollower, RecordFollower
from engines.contract import events as ev

lines = st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"\r")), max_size=12)


class Record(msgspec.Struct):
    n: int


@pytest.mark.behaviour("last-line-only-half")
@given(lines, st.binary(max_size=5).map(lambda tail: tail.replace(b"\n", b"")), st.data())
def test_any_cut_of_the_bytes_gives_each_whole_line_once(whole: list[bytes], tail: bytes, data: st.DataObject) -> None:
    content = b"".join(line + b"\n" for line in whole) + tail
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=8)))
    polled = data.draw(st.lists(st.booleans(), min_size=len(cuts) + 1, max_size=len(cuts) + 1))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        follower = LineFollower(path)
        found = follower.poll()
        for start, end, poll in zip([0, *cuts], [*cuts, len(content)], polled, strict=True):
            with open(path, "ab") as file:
                file.write(content[start:end])
            if poll:
                found += follower.poll()
        found += follower.poll()
        assert found == whole
        assert follower.poll() == []
        with open(path, "ab") as file:
            file.write(b"end\n")
        assert follower.poll() == [tail + b"end"]
        assert follower.restarts == 0


@pytest.mark.behaviour("log-truncated-replaced-written")
def test_a_truncated_log_is_read_again_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "log"
    follower = LineFollower(path)
    path.write_bytes(b"one\ntwo\nthr")
    assert follower.poll() == [b"one", b"two"]
    path.write_bytes(b"new\n")
    assert follower.poll() == [b"new"]
    assert follower.restarts == 1


@pytest.mark.behaviour("log-truncated-replaced-written")
@pytest.mark.parametrize("how", ["renamed over", "removed and made again"])
def test_a_replaced_log_is_read_from_its_start(tmp_path: Path, how: str) -> None:
    path, other = tmp_path / "log", tmp_path / "other"
    path.write_bytes(b"one\n")
    follower = LineFollower(path)
    assert follower.poll() == [b"one"]
    if how == "renamed over":
        other.write_bytes(b"longer than before\n")
        os.replace(other, path)
    else:
        path.unlink()
        assert follower.poll() == []
        path.write_bytes(b"longer than before\n")  # may well get the inode of the file that was removed
    assert follower.poll() == [b"longer than before"]
    assert follower.restarts == 1


@pytest.mark.behaviour("byte-read-twice-run")
def test_no_byte_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    follower = LineFollower(path)
    read: list[int] = []
    plain = LineFollower._read

    def counting(self: LineFollower, end: int) -> bytes:
        data = plain(self, end)
        read.append(len(data))
        return data

    monkeypatch.setattr(LineFollower, "_read", counting)
    for part in (b"a" * 100, b"b" * 50 + b"\n", b"", b"c\nd"):
        with open(path, "ab") as file:
            file.write(part)
        follower.poll()
    assert sum(read) == path.stat().st_size


@pytest.mark.behaviour("damage-middle-costs-lines")
@given(st.lists(st.one_of(st.integers(0, 99), st.binary(min_size=1, max_size=20)), max_size=12))
def test_garbage_between_records_is_counted_and_passed_over(items: list[int | bytes]) -> None:
    encode, decoder = msgspec.json.encode, msgspec.json.Decoder(Record)
    written = [encode(Record(item)) if isinstance(item, int) else b"#" + item.replace(b"\n", b"") for item in items]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(b"".join(line + b"\n" for line in written))
        follower = RecordFollower(path, decoder)
        assert [record.n for record in follower.poll()] == [item for item in items if isinstance(item, int)]
        bad = [number for number, item in enumerate(items, 1) if isinstance(item, bytes)]
        assert [damage.line for damage in follower.damage] == bad


@pytest.mark.behaviour("line-json-but-record")
@pytest.mark.parametrize(
    "line",
    [
        b"null",
        b"[]",
        b"\0" * 4096,
        b"\xff\xfe",
        b'{"type": "phase", "phase": "\xff"}',
        b'{"type": "no such event"}',
        b'{"type": "phase", "phase": "sleeping"}',
        b'{"type": "epoch", "epoch": 1e999}',
        b'{"type": "phase", "phase": "loading", "more": ' + b"[" * 100_000 + b"}",
        b"[" * 100_000,
    ],
    ids=range(10),
)
def test_every_kind_of_damage_in_an_event_log_is_survived(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "events.jsonl"
    good = msgspec.json.encode(ev.Phase(phase="training", step=7))
    path.write_bytes(good + b"\n" + line + b"\n\n" + good + b"\n")
    follower = RecordFollower(path, ev.decoder)
    assert follower.poll() == [ev.Phase(phase="training", step=7)] * 2
    assert follower.damage == [Damage(2, line[:80])]


def test_damage_is_forgotten_with_the_log_it_was_in(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"n": 1}\nbad\n{"n": 2}\n')
    follower = RecordFollower(path, msgspec.json.Decoder(Record))
    assert follower.poll() == [Record(1), Record(2)]
    path.write_bytes(b'bad\n{"n": 3}\n')
    assert follower.poll() == [Record(3)]
    assert follower.damage == [Damage(1, b"bad")]
    assert follower.restarts == 1


def test_a_line_without_end_is_not_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "LONGEST_LINE", 1000)
    path = tmp_path / "log"
    path.write_bytes(b'{"n": 1}\n' + b"[" * 5000)
    follower = RecordFollower(path, msgspec.json.Decoder(Record))
    assert [record.n for record in follower.poll()] == [1]
    lines = LineFollower(path, at_once=600)
    for _ in range(10):
        lines.poll()
        assert len(lines.partial) <= 1000
    assert lines.unfinished == 5000
    with open(path, "ab") as file:
        file.write(b"]\n" + b'{"n": 2}\n')
    assert [record.n for record in follower.poll()] == [2]
    assert [damage.line for damage in follower.damage] == [2]
    assert len(lines.poll()) == 2
    assert lines.unfinished == 0
