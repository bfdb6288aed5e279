"""A list of values a metric in one JSON object: `History.history` of Keras, `evals_result` of XGBoost and LightGBM."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from cockpit.core.foreign.places import kind_and_rank
from cockpit.core.foreign.rows import Row, as_number, flat, row_of

_BEGINS = re.compile(rb'\s*\{\s*"[^"]*"\s*:\s*(\{\s*"[^"]*"\s*:\s*)?\[\s*("?[-+.\d]|NaN|-?Infinity|null|"nan")')


def begins_history(head: bytes) -> bool:
    """Whether a file begins with a list of numbers under a name, and is no line of JSONL: such a line has numbers."""
    if not _BEGINS.match(head):
        return False
    try:
        document = json.loads(head.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return b"\n{" not in head.strip()  # too long to be seen whole
    return all(as_number(value) is None for value in document.values())


def rows_of_history(document: Any) -> Iterator[Row]:
    """A row an epoch, counted from 0 as Keras counts them where no list tells them. Raises ValueError."""
    if not isinstance(document, dict):
        raise ValueError("expected an object with lists")
    lists = {name.removeprefix("history."): value for name, value in flat(document).items() if isinstance(value, list)}
    columns = {name: values for name, values in lists.items() if any(as_number(value) is not None for value in values)}
    told = any(kind_and_rank(name) for name in columns)
    for epoch, values in enumerate(zip_longest(*columns.values())):
        yield row_of(({} if told else {"epoch": epoch}) | dict(zip(columns, values, strict=True)))
