"""Damaged inputs made of good ones: bytes changed, cut, repeated, spliced."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.faults.shaped import Shaped

LARGEST = 1 << 20
"""Bytes of an input."""
WORDS = (
    b"", b"\0", b"\xff" * 8, b"-1", b"0", b"1e999", b"-1e-400", b"NaN", b"Infinity", b"null", b"true", b"[]", b"{}",
    b'""',
    b"9223372036854775807", b"9223372036854775808", b"1" * 400, b"0.1" + b"0" * 400, b"\xc3\x28", b"\xed\xa0\x80",
    b"\\ud800", b"\x1b[2J", b"[@click=app.quit]x[/]", b"../../etc/passwd",
    b"\n", b"\r", b",", b":", b"\t", b"{", b"[", b'"',
    b"\x7f\xff\xff\xff", b"\x00\x00\x00\x80", b"\xff\xff\xff\xff\xff\xff\xff\x7f", b"[" * 2000, b"{\"a\":" * 2000,
    b"*a", b"&a ", b"!!python/object:os.system ", b"<<: ", b"? ", b"0x" + b"f" * 300,
)  # fmt: skip


class Seeds(list[bytes]):
    """Good inputs; hypothesis would print all of them."""

    def __repr__(self) -> str:
        return f"{len(self)} seeds"


@st.composite
def mutated(draw: DrawFn, seeds: Seeds) -> bytes:
    """One of the seeds after one to four changes."""
    return _changed(draw, _one_of(draw, seeds), seeds)


def _one_of(draw: DrawFn, seeds: Sequence[bytes]) -> bytes:
    return seeds[draw(st.integers(0, len(seeds) - 1))]


@st.composite
def repacked(draw: DrawFn, archives: Seeds) -> bytes:
    """A zip archive with one member changed, or gone, and every checksum right."""
    with zipfile.ZipFile(io.BytesIO(_one_of(draw, archives))) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = draw(st.sampled_from(sorted(members)))
    content = members.pop(name)
    if draw(st.integers(0, 9)):
        head = len(content) if draw(st.booleans()) else min(len(content), 128)  # of an array: what says its shape
        members[name] = _changed(draw, content[:head], list(members.values()) or [content]) + content[head:]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def _changed(draw: DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(("flip", "word", "number", "cut", "drop", "repeat", "splice"))):
            case "flip":
                bits = draw(st.binary(min_size=1, max_size=4))
                data = data[:at] + bytes(a ^ b for a, b in zip(data[at:], bits, strict=False)) + data[at + len(bits) :]
            case "word":
                data = data[:at] + draw(st.sampled_from(WORDS)) + data[at + draw(st.integers(0, 8)) :]
            case "number":
                data = _number(data, at, draw(st.sampled_from(WORDS)))
            case "cut":
                data = data[:at]
            case "drop":
                data = data[:at] + data[at + draw(st.integers(1, 200)) :]
            case "repeat":
                part = data[at : at + draw(st.integers(1, 200))]
                data = data[:at] + part * draw(st.sampled_from((2, 3, 20, 500))) + data[at:]
            case "splice":
                other = _one_of(draw, seeds)
                data = data[:at] + other[draw(st.integers(0, len(other))) :]
    return data[:LARGEST]


def _number(data: bytes, at: int, word: bytes) -> bytes:
    """`word` in the place of the next decimal number."""
    digits = b"0123456789.-+e"
    start = next((k for k in range(at, len(data)) if data[k : k + 1].isdigit()), len(data))
    stop = next((k for k in range(start, len(data)) if data[k : k + 1] not in [bytes([d]) for d in digits]), len(data))
    return data[:start] + word + data[stop:]


@st.composite
def in_shape(draw: DrawFn, seeds: Seeds, change: Shaped) -> bytes:
    """One of the seeds after a change of its content."""
    return change(draw, _one_of(draw, seeds))[:LARGEST]


def inputs(good: Sequence[bytes], change: Shaped | None = None) -> SearchStrategy[bytes]:
    """Damaged seeds and now and then random bytes; with `change` most come of that."""
    seeds = Seeds(good)
    archives = Seeds(seed for seed in seeds if zipfile.is_zipfile(io.BytesIO(seed)))
    ways = [mutated(seeds)] * 3 + [repacked(archives)] * (3 if archives else 0) + [st.binary(max_size=300)]
    if change is not None:
        ways = [in_shape(seeds, change)] * (4 * len(ways)) + ways  # first, since hypothesis prefers what is
    return st.integers(0, len(ways) - 1).flatmap(ways.__getitem__)  # one_of counts a strategy once
