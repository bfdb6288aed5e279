"""The end of the engine's output, as text and nothing else."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text

from cockpit.core.run.follow import Log
from cockpit.widgets.line_view import LineView


class LogView(LineView):
    COMPONENT_CLASSES = {"log--line"}

    def __init__(self) -> None:
        super().__init__(id="log", title="Log")
        self._log = Log()

    def show(self, log: Log) -> None:
        """Take the newest tail of the log."""
        before, self._log = self._log, log
        if log is before:
            return
        width = max(map(cell_len, log.lines), default=0)
        self.resize_to(len(log.lines), width, shifted=log.dropped - before.dropped)
        self.refresh()
        self._say_where()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._say_where()

    def _say_where(self) -> None:
        if not self._log.lines:
            where = "nothing yet"
        elif self.following:
            where = "following"
        else:
            where = "end: follow"
        self.say(where)

    def line(self, index: int) -> Text:
        return self.styled(self._log.lines[index], "log--line")
