"""Text that programs print for people: lines of numbers under names, headings above them, tables.

Steps are named by the line itself, or by the heading above it (`Epoch 3/10`, `Learning iteration 7/1500`).
"""

from __future__ import annotations

import math
import re

from cockpit.core.foreign.console_line import tells_results
from cockpit.core.foreign.line_shapes import LONGEST, LineShapes
from cockpit.core.foreign.line_start import array_in
from cockpit.core.foreign.rows import Row, row_of

_STEP = re.compile(r"(?:s|step):(\d+)(?:/\d+)?(?:\s+|$)")
_WORD = re.compile(
    r"(?P<name>[A-Za-z_][\w./-]*):(?P<value>[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+|nan|inf))[a-zA-Z%]*", re.IGNORECASE
)
_CELLS = re.compile(r"\|\s*(?P<name>[^|]*?)\s*\|\s*(?P<value>[^|]*?)\s*\|")
_RULE = re.compile(r"-{8,}")


class TextParser:
    """Parses a log line after line."""

    def __init__(self) -> None:
        self._lines = LineShapes()
        self._placed = False
        """Whether any row had a step: what follows without one then comes after it."""
        self._heading: Row | None = None
        """The place that the newest heading names, as long as no line had a step of its own since."""
        self._epoch = self._result_epoch = math.nan
        """Of the newest heading, and of the newest line with values and no step."""
        self._table: dict[str, str] = {}
        self._section = ""
        self._arrays = 0
        self._first_array = ("", "")

    def __call__(self, line: bytes) -> Row | None:
        """A line's row, or that of the table it ends; None for prose. Raises ValueError for a step without numbers."""
        text = line.decode("utf-8", "replace").strip()
        if step := _STEP.match(text):
            return self._of_words(step, text)
        if cells := _CELLS.fullmatch(text):
            self._add_cells(cells["name"], cells["value"])
            return None
        if self._table and _RULE.fullmatch(text):
            row, self._table, self._section = row_of(self._table), {}, ""
            return row
        if len(text) <= LONGEST and (array := array_in(text)):
            self._first_array = self._first_array if self._arrays else array
            self._arrays += 1
        return self._at_its_place(self._lines.read(text))

    @property
    def left_out(self) -> str:
        """A sentence on lines with arrays, which hold no number for a chart; empty where there is none."""
        if not self._arrays:
            return ""
        name, value = self._first_array
        lines = "1 line has an array" if self._arrays == 1 else f"{self._arrays} lines have arrays"
        return f"{lines} of several numbers, left out: the first is “{value[:20]}” in {name}."

    def _of_words(self, step: re.Match[str], text: str) -> Row:
        """`s:12 trl:3.4` (llm.c), `step:1/9 val_loss:4.8` (modded-nanogpt): words and nothing else."""
        words = [_WORD.fullmatch(word) for word in text[step.end() :].split()]
        values = {word["name"]: float(word["value"]) for word in words if word is not None}
        row = Row(values) if values and None not in words else self._lines.read(text[step.end() :])
        if not row.values:
            raise ValueError("expected name:value")
        self._placed = True
        return row._replace(step=float(step[1]))

    def _add_cells(self, name: str, value: str) -> None:
        """A line of a table of Stable Baselines: `| rollout/ | |`, then `|    ep_rew_mean | 20.5 |`."""
        if not value and name.endswith("/"):
            self._section = name
        elif name and value:
            self._table[self._section + name] = value

    def _at_its_place(self, row: Row) -> Row | None:
        placed = not (math.isnan(row.step) and math.isnan(row.epoch))
        if not row.values:
            if placed:
                self._heading, self._epoch = row, row.epoch
            return None
        if placed:
            self._placed = True
            self._result_epoch = row.epoch if math.isnan(row.step) else math.nan
            if not math.isnan(row.step):
                self._heading = None
            return row if math.isnan(row.step) or not math.isnan(row.epoch) else row._replace(epoch=self._epoch)
        if self._heading is not None:
            self._placed = True
            return row._replace(step=self._heading.step, epoch=self._heading.epoch)
        if not tells_results(row.values):
            return None
        epoch = self._epoch if math.isnan(self._result_epoch) else self._result_epoch
        return row._replace(epoch=epoch) if self._placed else row
