"""Logs that are damaged, absurd or made to hurt: they end soon, in numbers or in a sentence."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from cockpit.core.foreign import tfrecord
from cockpit.core.foreign.importing import import_log
from cockpit.core.foreign.kinds import open_logs
from cockpit.core.foreign.tfrecord import RecordSplitter
from cockpit.core.foreign.unpacking import Unpacker
from engines.contract.steps import read_series
from engines.runs.state import RunReader
from tests.cockpit.core.foreign.event_files import event, masked, record, simple
from tests.cockpit.core.foreign.reading import points, read, read_on


def header_without_data() -> bytes:
    """A header whose record is there and does not match its sum."""
    length = struct.pack("<Q", 1)
    return length + masked(length) + b"x" + bytes(4)


DAMAGED = {
    "alternating": lambda n: (header_without_data() + b"?") * n,
    "no header at all": lambda n: b"\0" * 18 * n,
    "headers one byte apart": lambda n: (b"?" + header_without_data() + b"??") * n,
    "a record after each piece of damage": lambda n: (b"?" * 5 + record(event(simple("a", 1.0), step=1))) * n,
}


@pytest.mark.behaviour("damage-is-linear")
@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_searched_once_however_often_it_comes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the bytes are twice the places that are looked at."""
    looked, real = 0, tfrecord.find_records

    def counted(data: bytes, start: int) -> list[int]:
        nonlocal looked
        looked += len(data) - start
        return real(data, start)

    def work(repeats: int) -> int:
        nonlocal looked
        looked = 0
        RecordSplitter().feed(DAMAGED[name](repeats))
        return looked

    monkeypatch.setattr(tfrecord, "find_records", counted)
    assert 0 < work(4000) <= 2.1 * work(2000)


def test_records_after_damage_are_found_each() -> None:
    one = record(event(simple("a", 1.0), step=1))
    splitter = RecordSplitter()
    assert splitter.feed((b"?" * 5 + one) * 50) == [one[12:-4]] * 50
    assert splitter.damaged == 50


@pytest.mark.behaviour("damage-is-linear")
def test_many_small_members_are_not_copied_for_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the members are twice the bytes that zlib is given, however small they are."""
    given, real = 0, zlib.decompressobj

    class Counting:
        def __init__(self, wbits: int) -> None:
            self._real = real(wbits=wbits)

        def __getattr__(self, name: str) -> object:
            return getattr(self._real, name)

        def decompress(self, data: bytes, most: int) -> bytes:
            nonlocal given
            given += len(data)
            return self._real.decompress(data, most)

    def work(members: int) -> int:
        nonlocal given
        given = 0
        lines = [b"step: %d loss: 1\n" % step for step in range(members)]
        assert Unpacker().feed(b"".join(map(gzip.compress, lines))) == b"".join(lines)
        return given

    monkeypatch.setattr("cockpit.core.foreign.unpacking.zlib.decompressobj", Counting)
    assert work(4000) <= 2.1 * work(2000)


@pytest.mark.behaviour("damage-is-linear")
def test_many_metrics_share_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading n metrics of a row each copies no column of n places for each of them."""
    copied, real = 0, np.array

    def counted(values: Sequence[float], *rest: object, **more: object) -> object:
        nonlocal copied
        copied += len(values)
        return real(values, *rest, **more)  # type: ignore[call-overload]

    path = tmp_path / "log.jsonl"
    path.write_text("".join(f'{{"step": {step}, "m{step}": {step}}}\n' for step in range(5000)))
    source = read(path)
    monkeypatch.setattr(np, "array", counted)
    series = source.series()
    assert 5000 <= copied <= 10 * 5000
    assert [points(series[f"m{step}"]) for step in (0, 7, 4999)] == [[(n, n)] for n in (0.0, 7.0, 4999.0)]


ABSURD = {
    "an MLflow step of 82 digits": ("loss", f"1600000000000 0.5 1\n1600000000001 0.3 {'9' * 82}\n", [(1.0, 0.5)]),
    "an MLflow step of 4,400 digits": ("loss", f"1600000000000 0.5 1\n1600000000001 0.3 {'9' * 4400}\n", [(1.0, 0.5)]),
    "a JSON number of 5,000 digits": ("log.jsonl", f'{{"loss":{"9" * 5000}}}\n{{"step":2,"loss":1}}\n', [(2.0, 1.0)]),
    "a hex number of 4,500 digits": ("log.txt", f"step: 0x{'f' * 4500} loss: 3\nstep: 2 loss: 1\n", [(2.0, 1.0)]),
    "a step of 4,400 digits": ("log.txt", f"step: {'9' * 4400} loss: 3\nstep: 2 loss: 1\n", [(2.0, 1.0)]),
}  # fmt: skip


@pytest.mark.behaviour("absurd-numbers-cost-their-row")
@pytest.mark.parametrize("name", ABSURD)
def test_an_absurd_number_costs_its_own_row_alone(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    file, text, kept = ABSURD[name]
    (tmp_path / file).write_text(text)
    source = read(tmp_path / file)
    assert points(source.series()["loss"])[-1:] == kept
    (again,) = open_logs(tmp_path / file)
    steps, values = read_series(import_log(again).steps, "loss")
    assert (steps[-1], values[-1]) == kept[0]


@pytest.mark.behaviour("absurd-numbers-cost-their-row")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loss: 5\nepoch 4 loss: 3\nepoch 1, loss: 0\n", [5, 0]),
        ("loss: 5\nepoch 4 loss: 3\nepoch 5 loss: 2\nepoch 4 loss: 1\nepoch 5 loss: 0\n", [5, 1, 0]),
        ("loss: 5\nloss: 6\nepoch 2 loss: 3\nepoch 1 loss: 2\n", [5, 6, 2]),
        ("step,loss\n1,2\n1e400,3\n3,1\n", [2, 3, 1]),
    ],
)
def test_a_value_before_any_epoch_stays_where_epochs_go_back(
    text: str, expected: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    path = tmp_path / ("log.csv" if "," in text.splitlines()[0] else "log.txt")
    path.write_text(text)
    source = read(path)
    assert source.series()["loss"].value.tolist() == expected
    (again,) = open_logs(path)
    run = import_log(read_on(again))
    history = RunReader(run)
    history.poll()
    assert history.history.epochs
