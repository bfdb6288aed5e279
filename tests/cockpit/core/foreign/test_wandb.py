"""W&B's own files, written here field by field: blocks, fragments and sums as its data store makes them."""

from __future__ import annotations

import json
import math
import struct
import zlib
from pathlib import Path

import pytest

from cockpit.core.foreign.kinds import open_logs
from tests.cockpit.core.foreign.event_files import message, varint
from tests.cockpit.core.foreign.reading import points, read, read_on

HEADER = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
BLOCK = 32768


class Store:
    """Appends records to a file: each as one fragment, or as several where a block ends within it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(HEADER)
        self.at = len(HEADER)

    def write(self, record: bytes) -> None:
        out, first = b"", True
        while first or record:
            left = BLOCK - self.at % BLOCK
            if left < 7:
                out, self.at = out + bytes(left), self.at + left
                continue
            part, record = record[: left - 7], record[left - 7 :]
            kind = bytes([(1 if first else 4) if not record else (2 if first else 3)])
            out += struct.pack("<IH", zlib.crc32(kind + part), len(part)) + kind + part
            self.at += 7 + len(part)
            first = False
        with open(self.path, "ab") as file:
            file.write(out)

    def log(self, step: int, **values: object) -> None:
        """A step of history, as `run.log` writes it; a `__` in a name is a dot."""
        items = {"_step": step, "_timestamp": 1767225600.5 + step} | values
        history = b"".join(
            message(1, b"".join(message(2, part.encode()) for part in name.split("__")) + value_of(value))
            for name, value in items.items()
        )
        self.write(b"\x08" + varint(step) + message(2, history + message(2, b"\x08" + varint(step))))


def value_of(value: object) -> bytes:
    text = json.dumps(value).encode()
    return varint(16 << 3 | 2) + varint(len(text)) + text


@pytest.mark.behaviour("programs-field-write-print")
def test_a_run_is_followed_step_by_step(tmp_path: Path) -> None:
    store = Store(tmp_path / "run-abc.wandb")
    store.write(message(17, b"a run record"))
    for step in range(3):
        store.log(step, loss=4 / (1 + step), val__acc=0.5 * step, note="text")
    for notes in ("debug-internal.log", "wandb-summary.json"):  # of W&B on itself
        (tmp_path / notes).write_text('{"time": "2026-01-01T00:00:00Z", "level": "INFO", "records": 3}\n')
    (source,) = open_logs(tmp_path)
    assert source.kind == "W&B run"
    assert points(read_on(source).series()["val.acc"]) == [(0.0, 0.0), (1.0, 0.5), (2.0, 1.0)]
    before = store.path.read_bytes()
    store.log(3, loss=math.nan, image={"_type": "image-file", "size": 12}, setting={"a": 3})
    whole = store.path.read_bytes()
    store.path.write_bytes(whole[: len(before) + 20])  # a record that is half written waits for its end
    assert len(read_on(source).series()["loss"].value) == 3
    assert any("incomplete" in problem for problem in source.problems())
    store.path.write_bytes(whole)
    series = read_on(source).series()
    assert points(series["loss"]) == [(0.0, 4.0), (1.0, 2.0), (2.0, 4 / 3), (3.0, "nan")]
    assert points(series["loss"], "time")[0] == (1767225600.5, 4.0)
    assert list(series) == ["loss", "val.acc", "setting.a"]
    assert source.problems() == []


@pytest.mark.parametrize("start", [70, BLOCK - 3, BLOCK + 12])
def test_damage_costs_its_block_and_is_said(start: int, tmp_path: Path) -> None:
    """Records of several blocks and many in one; where a sum is wrong the next block is read."""
    store = Store(tmp_path / "run-abc.wandb")
    places = []
    for step in range(300):
        places.append(store.at)
        store.log(step, loss=float(step), note="x" * (70_000 if step == 150 else 400))
    everything = [(float(step), float(step)) for step in range(300)]
    assert points(read(store.path).series()["loss"]) == everything
    data = bytearray(store.path.read_bytes())
    data[start : start + 40] = b"\xee" * 40
    store.path.write_bytes(data)
    source = read(store.path)
    found = points(source.series()["loss"])
    end = (start + 39) // BLOCK * BLOCK + BLOCK  # all that lies, or goes on, in the blocks that were hit may be lost
    begin = start // BLOCK * BLOCK
    untouched = [
        (float(step), float(step))
        for step, (at, behind) in enumerate(zip(places, [*places[1:], store.at], strict=True))
        if behind <= begin or at >= end
    ]
    assert set(untouched) <= set(found) < set(everything)
    assert "damaged records skipped" in source.problems()[0]
