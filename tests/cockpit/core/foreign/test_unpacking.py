"""Logs that are packed by gzip, or in UTF-16, while they grow, where they are cut, and where they are damaged."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cockpit.core.foreign import unpacking
from cockpit.core.foreign.kinds import open_logs
from cockpit.core.foreign.unpacking import Unpacker
from tests.cockpit.core.foreign.event_files import VERSION, event, record, simple
from tests.cockpit.core.foreign.reading import points, read, read_on


def loss(step: int) -> float:
    return round(4 / (1 + step), 6)


LINES = [json.dumps({"step": step, "loss": loss(step), "näme": step}) for step in range(200)]
EXPECTED = {"loss": [(step, loss(step)) for step in range(200)], "näme": [(step, step) for step in range(200)]}


@pytest.mark.behaviour("log-packed-utf-16")
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
def test_utf_16_grows_by_odd_bytes(encoding: str, tmp_path: Path) -> None:
    """As PowerShell writes what is redirected: a mark, then two bytes a letter, `\\r\\n` at the end of a line."""
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    data = mark + "".join(line + "\r\n" for line in LINES).encode(encoding)
    path = tmp_path / "log.jsonl"
    path.write_bytes(data[:1])
    source = read(path)
    for start in range(1, len(data), 1001):
        with open(path, "ab") as file:
            file.write(data[start : start + 1001])
        read_on(source)
    assert {name: points(series) for name, series in source.series().items()} == EXPECTED
    assert (source.kind, source.problems()) == ("JSON lines", [])
    assert {name: points(one) for name, one in read(path).series().items()} == EXPECTED


@pytest.mark.behaviour("log-packed-utf-16")
def test_a_packed_log_grows_by_members_and_says_where_it_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.write("\n".join(LINES[:100]) + "\n")
    source = read(path)
    assert [one.path for one in open_logs(tmp_path)] == [path]
    with gzip.open(path, "at") as file:
        file.write("\n".join(LINES[100:]) + "\n")
    whole = path.read_bytes()
    assert {name: points(series) for name, series in read_on(source).series().items()} == EXPECTED
    path.write_bytes(whole[:-30])  # a writer at work: what is there so far, and no complaint
    cut = read(path)
    assert 100 < len(cut.series()["loss"].value) <= 200
    assert not any("damaged" in problem for problem in cut.problems())
    path.write_bytes(whole[: len(whole) // 2 + 200] + b"\xff" * 40 + whole[len(whole) // 2 + 240 :])
    damaged = read(path)
    assert 100 <= len(damaged.series()["loss"].value) < 200
    assert any("compressed file is damaged" in problem for problem in damaged.problems())


def test_packed_tables_documents_and_events_are_read_too(tmp_path: Path) -> None:
    table = "step,loss\n" + "".join(f"{step},{loss(step)}\n" for step in range(50))
    (tmp_path / "metrics.csv.gz").write_bytes(gzip.compress(table.encode()))
    (tmp_path / "history.json.gz").write_bytes(
        gzip.compress(json.dumps({"val_loss": [3.0, 2.5, 2.25]}).encode("utf-16"))
    )
    events = b"".join(record(part) for part in (VERSION, event(simple("loss", 0.5), step=3)))
    (tmp_path / "events.out.tfevents.1.host").write_bytes(gzip.compress(events))
    assert points(read(tmp_path / "metrics.csv.gz").series()["loss"]) == [(step, loss(step)) for step in range(50)]
    assert read(tmp_path / "history.json.gz").series()["val_loss"].value.tolist() == [3.0, 2.5, 2.25]
    assert points(read(tmp_path / "events.out.tfevents.1.host").series()["loss"]) == [(3.0, 0.5)]
    (tmp_path / "history.json.gz").write_bytes(gzip.compress(b'{"loss": [1, 2')[:-9])
    assert "incomplete" in read(tmp_path / "history.json.gz").problems()[0]


@pytest.mark.behaviour("log-packed-utf-16")
def test_what_a_small_file_unpacks_to_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "AT_ONCE", 1 << 16)
    size = 3 * unpacking.AT_ONCE + 5
    unpacker = Unpacker()
    pieces = [len(unpacker.feed(gzip.compress(b"x" * size)))]
    while unpacker.gzip.waiting:
        pieces.append(len(unpacker.feed(b"")))
    assert (sum(pieces), max(pieces)) == (size, unpacking.AT_ONCE)
