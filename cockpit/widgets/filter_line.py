"""The line under a list in which a person types what to show; it stays as long as it leaves something out."""

from __future__ import annotations

from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from cockpit.core.text_filter import TextFilter


class _Words(Input):
    BINDINGS = [Binding("enter", "submit", "keep", id="filter.keep", tooltip="Back to the list, filtered")]


class FilterLine(Horizontal):
    DEFAULT_CSS = """
    FilterLine {
        display: none;
        height: 1;
        padding: 0 2;
        &.-there { display: block; layout: horizontal; }
        .sign { width: 2; color: $accent; text-style: bold; }
        Input { width: 1fr; background: $surface; }
    }
    """
    BINDINGS = [
        Binding("down", "done", "keep", show=False, tooltip="Back to the list, filtered"),
        Binding("escape", "close", "show all", id="filter.close", tooltip="Back to the whole list"),
    ]

    @dataclass
    class Changed(Message):
        """Something else is to be shown."""

        filter: TextFilter

    class Done(Message):
        """The person is back at the list."""

    def __init__(self) -> None:
        super().__init__(id="filter")
        self.filter = TextFilter()
        self._came_from: Widget | None = None
        """Where the person was before."""

    def compose(self) -> ComposeResult:
        yield Static("/", classes="sign", markup=False)
        yield _Words(placeholder="words, or a regular expression such as /amber|birch/", compact=True)

    def open(self) -> None:
        if not self.has_focus_within:
            self._came_from = self.screen.focused
        self.add_class("-there")
        self.query_one(Input).focus()

    def action_close(self) -> None:
        """Show everything again."""
        self.query_one(Input).value = ""
        self.action_done()

    @property
    def there(self) -> bool:
        return self.has_class("-there")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.filter = TextFilter.parse(event.value)
        self.post_message(self.Changed(self.filter))

    def action_done(self) -> None:
        self.set_class(bool(self.query_one(Input).value.strip()), "-there")
        self.screen.set_focus(self._came_from)
        self.post_message(self.Done())

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_done()
