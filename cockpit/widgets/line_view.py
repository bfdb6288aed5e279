"""Lines drawn on demand, however many there are; follows its end unless the person scrolled away from it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from rich.text import Text
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from cockpit.widgets.heading import literal
from cockpit.widgets.kept_styles import KeptStyles


class LineView(ScrollView, KeptStyles, can_focus=True):
    """A view of `count` lines; a subclass gives each line and, if it has one, a header that stays in place."""

    FOLLOWS = True
    """Whether the end is kept in view while lines are added."""
    HEADER_LINES = 0
    fixed = 0
    """Cells at the left that stay while the rest moves sideways."""
    ends: Sequence[int] = ()
    """Cells at which columns end: one without room is left out whole, half a number being another, and is counted."""
    COLUMN = "column"

    def __init__(self, *, id: str, title: str) -> None:
        super().__init__(id=id, classes="pane")
        self._title = self._told_title = title
        self.border_title = literal(title)
        self._state = ""
        self._follow = self.FOLLOWS

    # -- for subclasses --------------------------------------------------------------------------------------------

    def line(self, index: int) -> Text:
        """The line at `index`."""
        raise NotImplementedError

    def header(self) -> Text:
        """The line above all others, when there is one."""
        return Text()

    # -- the view --------------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many lines there are."""
        return max(0, self.virtual_size.height - self.HEADER_LINES)

    @property
    def room(self) -> int:
        """Cells of a line; while it is hidden, when Textual tells no region, those it had when it was last shown."""
        return self.outer_size.region.shrink(self.gutter).width

    @property
    def following(self) -> bool:
        return self._follow

    def resize_to(self, count: int, width: int, *, shifted: int = 0) -> None:
        """Have `count` lines of at most `width` cells; `shifted` lines fell off the start."""
        size = Size(width, count + self.HEADER_LINES)
        if size != self.virtual_size:
            self.virtual_size = size
        self._tell_title()
        if self._follow:
            self._to_end()
        elif shifted:
            self.scroll_to(y=self.scroll_y - shifted, animate=False)

    def entitle(self, title: str) -> None:
        """Put words at the upper edge, before how many columns lie further right."""
        self._title = title
        self._tell_title()

    def _tell_title(self) -> None:
        """The same words again cost nothing, where Textual would paint the whole view."""
        if not self.room:
            return  # never shown yet: said when it is
        seen = self._seen_to
        beyond = sum(end > seen for end in self.ends)
        words = f"  → {beyond} more {self.COLUMN}{'s' * (beyond > 1)}" if beyond else ""
        if (told := self._title + words) != self._told_title:
            self._told_title = told
            more = Content.styled(words, "$quiet") if words else Content()
            self.border_title = Content.assemble(literal(self._title), more)

    @property
    def _seen_to(self) -> int:
        """The cell up to which lines are drawn: the end of the last column that has room."""
        left = self.scroll_offset.x
        edge = left + self.room
        return max((end for end in self.ends if left + self.fixed < end <= edge), default=edge)

    def say(self, subtitle: str) -> None:
        """Put the state of the pane at its lower edge; the same words again cost nothing."""
        if subtitle != self._state:
            self._state = subtitle
            self.border_subtitle = literal(subtitle)

    def copyable(self) -> str:
        """The lines in view, as text, with their header."""
        top, page = self.scroll_offset.y, self.scrollable_content_region.height - self.HEADER_LINES
        lines = [self.header(), *map(self.line, range(top, min(top + page, self.count)))]
        return "\n".join(line.plain.rstrip() for line in (lines if self.HEADER_LINES else lines[1:]))

    def refresh_index(self, index: int) -> None:
        """Draw one line again, if it is in view."""
        y = self.HEADER_LINES + index - self.scroll_offset.y
        if self.HEADER_LINES <= y < self.size.height:
            self.refresh_line(self.HEADER_LINES + index)

    def refresh_indices(self, start: int, stop: int) -> None:
        """Draw those of the lines from `start` to before `stop` again that are in view, however many there are."""
        top = self.scroll_offset.y
        for index in range(max(start, top), min(stop, top + self.size.height)):
            self.refresh_index(index)

    def bring_into_view(self, index: int) -> None:
        """Scroll no further than it takes to see the line."""
        top, page = self.scroll_offset.y, max(1, self.scrollable_content_region.height - self.HEADER_LINES)
        if not top <= index < top + page:
            self.scroll_to(y=index if index < top else index - page + 1, animate=False)

    def index_under(self, event: events.MouseEvent) -> int | None:
        """The line under the mouse; None over the header or the frame, or below the last."""
        y = event.y - self.gutter.top - self.HEADER_LINES
        index = y + self.scroll_offset.y
        return index if y >= 0 and index < self.count else None

    def _to_end(self) -> None:
        self.scroll_to(y=self.max_scroll_y, animate=False, force=True)

    def on_resize(self) -> None:
        self._tell_title()
        if self._follow:
            self._to_end()

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_x(old_value, new_value)
        self._tell_title()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self.FOLLOWS and self.size.height:
            self._follow = new_value >= self.max_scroll_y

    def render_line(self, y: int) -> Strip:
        if y < self.HEADER_LINES:
            text = self.header()
        else:
            index = y - self.HEADER_LINES + self.scroll_offset.y
            text = self.line(index) if index < self.count else Text()
        left, width = self.scroll_offset.x, self.scrollable_content_region.width
        strip = Strip(text.render(self.app.console)).crop(0, self._seen_to)
        moved = strip.crop_extend(left + self.fixed, left + width, Style())
        shown = Strip.join([strip.crop_extend(0, self.fixed, Style()), moved]) if self.fixed else moved
        return shown.apply_style(self.rich_style)

    def styled(self, text: str, name: str) -> Text:
        """`text` in the style of a component class."""
        return Text(no_wrap=True).append(text, self.component_style(name))
