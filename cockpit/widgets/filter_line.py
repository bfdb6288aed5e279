"""The line under a list in which a person types what to show; it stays as long as it leaves something out."""

from __future__ import annotations

from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from cockpit.core.run_filter import RunFilter


class FilterLine(Horizontal):
    DEFAULT_CSS = """
    FilterLine {
        display: none;
        height: 1;
        padding: 0 2;
        &.-there { display: block; layout: horizontal; }
        .sign { width: 2; color: $accent; text-style: bold; }
        Input { width: 1fr; background: $surface; }
        #filter-problem { width: auto; max-width: 60%; color: $bad; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """
    BINDINGS = [
        Binding("enter,down", "done", "back to the list", show=False, id="filter.done", tooltip="Keep the filter"),
    ]

    @dataclass
    class Changed(Message):
        """Something else is to be shown."""

        filter: RunFilter

    @dataclass
    class Done(Message):
        """The person goes back to the list."""

    def __init__(self) -> None:
        super().__init__(id="filter")
        self.filter = RunFilter()

    def compose(self) -> ComposeResult:
        yield Static("/", classes="sign", markup=False)
        yield Input(placeholder="words, or a regular expression as /amber|birch/", compact=True)
        yield Static(id="filter-problem", markup=False)

    def open(self) -> None:
        self.add_class("-there")
        self.query_one(Input).focus()

    def close(self) -> None:
        """Show everything again."""
        self.query_one(Input).value = ""
        self.remove_class("-there")
        self.post_message(self.Done())

    @property
    def there(self) -> bool:
        return self.has_class("-there")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.filter = RunFilter.parse(event.value)
        self.query_one("#filter-problem", Static).update(self.filter.problem)
        self.post_message(self.Changed(self.filter))

    def action_done(self) -> None:
        self.set_class(bool(self.filter.text), "-there")
        self.post_message(self.Done())

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_done()
