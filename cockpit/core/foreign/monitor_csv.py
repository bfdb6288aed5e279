"""Episodes as Stable Baselines' and Gym's Monitor writes them: `#{"t_start": …}`, then reward, length, seconds."""

from __future__ import annotations

import json

from cockpit.core.foreign.csv_log import CsvParser
from cockpit.core.foreign.rows import Row

BEGINS = b'#{"t_start"'


def holds_monitor(head: bytes) -> bool:
    return head.startswith(BEGINS)


class MonitorParser:
    """Episodes stand at the steps of the environment that they end at, as these programs plot them."""

    def __init__(self) -> None:
        self._csv = CsvParser()
        self._steps = 0.0
        self._began = 0.0

    def __call__(self, line: bytes) -> Row | None:
        """Raises ValueError."""
        if line.startswith(BEGINS):
            self._began = float(json.loads(line[1:])["t_start"])
            return None
        row = self._csv(line)
        if row is None or "l" not in row.values:
            return row
        self._steps += row.values["l"]
        return row._replace(step=self._steps, time=self._began + row.values.get("t", 0.0))
