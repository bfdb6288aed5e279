"""Logs that grow, tear, are damaged, are written anew, and say NaN in every way."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.core.foreign.logs import Logs
from cockpit.core.foreign.watched import WatchedLogs
from engines.basics.jsonl import ByteFollower
from tests.cockpit.core.foreign.reading import plain, points, read, read_on


def append(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


FORMATS: dict[str, Callable[[int], bytes]] = {
    "log.jsonl": lambda step: b'{"step": %d, "loss": %d.5}\n' % (step, step),
    "log.csv": lambda step: b"step,loss\n" * (step == 0) + b"%d,%d.5\n" % (step, step),
    "log.txt": lambda step: b"s:%d loss:%d.5\n" % (step, step),
}


@pytest.mark.behaviour("last-line-only-half")
@pytest.mark.parametrize("name", FORMATS)
def test_a_half_written_last_line_waits_and_then_appears_once(name: str, tmp_path: Path) -> None:
    line, path = FORMATS[name], tmp_path / name
    path.write_bytes(line(0) + line(1) + line(2)[:-3])
    source = read(path)
    assert points(source.series()["loss"]) == [(0.0, 0.5), (1.0, 1.5)]
    assert any("incomplete" in problem for problem in source.problems())
    append(path, line(2)[-3:])
    assert source.poll()
    assert points(source.series()["loss"]) == [(0.0, 0.5), (1.0, 1.5), (2.0, 2.5)]
    assert source.problems() == []
    assert not source.poll()


@pytest.mark.behaviour("log-truncated-replaced-written")
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("how", ["truncated", "replaced", "written anew in place, longer"])
def test_a_log_begun_again_is_read_from_its_start_without_the_old_rows(name: str, how: str, tmp_path: Path) -> None:
    line, path = FORMATS[name], tmp_path / name
    path.write_bytes(b"".join(map(line, range(6))))
    source = read(path)
    if how == "truncated":
        path.write_bytes(line(0))
    elif how == "replaced":
        (tmp_path / "new").write_bytes(b"".join(map(line, range(7))))
        os.replace(tmp_path / "new", path)
    else:
        path.write_bytes(
            b"# a line of prose: 1\n" * (name == "log.txt") + b"".join(line(step) for step in range(0, 90, 9))
        )
    read_on(source)
    steps = {"truncated": [0], "replaced": list(range(7))}.get(how, list(range(0, 90, 9)))
    assert points(source.series()["loss"]) == [(float(step), step + 0.5) for step in steps]
    assert source.series()["loss"].old == ()
    assert any("rewritten;" in problem for problem in source.problems())


DAMAGE = [b"\xff\xfe\x00garbage", b"\0" * 4096, b'{"step": 3, "lo', b"[" * 100_000, b"[]", b"null", b"3"]


@pytest.mark.behaviour("damage-middle-costs-lines")
@pytest.mark.parametrize("damage", DAMAGE, ids=range(len(DAMAGE)))
def test_damage_in_the_middle_is_counted_and_the_rows_after_it_shown(damage: bytes, tmp_path: Path) -> None:
    line, path = FORMATS["log.jsonl"], tmp_path / "log.jsonl"
    path.write_bytes(line(0) + line(1) + damage + b"\n" + line(2))
    source = read(path)
    assert points(source.series()["loss"]) == [(0.0, 0.5), (1.0, 1.5), (2.0, 2.5)]
    assert source.problems() == ["1 damaged line skipped, the first is line 3."]


@pytest.mark.behaviour("header-middle-csv-file")
@pytest.mark.parametrize("damage", [b"4,5,6", b"4", b"\xff\xfe", b'4,"5'], ids=range(4))
def test_csv_rows_of_another_length_shift_no_value(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"step,loss,acc\n1,0.5,0.1\n" + damage + b"\n2,0.25,0.2\n")
    source = read(path)
    assert points(source.series()["loss"]) == [(1.0, 0.5), (2.0, 0.25)]
    assert points(source.series()["acc"]) == [(1.0, 0.1), (2.0, 0.2)] or damage == b"4,5,6"
    assert len(source.problems()) == (damage != b"4,5,6")


def test_a_step_without_numbers_in_a_text_log_is_damage_and_prose_is_not(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"loading\ns:1 loss:0.5\nnothing to see\ns:2 lo\ns:3 loss:.25 time:320.5ms eta:nanms\n")
    source = read(path)
    assert points(source.series()["loss"]) == [(1.0, 0.5), (3.0, 0.25)]
    assert (points(source.series()["time"]), points(source.series()["eta"])) == ([(3.0, 320.5)], [(3.0, "nan")])
    assert source.problems() == ["1 damaged line skipped, the first is line 4."]


@pytest.mark.behaviour("bytes-utf-8-letter")
def test_bytes_that_are_no_utf8_cost_no_row(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"step": 1, "note": "\xff", "loss": 2}\n{"step": 2, "loss": 1, "n\xc3')
    source = read(path)
    append(path, b'\xa9": 5}\n')
    read_on(source)
    assert points(source.series()["loss"]) == [(1.0, 2.0), (2.0, 1.0)]
    assert points(source.series()["né"]) == [(2.0, 5.0)]


def test_a_line_of_four_megabytes_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(json.dumps({"step": 1, "blob": "x" * 4_000_000, "loss": 2.0}).encode() + b"\n")
    append(path, b'{"step": 2, "loss": 1.0}\n')
    assert points(read(path).series()["loss"]) == [(1.0, 2.0), (2.0, 1.0)]


def test_numbers_that_are_not_finite_are_kept_as_logged(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines = [
        '{"step": 1, "a": NaN, "b": Infinity, "c": "nan"}',
        '{"step": 2, "a": 1, "b": -Infinity, "c": "-inf"}',
        '{"step": 3, "a": null, "nonfinite": ["a"], "b": 1e999, "c": 1' + "0" * 400 + "}",
        '{"step": 4, "a": null, "b": true, "c": "words"}',
    ]
    path.write_text("\n".join(lines) + "\n")
    series = read(path).series()
    assert points(series["a"]) == [(1.0, "nan"), (2.0, 1.0), (3.0, "nan")]  # a bare null says nothing
    assert plain(series["b"].value) == [math.inf, -math.inf, math.inf]
    assert plain(series["c"].value) == ["nan", -math.inf, math.inf]
    csv = tmp_path / "log.csv"
    csv.write_text("step,loss\n1,nan\n2,inf\n3,\n4,0.5\n")
    assert points(read(csv).series()["loss"]) == [(1.0, "nan"), (2.0, math.inf), (4.0, 0.5)]


@pytest.mark.behaviour("header-middle-csv-file")
def test_columns_that_appear_later_and_headers_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1, "loss": 2}\n{"step": 2, "loss": 1, "val": {"acc": 0.5}}\n')
    assert points(read(path).series()["val.acc"]) == [(2.0, 0.5)]
    csv = tmp_path / "log.csv"
    csv.write_text("step,loss\n1,2\nstep,loss\n2,1\nstep,acc,loss\n3,0.5,0.25\n")
    source = read(csv)
    assert points(source.series()["loss"]) == [(1.0, 2.0), (2.0, 1.0), (3.0, 0.25)]
    assert points(source.series()["acc"]) == [(3.0, 0.5)]
    assert source.problems() == []


@pytest.mark.parametrize("text", ["\ufeffstep;loss\r\n1;0.5\r\n", "step\tloss\n1\t0.5\n", '"step","loss"\n"1","0.5"\n'])
def test_csv_dialects(text: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode())
    assert points(read(path).series()["loss"]) == [(1.0, 0.5)]


def state(*rows: dict[str, float]) -> str:
    return json.dumps({"global_step": len(rows), "log_history": rows})


def test_a_trainer_state_replaced_at_every_save(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_text(state({"step": 1, "loss": 2.0}))
    source = read(path)
    path.write_text(state({"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0})[:40])  # caught half written
    read_on(source)
    assert points(source.series()["loss"]) == [(1.0, 2.0)]
    (problem,) = source.problems()
    assert "incomplete" in problem
    path.write_text(state({"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}))
    assert points(read_on(source).series()["loss"]) == [(1.0, 2.0), (2.0, 1.0)]
    assert source.problems() == []
    path.unlink()
    assert points(read_on(source).series()["loss"]) == [(1.0, 2.0), (2.0, 1.0)]


@pytest.mark.behaviour("empty-files-files-nul")
@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.json", "train.log", "events.out.tfevents.1.host"])
@pytest.mark.parametrize("content", [b"", b"\0" * 5000, b"\xde\xad\xbe\xef" * 1000 + b"\n", b"{}\n[]\n"])
def test_empty_files_and_garbage_open_and_hold_nothing(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    source = read(path)
    assert source.series() == {}
    assert all(problem.endswith((".", ".\n")) for problem in source.problems())


@pytest.mark.parametrize("name", FORMATS)
@given(st.lists(st.binary(max_size=60), max_size=4))
def test_no_bytes_raise_and_the_rows_around_them_stay(name: str, parts: list[bytes]) -> None:
    line = FORMATS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(line(1000) if name != "log.csv" else b"step,loss\n1000,1000.5\n")
        source = read(path)
        for part in parts:
            append(path, part)
            read_on(source)
        append(path, b"\n" + line(10**9))
        series = read_on(source).series()
    assert (10.0**9, 10.0**9 + 0.5) in points(series["loss"])


def test_no_more_is_read_than_was_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(map(FORMATS["log.jsonl"], range(5000))))
    source = read(path)
    read_bytes: list[int] = []
    plainly = ByteFollower._read

    def counting(self: ByteFollower, end: int) -> bytes:
        data = plainly(self, end)
        read_bytes.append(len(data))
        return data

    monkeypatch.setattr(ByteFollower, "_read", counting)
    append(path, FORMATS["log.jsonl"](5000))
    read_on(source)
    assert sum(read_bytes) == len(FORMATS["log.jsonl"](5000))


def test_a_file_that_cannot_be_read_now_is_a_problem_and_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(FORMATS["log.jsonl"](0))
    source = read(path)
    append(path, FORMATS["log.jsonl"](1))

    def refuse(self: ByteFollower, end: int) -> bytes:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(ByteFollower, "_read", refuse)
        assert source.poll()
        assert source.problems() == [f"{path} cannot be read now (Input/output error)."]
    assert points(read_on(source).series()["loss"]) == [(0.0, 0.5), (1.0, 1.5)]
    assert source.problems() == []


@pytest.mark.behaviour("byte-read-twice-run")
def test_of_64_logs_no_more_is_read_than_was_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = FORMATS["log.jsonl"]
    paths = [tmp_path / f"{number:02}.jsonl" for number in range(64)]
    for path in paths:
        path.write_bytes(b"".join(map(row, range(500))))
    watched = WatchedLogs(Logs([tmp_path]))
    watched.poll()
    assert [facts.rows for facts in watched.facts] == [500] * 64
    read_bytes: list[int] = []
    plainly = ByteFollower._read

    def counting(self: ByteFollower, end: int) -> bytes:
        data = plainly(self, end)
        read_bytes.append(len(data))
        return data

    monkeypatch.setattr(ByteFollower, "_read", counting)
    for path in paths[::2]:
        append(path, row(500))
    assert watched.poll()
    assert sum(read_bytes) == 32 * len(row(500))
    assert [facts.rows for facts in watched.facts] == [501, 500] * 32
    assert not watched.poll()
    assert sum(read_bytes) == 32 * len(row(500))


def test_a_closed_object_needs_no_newline_behind_it_and_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"m": 1}\n{"m": 2}\n{"m": 3}')
    source = read(path)
    assert source.series()["m"].value.tolist() == [1.0, 2.0, 3.0]
    assert source.problems() == []
    append(path, b'\r\n{"m": 4}')
    read_on(source)
    append(path, b'\n{"m": 5')
    read_on(source)
    assert source.series()["m"].value.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert source.problems() == ["Last line is incomplete (7 bytes): waiting for the rest."]


@pytest.mark.parametrize("name", ["log.jsonl", "log.txt"])
def test_lines_that_give_no_number_are_said(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text('{"note": "begun"}\n{"note": "over"}\n' if name == "log.jsonl" else "Epoch one\nloss is low\n")
    source = read(path)
    assert source.problems() == ["None of its 2 lines contains a number."]
    append(path, FORMATS[name](3))
    read_on(source)
    assert source.problems() == []


def test_a_log_that_is_gone_or_no_file_any_more_says_so_and_stays(tmp_path: Path) -> None:
    """A pipe in its place, which would wait for its writer for ever, is not opened."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(FORMATS["log.jsonl"](1))
    source = read(path)
    path.unlink()
    assert source.poll()
    assert source.problems() == [f"{path} is gone; what was read before is shown."]
    assert not source.poll()
    os.mkfifo(path)
    assert source.poll()
    assert source.problems() == [f"{path} is no longer a file; what was read before is shown."]
    path.unlink()
    path.write_bytes(FORMATS["log.jsonl"](2))
    read_on(source)
    assert points(source.series()["loss"]) == [(2.0, 2.5)]
    assert source.problems() == ["The file was truncated or rewritten; read again from its start."]
