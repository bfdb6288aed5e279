"""Damaged inputs that keep their form: values, fields and lengths changed in files that still parse.

Changed bytes rarely get beyond a reader's first check; most of these do, and reach what it makes of the content.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from numpy.typing import NDArray

Shaped = Callable[[DrawFn, bytes], bytes]
"""A seed with some of its content changed."""
NUMBERS = (
    0, 1, -1, 2, 0.5, -0.0, 7, 29.97, 180, 180.01, -180, 255, 256, 65536, 2**31 - 1, 2**31, 2**53, 2**53 + 1, 2**63 - 1,
    2**64, 10**400, 1e-320, 1e9, 1e15, 1e38, 1e300, -1e300, float("nan"), float("inf"),
)  # fmt: skip
TEXTS = (
    "", "x", "0", "true", "NaN", "é" * 40, "\ud800", "\0", "\x1b[2J", "[@click=app.quit]x[/]", "../../x", "a\nb",
    "\u202e", "9" * 5000, "None", "+00:00", "key.keyboard.e",
)  # fmt: skip
KINDS: tuple[Any, ...] = (None, True, 0, -1, 2.5, "", "x", [], {}, [0], {"a": 1}, [[[[[[[[]]]]]]]])
RAW = b"{U\x03raw[$U#l"
"""What a Slippi replay begins with; the length of its events follows in four bytes."""


def lines(draw: DrawFn, data: bytes) -> bytes:
    """A JSON object per line: fields of some lines changed, lines dropped, repeated, exchanged or torn."""
    rows = [row for row in data.split(b"\n") if row.strip()]
    for _ in range(draw(st.integers(1, 4))):
        at, other = (draw(st.integers(0, len(rows) - 1)) for _ in range(2))
        match draw(st.sampled_from(("field",) * 6 + ("drop", "repeat", "exchange", "torn"))):
            case "field":
                rows[at] = document(draw, rows[at])
            case "drop" if len(rows) > 1:
                del rows[at]
            case "repeat":
                rows[at:at] = rows[at : at + draw(st.integers(1, 3))]
            case "exchange":
                rows[at], rows[other] = rows[other], rows[at]
            case "torn":
                return b"\n".join(rows)[: -draw(st.integers(1, 60))]
    return b"\n".join(rows) + draw(st.sampled_from((b"\n", b"\n", b"", b"\r\n")))


def document(draw: DrawFn, data: bytes) -> bytes:
    """One JSON document with one to three of its values changed, written in any of JSON's ways."""
    try:
        tree = json.loads(data)
    except ValueError:  # the seed was cut
        return data
    for _ in range(draw(st.integers(1, 3))):
        tree = changed(draw, tree)
    dense = draw(st.booleans())
    text = json.dumps(tree, ensure_ascii=draw(st.booleans()), separators=(",", ":") if dense else None)
    return text.encode("utf-8", "surrogatepass")


def changed(draw: DrawFn, tree: Any) -> Any:
    """The tree with one value changed: seven times in eight to one like it, else to one of another kind."""
    if isinstance(tree, dict | list) and tree and draw(st.integers(0, 9)):
        places = list(tree) if isinstance(tree, dict) else range(len(tree))
        place = places[draw(st.integers(0, len(places) - 1))]
        inside = changed(draw, tree[place])
        if isinstance(tree, dict):
            return {**tree, place: inside}
        return [*tree[:place], inside, *tree[place + 1 :]]
    return _like(draw, tree) if draw(st.integers(0, 7)) else draw(st.sampled_from(KINDS))


