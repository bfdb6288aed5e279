"""TensorBoard event files: the scalars in them, as simple values or as tensors of one number.

Field numbers are those of tensorflow's event.proto, summary.proto, tensor.proto and types.proto.
"""

from __future__ import annotations

import functools
import math
import struct

import numpy as np

from cockpit.core.foreign import wire
from cockpit.core.foreign.reader import Misfit
from cockpit.core.foreign.records import RecordReader
from cockpit.core.foreign.rows import Row
from cockpit.core.foreign.tfrecord import RecordSplitter

_TYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 19: "<f2", 22: "<u4", 23: "<u8"}
"""numpy's name of each DataType that a scalar may have, but for bfloat16."""
_BFLOAT16 = 14
MOST_VALUES = 10_000
"""Scalars of one event; programs write one, or all of a step: more take seconds to read and no screen shows them."""
_FLOAT_VALUES, _DOUBLE_VALUES, _INT_VALUES, _INT64_VALUES = 5, 6, 7, 10


def row_of_event(event: bytes) -> Row | None:
    """The scalars of an Event, None for an event without any. Raises ValueError."""
    time, step = math.nan, 0  # a step of 0 is not written
    values: dict[str, float] = {}
    for number, kind, value in wire.fields(event):
        if number == 1 and kind == wire.FIXED64 and isinstance(value, bytes):
            (time,) = struct.unpack("<d", value)
        elif number == 2 and isinstance(value, int):
            step = wire.signed(value)
        elif number == 5 and kind == wire.BYTES and isinstance(value, bytes):
            for inner, inner_kind, summary_value in wire.fields(value):
                if inner == 1 and inner_kind == wire.BYTES and isinstance(summary_value, bytes):
                    values |= _scalar(summary_value)
                    if len(values) > MOST_VALUES:
                        raise Misfit(f"more than {MOST_VALUES:,} values in one event")
    return Row(values, step=float(step), time=time) if values else None


def _scalar(summary_value: bytes) -> dict[str, float]:
    """Tag and number of a Summary.Value, nothing for histograms, pictures, text."""
    tag, found = "", None
    for number, kind, value in wire.fields(summary_value):
        if not isinstance(value, bytes):
            continue
        if number == 1 and kind == wire.BYTES:
            tag = value.decode("utf-8", "replace")
        elif number == 2 and kind == wire.FIXED32:
            (found,) = struct.unpack("<f", value)
        elif number == 8 and kind == wire.BYTES:
            found = _tensor_scalar(value)
    return {} if found is None else {tag: found}


def _tensor_scalar(tensor: bytes) -> float | None:
    """The one number of a TensorProto, None for one that holds several, or none."""
    dtype = 0
    numbers: list[float] = []
    content = b""
    for number, kind, value in wire.fields(tensor):
        if number == 1 and isinstance(value, int):
            dtype = value
        elif number == 4 and isinstance(value, bytes):
            content = value
        elif number in (_FLOAT_VALUES, _DOUBLE_VALUES) and isinstance(value, bytes):
            packed_as = "<f4" if number == _FLOAT_VALUES else "<f8"
            numbers += np.frombuffer(value[: len(value) // 4 * 4], packed_as).astype(float).tolist()
        elif number in (_INT_VALUES, _INT64_VALUES):
            numbers += _integers(value) if kind in (wire.BYTES, wire.VARINT) else []
    if content and dtype == _BFLOAT16:
        numbers = (np.frombuffer(content, "<u2").astype(np.uint32) << 16).view(np.float32).astype(float).tolist()
    elif content and dtype in _TYPES:
        numbers = np.frombuffer(content, _TYPES[dtype]).astype(float).tolist()
    return numbers[0] if len(numbers) == 1 else None


def _integers(value: int | bytes) -> list[float]:
    """Varints, packed or alone."""
    if isinstance(value, int):
        return [float(wire.signed(value))]
    found, place = [], 0
    while place < len(value):
        number, place = wire.varint(value, place)
        found.append(float(wire.signed(number)))
    return found


TensorBoardReader = functools.partial(RecordReader, make_splitter=RecordSplitter, row_of=row_of_event)
