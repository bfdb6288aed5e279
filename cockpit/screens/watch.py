"""Logs that other programs write, live: a list of them where there are several, and the charts of one."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from cockpit.core.foreign.logs import Logs
from cockpit.core.format import number
from cockpit.core.metrics.watched import Facts, WatchedLogs
from cockpit.core.text import fit_left, fit_right, plain
from cockpit.screens.palette import ActionProvider
from cockpit.widgets.charts_panel import ChartsPanel
from cockpit.widgets.footer import Footer
from cockpit.widgets.heading import heading

ROOM = 27
"""Columns for the words of a log in the list."""


class WatchScreen(Screen[None]):
    CSS_PATH = "watch.tcss"
    COMMANDS = {ActionProvider}
    AUTO_FOCUS = ""  # the charts'
    BINDINGS = [
        Binding("left_square_bracket", "choose(-1)", "log before", show=False, id="watch.before", key_display="[",
                tooltip="Show the log before this one in the list"),
        Binding("right_square_bracket", "choose(1)", "next log", id="watch.next", key_display="]",
                tooltip="Show the next log of the list"),
    ]  # fmt: skip

    def __init__(self, logs: Logs) -> None:
        super().__init__()
        self._watched = WatchedLogs(logs)
        self._listed: Sequence[Facts] = ()

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        with Horizontal():
            listed = OptionList(id="logs", classes="pane", markup=False)
            listed.border_title = "Logs"
            yield listed
            yield ChartsPanel(self._watched, self._watched.marks)
        yield Footer()

    @property
    def panel(self) -> ChartsPanel:
        return self.query_one(ChartsPanel)

    def on_screen_suspend(self) -> None:
        self.panel.following = False

    def on_screen_resume(self) -> None:
        self.panel.following = True

    def on_mount(self) -> None:
        self._entitle()

    def _entitle(self) -> None:
        chosen = self._watched.chosen
        words = ((plain(chosen.name), "$foreground"), (f"   {plain(str(chosen.parent))}", "$quiet"))
        self.query_one("#title", Static).update(heading("Watch", *words), layout=False)

    # -- the list --------------------------------------------------------------------------------------------------

    @on(ChartsPanel.Grown)
    def _show_list(self) -> None:
        """Take in what the panel's thread has found: new logs at the end, changed words in place."""
        facts, before = self._watched.facts, {one.path: one for one in self._listed}
        if not self.is_active or facts == self._listed:
            return
        self._listed = facts
        listed = self.query_one(OptionList)
        for place, one in enumerate(facts):
            if place >= listed.option_count:
                listed.add_option(Option(self._words(one)))
            elif one != before.get(one.path):
                listed.replace_option_prompt_at_index(place, self._words(one))
        if listed.highlighted is None and facts:
            listed.highlighted = 0
        listed.set_class(len(facts) > 1, "-shown")
        self.refresh_bindings()

    def _words(self, one: Facts) -> Content:
        """Three lines of one width, so that no value moves another."""
        told = f"{one.rows:,} rows"
        damage = f"! {one.problems} problem{'s' if one.problems > 1 else ''}" if one.problems else ""
        words = [(_end(plain(one.name)), "$foreground")]
        words += [(f"\n{told:<{ROOM - len(damage)}}", "$quiet"), (damage, "$bad")]
        for name, value in one.newest:
            words.append((f"\n{fit_left(plain(name), ROOM - 9):<{ROOM - 9}}", "$quiet"))
            words.append((f"{number(value, '.4g'):>9}", "$foreground"))
        return Content.assemble(*words)

    @on(OptionList.OptionHighlighted)
    def _choose(self, event: OptionList.OptionHighlighted) -> None:
        path = self._listed[event.option_index].path
        if path != self._watched.chosen:
            self._watched.choose(path)
            self.panel.action_reset()
            self.panel.look_at_once()
            self._entitle()

    @on(OptionList.OptionSelected)
    def _go_to_charts(self) -> None:
        self.panel.take_focus()

    # -- keys ------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "choose":
            return len(self._listed) > 1
        return super().check_action(action, parameters)

    def action_choose(self, direction: int) -> None:
        listed = self.query_one(OptionList)
        listed.highlighted = ((listed.highlighted or 0) + direction) % listed.option_count


def _end(name: str) -> str:
    """A path in the list: its end tells more than its beginning."""
    return fit_left(name, ROOM) if cell_len(name) <= ROOM else "…" + fit_right(name[-ROOM + 1 :], ROOM - 1)
