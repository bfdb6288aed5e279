"""The whole log of a run, however long: followed, scrolled and searched in the file itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.message import Message

from cockpit.core.format import count, percent
from cockpit.core.log.log_search import Search, spans
from cockpit.core.log.logfile import LogFile
from cockpit.core.text_filter import TextFilter
from cockpit.widgets.filter_line import FilterLine
from cockpit.widgets.line_view import LineView
from cockpit.widgets.pane import Pane
from cockpit.widgets.searchable import Searchable, find_key
from engines.contract.rundir import RunDirectory

POLL_SECONDS = 0.05
"""How soon lines are there that were scrolled to, beyond those around the view."""
SHOW_SECONDS = 0.5
"""How often a growing log is drawn."""
AROUND = 400
"""Lines before and after those in view that are kept ready."""


@dataclass(frozen=True)
class Window:
    """Some lines of a log that has `count` of them."""

    first: int = 0
    lines: Sequence[str] = ()
    count: int = 0
    shifted: int = 0
    """Lines that went before the first one since the last window."""


class LogLines(LineView):
    COMPONENT_CLASSES = {"log--line", "log--found", "log--current"}
    DEFAULT_CSS = """
    LogLines {
        height: 1fr;
        .log--line { color: $quiet; }
        .log--found { color: $background; background: $best; }
        .log--current { color: $foreground; text-style: bold; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="log-lines", title="Log")
        self._window = Window()
        self._sought = TextFilter()
        self._current: int | None = None

    @property
    def in_view(self) -> tuple[int, int]:
        """The first line in view, and the one after the last."""
        return self.scroll_offset.y, self.scroll_offset.y + self.size.height

    def show(self, window: Window) -> None:
        self._window = window
        width = max(map(cell_len, window.lines), default=0)
        self.resize_to(window.count, max(width, self.virtual_size.width), shifted=-window.shifted)
        self.refresh()

    def mark(self, sought: TextFilter, current: int | None) -> None:
        """Light up what is sought, and bring a line of it into view."""
        self._sought, self._current = sought, current
        if current is not None and not self.in_view[0] <= current < self.in_view[1]:
            self.scroll_to(y=max(current - self.size.height // 3, 0), animate=False, force=True)
        self.refresh()

    def line(self, index: int) -> Text:
        place = index - self._window.first
        if not 0 <= place < len(self._window.lines):
            return Text()  # on its way
        line = self._window.lines[place]
        text = self.styled(line, "log--current" if index == self._current else "log--line")
        for start, end in spans(self._sought, line):
            text.stylize(self.get_component_rich_style("log--found", partial=True), start, end)
        return text


class LogPane(Pane, Searchable):
    BINDINGS = [
        find_key("log.search", "Search the whole log, backwards from its end"),
        Binding("n", "jump(True)", "next", show=False, id="log.next", tooltip="Next match"),
        Binding("N", "jump(False)", "previous", show=False, id="log.before", tooltip="Previous match"),
    ]

    @dataclass
    class Read(Message):
        """Lines that are in view have changed, or others are in view."""

        window: Window

    @dataclass
    class Searched(Message):
        """The search went on: a line to go to, if one was found, and how it stands."""

        filter: TextFilter
        line: int | None
        words: str

    def __init__(self, run: RunDirectory) -> None:
        super().__init__(id="log-pane")
        self._file = LogFile(run.stdout)
        self._indexed = False
        """Whether all lines were counted once; until then only the end is shown."""
        self._behind = False
        """Whether the log has changed since it was shown."""
        self._told, self._told_at = Window(), 0.0
        self._search = Search(self._file, TextFilter())
        # said in the screen's thread, done in the pane's
        self._view = (0, 0)
        self._jump: tuple[int, bool] | None = None
        # said by the pane's thread
        self._current: int | None = None
        self._search_words = ""

    def compose(self) -> ComposeResult:
        yield LogLines()
        yield FilterLine()

    @property
    def view(self) -> LogLines:
        return self.query_one(LogLines)

    def on_mount(self) -> None:
        self.watch(self.view, "scroll_y", self._look_here, init=False)

    def on_resize(self) -> None:
        self.call_after_refresh(self._look_here)

    def _look_here(self) -> None:
        self._view = self.view.in_view
        self._say()

    # -- in the pane's thread --------------------------------------------------------------------------------------

    def look(self) -> float:
        try:
            self._behind |= self._file.extend()
            if self._file.read < 1 and not self._indexed:
                self._tell(0, self._file.tail()[-AROUND:])
                return 0.0
            self._read_window()
            return 0.0 if self._go_on_searching() else POLL_SECONDS
        except OSError as error:
            self._tell(0, [f"The log cannot be read: {error.strerror}."])
            return 1.0

    def _read_window(self) -> None:
        """Have the lines around the view ready; what only grew is shown no more than every `SHOW_SECONDS`."""
        before, first = self._told, not self._indexed
        due = first or (self._behind and time.monotonic() - self._told_at >= SHOW_SECONDS)
        total = self._file.count if due else before.count
        shifted = total - before.count if first else 0  # until now there was only the end
        top, stop = self._view
        if stop >= before.count:  # the end is in view, and stays so
            top, stop = max(total - (stop - top), 0), total
        else:
            top, stop = top + shifted, stop + shifted
        if not due and before.first <= top and stop <= before.first + len(before.lines):
            return
        self._indexed, self._behind = True, self._behind and not due
        start = max(top - AROUND, 0)
        self._tell(start, self._file.lines(start, min(stop + AROUND, total)), total, shifted)

    def _tell(self, first: int, lines: Sequence[str], total: int | None = None, shifted: int = 0) -> None:
        self._told = Window(first, lines, len(lines) if total is None else total, shifted)
        self._told_at = time.monotonic()
        self.post_message(self.Read(self._told))

    def _go_on_searching(self) -> bool:
        """Count a few blocks and answer a jump; whether there is more to do."""
        if self._search.filter is not self.sought:
            self._search = Search(self._file, self.sought)
        search, jump = self._search, self._jump
        if not search.filter.active:
            return False
        more = search.go()
        line = search.next(jump[0], forward=jump[1]) if jump else None
        if jump is not None and (line is not None or not more) and self._jump is jump:
            self._jump = None
        if (words := self._words(search, line)) != self._search_words or line is not None:
            self.post_message(self.Searched(search.filter, line, words))
        return more

    def _words(self, search: Search, line: int | None) -> str:
        at = self._current if line is None else line
        total = search.total
        if not search.done:
            return f"searching, {count(total)} found"
        if not total:
            return "not found"
        place = f"{count(search.place(at) + 1)} of {count(total)}" if at is not None else f"{count(total)} found"
        return f"{place}, n N"

    # -- showing ---------------------------------------------------------------------------------------------------

    @on(Read)
    def _take(self, message: Read) -> None:
        self.view.show(message.window)
        self._look_here()

    @on(Searched)
    def _take_search(self, message: Searched) -> None:
        if message.filter is not self.sought:
            return
        if message.line is not None:
            self._current = message.line
            self.view.mark(self.sought, self._current)
        self._search_words = message.words
        self._say()

    def _say(self) -> None:
        """How the search stands, and where in the log the view is."""
        total = self.view.count
        words = [self._search_words] if self._search_words else []
        if self.sought.problem:
            words = [self.sought.problem]
        if not total:
            words.append("nothing yet")
        elif self._file.read < 1 and not self._indexed:
            words.append(f"counting lines, {percent(self._file.read)}")
        elif self.view.following:
            words.append(f"following · {count(total)} lines")
        else:
            words.append(f"line {count(self._view[0] + 1)} of {count(total)} · end: follow")
        self.view.say(" · ".join(words))

    # -- keys ------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.sought.active or None if action == "jump" else super().check_action(action, parameters)

    def action_jump(self, forward: bool) -> None:
        start = self._current if self._current is not None else self._view[0]
        self._jump = (start, forward)

    def seek(self) -> None:
        self._current, self._search_words = None, ""
        self._jump = (self._view[1], False)  # the newest that is in view or above it
        self.view.mark(self.sought, None)
        self._say()
        self.refresh_bindings()
