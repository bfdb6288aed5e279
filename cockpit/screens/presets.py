"""Taking loss weights that were kept under a name, or keeping those on the screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from cockpit.core import failures
from cockpit.core.steering.presets import Presets
from cockpit.core.text import plain
from cockpit.screens.dialog import Dialog
from cockpit.widgets.heading import literal

Weights = Mapping[str, float]


class PresetScreen(Dialog[Weights | None]):
    """Gives the weights of the preset taken, or None. The disk is asked in threads; what it refuses keeps it open."""

    CSS_PATH = "presets.tcss"
    BINDINGS = [Binding("escape", "dismiss(None)", "Close", id="presets.close", tooltip="Close, changing nothing")]

    def __init__(self, presets: Presets, new: Weights, default: Weights) -> None:
        """`new` can be kept; `default` has the heads of the run."""
        super().__init__()
        self._presets, self._new, self._default = presets, dict(new), dict(default)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="presets") as dialog:
            dialog.border_title = "Presets of loss weights"
            dialog.border_subtitle = "enter use or save   tab other field   escape close"
            yield OptionList(compact=True, markup=False)
            yield Static("No presets for this project yet.", id="none", classes="field")
            yield Static("save the new weights as", classes="field")
            yield Input(placeholder="a name", id="name", max_length=40, compact=True)

    def on_mount(self) -> None:
        self.query_one("#none").display = False
        self._work(lambda: self.call_later(self._show, self._presets.names()))

    def _work(self, work: Callable[[], object]) -> None:
        """In a thread. What it then has to say is a message, which a screen that is closed by now does not hear."""
        guarded = failures.told(work, lambda sentence: self.call_later(self._refuse, sentence))
        self.run_worker(guarded, thread=True, exclusive=True)

    def _refuse(self, sentence: str) -> None:
        self.notify(plain(sentence), severity="error", timeout=10, markup=False)

    def _show(self, names: Sequence[str]) -> None:
        kept = self.query_one(OptionList)
        kept.add_options([Option(literal(name), id=name) for name in names])
        kept.display = bool(names)
        self.query_one("#none").display = not names
        if names:
            kept.highlighted = 0
        else:
            self.query_one(Input).focus()

    @on(OptionList.OptionSelected)
    def _take(self, event: OptionList.OptionSelected) -> None:
        name = str(event.option_id)
        self._work(lambda: self.call_later(self._close, self._presets.load(name, self._default)))

    @on(Input.Submitted)
    def _keep(self, event: Input.Submitted) -> None:
        if name := event.value.strip():
            self._work(partial(self._save, name))

    def _save(self, name: str) -> None:
        self._presets.save(name, self._new)
        self.call_later(self.notify, plain(f"saved as {self._presets.path(name)}"), markup=False)
        self.call_later(self._close, None)

    def _close(self, weights: Weights | None) -> None:
        self.dismiss(weights)
