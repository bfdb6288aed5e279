"""Logs in JSON: an object a line, a list of objects, the Hugging Face Trainer's `trainer_state.json`."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any

import msgspec

from cockpit.core.foreign.rows import Row, row_of


def parse_line(line: bytes) -> Row:
    """The row of one line of JSONL; bytes that are no UTF-8 become U+FFFD. Raises ValueError."""
    record = _decoded(line)
    if not isinstance(record, dict):
        raise ValueError("not an object")
    return row_of(record)


def _decoded(line: bytes) -> Any:
    """What a line holds; four times as fast where it is JSON by the letter, which knows no NaN."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return json.loads(line.removeprefix(BOM_UTF8).decode("utf-8", "replace"))


def rows_of_list(document: Any) -> Iterator[Row]:
    """Raises ValueError for anything but a list of objects."""
    if not isinstance(document, list) or not all(isinstance(record, dict) for record in document):
        raise ValueError("expected a list of objects")
    return map(row_of, document)


def rows_of_trainer_state(document: Any) -> Iterator[Row]:
    """The rows of `log_history`. Raises ValueError."""
    if not isinstance(document, dict) or "log_history" not in document:
        raise ValueError("expected an object with a log_history")
    return rows_of_list(document["log_history"])


def is_object(line: bytes) -> bool:
    """Whether a line is one whole JSON object."""
    try:
        return isinstance(_decoded(line), dict)
    except (ValueError, RecursionError):
        return False


def is_closed(line: bytes) -> bool:
    """Whether a line is an object to its end: one that is half written lacks its last brace."""
    return line.rstrip().endswith(b"}") and is_object(line)
