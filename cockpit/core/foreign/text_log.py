"""Text logs of `name:value` words behind a step: `s:12 trl:3.4` (llm.c), `step:1/9 val_loss:4.8` (modded-nanogpt)."""

from __future__ import annotations

import re

from cockpit.core.foreign.rows import Row

_STEP = re.compile(r"(?:s|step):(\d+)(?:/\d+)?(?:\s+|$)")
_WORD = re.compile(
    r"(?P<name>[A-Za-z_][\w./-]*):(?P<value>[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+|nan|inf))[a-zA-Z%]*", re.IGNORECASE
)


def parse_line(line: bytes) -> Row | None:
    """A step's numbers, units (`320.50ms`) left out; None for prose. Raises ValueError for a step without numbers."""
    text = line.decode("utf-8", "replace").strip()
    step = _STEP.match(text)
    if step is None:
        return None
    words = [_WORD.fullmatch(word) for word in text[step.end() :].split()]
    values = {word["name"]: float(word["value"]) for word in words if word is not None}
    if not values or None in words:
        raise ValueError("expected name:value")
    return Row(values, step=float(step[1]))
