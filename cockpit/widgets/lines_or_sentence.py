"""Lines, or where there are none a sentence that says why, wrapped to the width there is."""

from __future__ import annotations

import textwrap

from rich.text import Text

from cockpit.widgets.line_view import LineView


class LinesOrSentence(LineView):
    COMPONENT_CLASSES = {"lines--sentence"}
    DEFAULT_CSS = """
    LinesOrSentence .lines--sentence { color: $quiet; }
    """

    def __init__(self, *, id: str, title: str) -> None:
        super().__init__(id=id, title=title)
        self._lines_wanted, self._width_wanted, self._instead = 0, 0, ""
        self.sentence: list[str] = []
        """The sentence as it is wrapped now; empty where there are lines."""

    def fill(self, count: int, width: int, instead: str) -> None:
        """Have `count` lines of at most `width` cells; where there are none, the sentence `instead`."""
        self._lines_wanted, self._width_wanted, self._instead = count, width, "" if count else instead
        if self._instead:
            self.ends, self.fixed = (), 0  # a sentence has no columns
        self._wrap()
        self.refresh()

    def _wrap(self) -> None:
        self.sentence = textwrap.wrap(self._instead, self.room or len(self._instead) or 1, break_on_hyphens=False)
        self.resize_to(self._lines_wanted or len(self.sentence), self._width_wanted)

    def on_resize(self) -> None:
        self._wrap()  # what was filled before it was ever shown knew no width

    def line(self, index: int) -> Text:
        return self.styled(self.sentence[index], "lines--sentence")