def _like(draw: DrawFn, value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return draw(st.one_of(st.integers(value - 3, value + 3), st.sampled_from(NUMBERS)))
        case float():
            return draw(st.one_of(st.floats(-4, 4).map(lambda factor: factor * value), st.sampled_from(NUMBERS)))
        case str():
            return draw(st.one_of(st.sampled_from(TEXTS), st.text(max_size=8), st.just(value * 2)))
        case list():
            place = draw(st.integers(0, max(0, len(value) - 1)))
            return draw(st.sampled_from((value[::-1], value * 2, value[:place], value[:place] + value[place + 1 :])))
        case dict():
            dropped = draw(st.sampled_from(sorted(value, key=str))) if value else ""
            rest = {key: inside for key, inside in value.items() if key != dropped}
            return draw(st.sampled_from((rest, {**value, "unknown": 1}, dict(reversed(value.items())))))
        case np.ndarray():
            return _array(draw, value)
        case _:
            return draw(st.sampled_from((0, "", value)))


def arrays(draw: DrawFn, data: bytes) -> bytes:
    """An `.npz` with one or two of its arrays changed, or all of them cut to as many rows."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        content = {name: archive[name] for name in archive.files}
    for _ in range(draw(st.integers(1, 2))):
        content = _arrays(draw, content)
    file = io.BytesIO()
    packed = draw(st.booleans()) or len(data) > 100_000
    (np.savez_compressed if packed else np.savez)(file, **content)
    return file.getvalue()


def _arrays(draw: DrawFn, content: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    name = draw(st.sampled_from(sorted(content)))
    match draw(st.sampled_from(("one",) * 6 + ("cut", "cut", "drop", "more"))):
        case "one":
            return {**content, name: _array(draw, content[name])}
        case "cut":
            longest = max((len(array) for array in content.values() if array.ndim), default=0)
            rows = draw(st.integers(0, longest))
            return {key: array[:rows] if array.shape[:1] == (longest,) else array for key, array in content.items()}
        case "drop" if len(content) > 1:
            return {key: array for key, array in content.items() if key != name}
    return {**content, draw(st.sampled_from(("unknown", "../x", "é"))): np.arange(3)}


def _array(draw: DrawFn, array: NDArray[Any]) -> NDArray[Any]:
    """With a few values, the type, the order in memory or the shape changed; the type and shape seldom."""
    match draw(st.sampled_from(("values",) * 6 + ("order", "order", "type", "shape"))):
        case "values" if array.size and array.dtype.kind in "fiub":
            new = np.array(array)
            for _ in range(draw(st.integers(1, 4))):
                with np.errstate(all="ignore"):
                    new.flat[draw(st.integers(0, array.size - 1))] = _number(draw, array.dtype)
            return new
        case "values" if array.dtype.kind == "U":
            return np.full(array.shape, draw(st.sampled_from(TEXTS[:-1])).replace("\ud800", "?"))
        case "type" if array.dtype.kind in "fiub":
            with np.errstate(all="ignore"):
                return array.astype(draw(st.sampled_from(("f8", ">f4", "f2", "i8", "u1", "?", "c8", "S3"))))
        case "order":
            return np.asfortranarray(array)
        case "shape":
            return draw(st.sampled_from((array[None], array.ravel(), array.T, array[:0] if array.ndim else array)))
    return array


def _number(draw: DrawFn, dtype: np.dtype[Any]) -> Any:
    number = draw(
        st.one_of(st.floats(-2, 2), st.sampled_from([one for one in NUMBERS if abs(one) < 10**300 or one != one]))
    )
    return number if dtype.kind == "f" else np.array(number, "f8").astype(dtype)


def checkpoint(draw: DrawFn, data: bytes) -> bytes:
    """A checkpoint with one to three values of its tree changed, tensors among them."""
    import torch

    tree = _numpy(torch.load(io.BytesIO(data), weights_only=True))
    for _ in range(draw(st.integers(1, 3))):
        tree = changed(draw, tree)
    file = io.BytesIO()
    torch.save(_torch(tree), file)
    return file.getvalue()


def _numpy(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _numpy(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_numpy(value) for value in tree]
    return tree.numpy() if hasattr(tree, "numpy") else tree


def _torch(tree: Any) -> Any:
    import torch

    if isinstance(tree, dict):
        return {key: _torch(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_torch(value) for value in tree]
    if not isinstance(tree, np.ndarray):
        return tree
    plain = np.ascontiguousarray(tree).astype(tree.dtype.newbyteorder("="))
    return torch.from_numpy(plain) if plain.dtype.kind in "fiubc" else str(tree)


def table(draw: DrawFn, data: bytes) -> bytes:
    """A table of melee, packed or not, with one to three of its columns changed."""
    import tempfile
    from pathlib import Path

    import pyarrow as pa

    from tests.projects.melee.tables import columns, write_table

    content = columns(draw(st.integers(1, 60)), draw(st.integers(0, 3)), speeds=draw(st.booleans()))
    for _ in range(draw(st.integers(1, 3))):
        content = _columns(draw, content)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        try:
            write_table(path, content, packed=draw(st.booleans()))
        except (pa.ArrowException, ValueError, TypeError):  # no table has columns of several lengths or dimensions
            return data
        return path.read_bytes()


def _columns(draw: DrawFn, content: dict[str, Any]) -> dict[str, Any]:
    name = draw(st.sampled_from(sorted(content)))
    inside = content[name]
    if isinstance(inside, dict) and draw(st.integers(0, 9)):
        return {**content, name: _columns(draw, inside)}
    if draw(st.integers(0, 9)) == 0:
        return {key: value for key, value in content.items() if key != name} or content
    return {**content, name: inside if isinstance(inside, dict) else _array(draw, inside)}


def replay(draw: DrawFn, data: bytes) -> bytes:
    """A Slippi replay: bytes of its events changed in their places, or the last events gone and their length right."""
    size = int.from_bytes(data[len(RAW) : len(RAW) + 4], "big") if data.startswith(RAW) else 0
    begin = len(RAW) + 4
    end = min(begin + size, len(data))
    if end - begin < 1000:
        return data
    if draw(st.integers(0, 3)) == 0:
        kept = draw(st.integers(900, end - begin))
        return RAW + kept.to_bytes(4, "big") + data[begin : begin + kept] + data[end:]
    bytes_ = bytearray(data)
    for at in sorted(_places(draw, begin + 900, end - 1)):
        bytes_[at] = draw(st.integers(0, 255))
    return bytes(bytes_)


def _places(draw: DrawFn, first: int, last: int) -> Iterator[int]:
    return iter(draw(st.lists(st.integers(first, last), min_size=1, max_size=8)))
