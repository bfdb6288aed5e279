"""Logs that other programs write, live: a list of them where there are several, the charts of one or of all."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from cockpit.core.foreign.logs import Logs
from cockpit.core.foreign.watched import Facts, WatchedLogs
from cockpit.core.format import number
from cockpit.core.metrics.overlay import MOST
from cockpit.core.text import fit_end, fit_left, plain
from cockpit.screens.palette import ActionProvider
from cockpit.widgets.ascii_filter import glyphs_of
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
        Binding("c", "overlay(True)", "overlay", id="watch.compare",
                tooltip="Overlay the logs: the same metric of all of them in one chart"),
        Binding("c", "overlay(False)", "one log", id="watch.one", tooltip="Back to the charts of one log"),
        Binding("left_square_bracket", "choose(-1)", "previous log", show=False, id="watch.before", key_display="[",
                tooltip="Show the previous log in the list"),
        Binding("right_square_bracket", "choose(1)", "next log", id="watch.next", key_display="]",
                tooltip="Show the next log in the list"),
        Binding("space", "hide", "hide, show", id="watch.hide",
                tooltip="Hide or show the lines of the log under the cursor"),
    ]  # fmt: skip

    def __init__(self, logs: Logs) -> None:
        super().__init__()
        self._watched = WatchedLogs(logs)
        self._listed: Sequence[Facts] = ()
        self._written: list[Content] = []

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        with Horizontal():
            listed = OptionList(id="logs", classes="pane", markup=False)
            listed.border_title = "Logs"
            yield listed
            watched = self._watched
            yield ChartsPanel(watched, watched.marks, grouping=watched.charts, names=watched.names)
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

    @property
    def _overlaid(self) -> bool:
        return self._watched.choice.overlaid

    def _entitle(self) -> None:
        path = self._watched.choice.alone
        words = [(plain(path.name), "$foreground"), (f"   {plain(str(path.parent))}", "$quiet")]
        if self._overlaid:
            first = f"the first {MOST}; " if len(self._listed) > MOST else ""
            words = [("logs overlaid", "$foreground"), (f"   {first}space hides one", "$quiet")]
        self.query_one("#title", Static).update(heading("Watch", *words), layout=False)

    # -- the list --------------------------------------------------------------------------------------------------

    @on(ChartsPanel.Grown)
    def _show_list(self) -> None:
        """Take in what the panel's thread has found: new logs at the end, changed words in place."""
        if not self.is_active:
            return
        self._listed = self._watched.facts
        listed = self.query_one(OptionList)
        words = [self._words(one) for one in self._listed]
        for place, (old, new) in enumerate(zip(self._written, words, strict=False)):
            if not old.is_same(new):
                listed.replace_option_prompt_at_index(place, new)
        listed.add_options(Option(new) for new in words[len(self._written) :])
        self._written = words
        if listed.highlighted is None and words:
            listed.highlighted = 0
        listed.set_class(len(words) > 1, "-shown")
        self.refresh_bindings()

    def notify_style_update(self) -> None:
        """In ASCII the charts have other signs."""
        super().notify_style_update()
        if self._written:
            self.call_after_refresh(self._show_list)

    def _words(self, one: Facts) -> Content:
        """Lines of one width, so that no value moves another; the sign of its lines before a log that has some."""
        sign, colour, name = "", "$foreground", "$foreground"
        if self._overlaid:
            sign, colour = "  ", "$quiet"
            if one.place:
                sign, colour = f"{glyphs_of(self.app).runs[one.place - 1]} ", f"$run-{one.place}"
            name = "$foreground" if one.place else "$faint"
        told = f"{one.rows:,} rows"
        damage = f"! {one.problems} problem{'s' if one.problems > 1 else ''}" if one.problems else ""
        words = [(sign, colour), (fit_end(plain(one.name), ROOM - len(sign)), name)]
        words += [(f"\n{told:<{ROOM - len(damage)}}", "$quiet"), (damage, "$bad")]
        for metric, value in one.newest:
            words.append((f"\n{fit_left(plain(metric), ROOM - 9)}", "$quiet"))
            words.append((f"{number(value, '.4g'):>9}", "$foreground"))
        return Content.assemble(*words)

    @on(OptionList.OptionHighlighted)
    def _choose(self, event: OptionList.OptionHighlighted) -> None:
        path = self._listed[event.option_index].path
        if path != self._watched.choice.alone:
            self._watched.choose(path)
            if not self._overlaid:
                self._show_otherwise()

    def _show_otherwise(self) -> None:
        """What is shown is no more what it was: all of its axis, and at once."""
        self.panel.action_reset()
        self.panel.look_at_once()
        self._entitle()
        self.refresh_bindings()

    @on(OptionList.OptionSelected)
    def _go_to_charts(self) -> None:
        self.panel.take_focus()

    # -- keys ------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "choose":
                return len(self._listed) > 1
            case "overlay":
                return len(self._listed) > 1 and parameters != (self._overlaid,)
            case "hide":
                return self._overlaid
        return super().check_action(action, parameters)

    def action_choose(self, direction: int) -> None:
        listed = self.query_one(OptionList)
        listed.highlighted = ((listed.highlighted or 0) + direction) % listed.option_count

    def action_overlay(self, overlaid: bool) -> None:
        self._watched.overlay(overlaid)
        self._show_otherwise()

    def action_hide(self) -> None:
        self._watched.toggle(self._watched.choice.alone)
        self.panel.look_at_once()
