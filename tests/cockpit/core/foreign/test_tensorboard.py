"""Event files as TensorFlow, PyTorch and others write them, whole, torn and damaged."""

from __future__ import annotations

import contextlib
import math
import random
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.core.foreign import tensorboard
from cockpit.core.foreign.kinds import open_logs
from cockpit.core.foreign.tensorboard import row_of_event
from cockpit.core.foreign.tfrecord import LARGEST, RecordSplitter, find_records, masked_crc
from tests.cockpit.core.foreign.event_files import (
    VERSION,
    crc32c,
    event,
    masked,
    message,
    record,
    simple,
    tensor,
    varint,
)
from tests.cockpit.core.foreign.reading import points, read, read_on


def test_the_crc_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value of its definition
    for data in (b"", b"\0" * 8, b"123456789", bytes(range(256))):
        assert struct.pack("<I", masked_crc(data)) == masked(data)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (simple("m", 0.5), 0.5),
        (simple("m", 0.0), 0.0),
        (simple("m", math.inf), math.inf),
        (tensor("m", 1, message(4, struct.pack("<f", 0.25))), 0.25),
        (tensor("m", 1, message(5, struct.pack("<f", 0.25))), 0.25),
        (tensor("m", 1, b"\x2d" + struct.pack("<f", 0.25)), 0.25),  # not packed
        (tensor("m", 2, message(4, struct.pack("<d", 1 / 3))), 1 / 3),
        (tensor("m", 2, message(6, struct.pack("<d", 1 / 3))), 1 / 3),
        (tensor("m", 3, message(4, struct.pack("<i", -7))), -7.0),
        (tensor("m", 3, message(7, varint(-7))), -7.0),
        (tensor("m", 9, message(10, varint(2**40))), 2.0**40),
        (tensor("m", 9, b"\x50" + varint(-2)), -2.0),
        (tensor("m", 14, message(4, struct.pack("<f", 1.5)[2:])), 1.5),  # bfloat16: a float's upper half
        (tensor("m", 19, message(4, struct.pack("<e", 1.5))), 1.5),
    ],
    ids=range(14),
)  # fmt: skip
def test_a_scalar_in_any_of_its_forms(value: bytes, expected: float) -> None:
    row = row_of_event(event(value, step=3, time=12.5))
    assert row is not None
    assert (dict(row.values), row.step, row.time) == ({"m": expected}, 3.0, 12.5)


@pytest.mark.parametrize(
    "value",
    [
        tensor("text", 7, message(8, b"hello")),
        tensor("histogram", 2, message(4, struct.pack("<6d", *range(6)))),
        message(1, b"picture") + message(4, b"png"),
        message(1, b"histo") + message(5, b"\x09" + bytes(8)),
    ],
    ids=["text", "tensor", "picture", "histogram"],
)
def test_what_is_no_scalar_is_left_out(value: bytes) -> None:
    assert row_of_event(event(value)) is None
    row = row_of_event(event(value, simple("m", 2.0)))
    assert row is not None
    assert row.values == {"m": 2.0}


def test_a_step_of_zero_is_not_written_and_nan_stays(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.host"
    events = [
        VERSION,
        event(simple("loss", 4.0)),
        event(simple("loss", math.nan), step=1),
        event(simple("loss", 2.0), step=2),
    ]
    path.write_bytes(b"".join(map(record, events)))
    assert points(read(path).series()["loss"]) == [(0.0, 4.0), (1.0, "nan"), (2.0, 2.0)]


@given(st.lists(st.binary(max_size=40), max_size=8), st.data())
def test_any_cut_of_the_bytes_gives_each_record_once(records: list[bytes], data: st.DataObject) -> None:
    content = b"".join(map(record, records))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    splitter = RecordSplitter()
    found: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(content)], strict=True):
        found += splitter.feed(content[start:end])
    assert found == records
    assert (splitter.damaged, splitter.unfinished) == (0, 0)


def test_a_torn_tail_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.host"
    whole, torn = (
        record(VERSION) + record(event(simple("loss", 1.0), step=1)),
        record(event(simple("loss", 2.0), step=2)),
    )
    path.write_bytes(whole + torn[:-3])
    source = read(path)
    assert points(source.series()["loss"]) == [(1.0, 1.0)]
    assert any("incomplete" in problem for problem in source.problems())
    path.write_bytes(whole + torn)
    assert points(read_on(source).series()["loss"]) == [(1.0, 1.0), (2.0, 2.0)]
    assert source.problems() == []


@pytest.mark.behaviour("damage-middle-costs-lines")
@pytest.mark.parametrize("size", [1, 40, 4000])
def test_damage_costs_the_records_it_hit_and_no_other(size: int, tmp_path: Path) -> None:
    records = [record(event(simple("loss", float(step)), step=step)) for step in range(1, 400)]
    content = bytearray(record(VERSION) + b"".join(records))
    start = len(content) // 2
    content[start : start + size] = random.Random(size).randbytes(size)
    path = tmp_path / "events.out.tfevents.1.host"
    path.write_bytes(bytes(content))
    source = read(path)
    kept = source.series()["loss"].step.tolist()
    lost = size // len(records[200]) + 3
    assert len(kept) >= len(records) - lost
    assert kept[-1] == 399
    assert [step for step in kept if float(step) != source.series()["loss"].value[kept.index(step)]] == []
    assert any("damaged" in problem for problem in source.problems())


def test_finding_a_record_checks_every_place_as_one_by_one() -> None:
    data = random.Random(1).randbytes(500) + record(b"abc") + bytes(50)
    slow = [place for place in range(len(data)) if masked(data[place : place + 8]) == data[place + 8 : place + 12]]
    assert find_records(data, 0) == slow == [500]
    assert find_records(data, 501) == []


@pytest.mark.parametrize("step", [1 << 20, 1000])
def test_a_graph_is_passed_over_unread(step: int) -> None:
    blob = record(bytes(LARGEST + 5))
    content = record(b"a") + blob + record(b"b")
    splitter = RecordSplitter()
    found = [one for start in range(0, len(content), step) for one in splitter.feed(content[start : start + step])]
    assert found == [b"a", b"b"]
    assert (splitter.skipped, splitter.damaged) == (1, 0)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_value_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        row_of_event(data)
    RecordSplitter().feed(data)


def test_events_that_are_no_protobuf_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.host"
    path.write_bytes(record(VERSION) + record(b"\xff" * 30) + record(event(simple("loss", 1.0), step=1)))
    (source,) = open_logs(path)
    assert points(read_on(source).series()["loss"]) == [(1.0, 1.0)]
    assert source.problems() == ["1 damaged records skipped."]


def test_an_event_of_more_values_than_any_program_writes_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300,000 values in one event, each a metric of its own, took seconds to read."""
    monkeypatch.setattr(tensorboard, "MOST_VALUES", 2)
    path = tmp_path / "events.out.tfevents.1.host"
    many = [simple(f"metric {number}", 1.0) for number in range(3)]
    path.write_bytes(record(VERSION) + record(event(*many, step=1)) + record(event(*many[:2], step=2)))
    (source,) = open_logs(path)
    assert {name: points(one) for name, one in read_on(source).series().items()} == {
        "metric 0": [(2.0, 1.0)], "metric 1": [(2.0, 1.0)]
    }  # fmt: skip
    assert source.problems() == ["1 damaged records skipped: more than 2 values in one event."]
