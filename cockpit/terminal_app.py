"""What the app is on any terminal: its look, its keys, its clipboard and its title; nothing here knows a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from textual import on
from textual._compositor import CompositorUpdate
from textual.app import SystemCommand
from textual.binding import Binding
from textual.css.query import NoMatches
from textual.filter import LineFilter
from textual.reactive import var
from textual.screen import ModalScreen, Screen

from cockpit import keys, notice
from cockpit.core.ascii import PLAIN_TERMINALS
from cockpit.core.settings import SettingsFile
from cockpit.core.text import plain
from cockpit.core.typed import typed
from cockpit.ordered_keys import OrderedKeysApp
from cockpit.screens.palette import SystemProvider
from cockpit.stylesheet import KeepingStylesheet
from cockpit.terminal_picture import Changes, TerminalPicture
from cockpit.theme import DEFAULT, THEMES, variables
from cockpit.title import TerminalTitle
from cockpit.widgets.ascii_filter import AsciiFilter
from engines.host.preferences import ADDRESS

TITLE_SECONDS = 1.0
SHOWN_COPIED = 40
"""Characters of what was copied that the notice repeats."""
_PLAIN_KEYS = {"up": "up", "down": "down", "left": "left", "right": "right", "enter": "enter", "backspace": "bksp"}
"""Names of keys for which Textual has a sign."""


@runtime_checkable
class Copyable(Protocol):
    """A widget whose text can be copied: what is under its cursor, else what it shows."""

    def copyable(self) -> str: ...


@runtime_checkable
class Titled(Protocol):
    """A screen that has something to tell in the terminal's title."""

    def terminal_title(self) -> str: ...


class TerminalApp(OrderedKeysApp):
    """An app that looks and works as its person has chosen and as its terminal can."""

    BINDINGS = [
        Binding("ctrl+y", "copy", "copy", show=False, id="cockpit.copy", tooltip="Copy what is under the cursor"),
        Binding(
            "ctrl+z", "suspend_process", "suspend", show=False, id="cockpit.suspend",
            tooltip="Suspend the cockpit until `fg`; runs keep running",
        ),
        Binding(
            "ctrl+l", "redraw", "redraw", show=False, id="cockpit.redraw",
            tooltip="Redraw the screen, where another program has written into it",
        ),
    ]  # fmt: skip

    COMMANDS = {SystemProvider}

    ascii_only: var[bool] = var(False, init=False)
    """Whether everything is drawn in ASCII; may change at any time."""

    def __init__(self, settings: SettingsFile, *, ascii_only: bool) -> None:
        self._ascii_filter = AsciiFilter(enabled=ascii_only or settings.value.ascii)
        super().__init__()
        self.settings = settings
        self.set_reactive(TerminalApp.ascii_only, self._ascii_filter.enabled)
        self.animation_level = "none"
        self._terminal_title = TerminalTitle(self, os.environ)
        self._picture = TerminalPicture()
        self._noticed: set[tuple[str, str, float]] = set()
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = settings.value.theme if settings.value.theme in self.available_themes else DEFAULT
        self.stylesheet: KeepingStylesheet = KeepingStylesheet(self.get_css_variables())

    def notify(self, message: str, **options: Any) -> None:
        """Say `message` in a corner, its commands as they can be typed here."""
        super().notify(typed(message), **options)

    def on_mount(self) -> None:
        self.set_interval(TITLE_SECONDS, self._show_title)
        self.call_after_refresh(self._show_title)
        chosen = self.settings.value
        if self.settings.problem:
            self._warn(self.settings.problem)
        if chosen.theme not in self.available_themes:
            self._warn(f"The theme {chosen.theme!r} in {self.settings.path} is not known; {DEFAULT} is used.")
        if chosen.notify not in notice.CHOICES and not chosen.notify.startswith(ADDRESS):
            self._warn(
                f"notify in {self.settings.path} must be bell, osc9 or an address (https://…); alerts are not sent."
            )
        if chosen.keys:
            self.run_worker(self._take_keys, thread=True, group="keys")

    def on_unmount(self) -> None:
        self._terminal_title.restore()

    def _handle_exception(self, error: Exception) -> None:
        """Once left, a screen that was still being built misses its parts: no fault that anybody should read."""
        if not (self._exit and isinstance(error, NoMatches)):
            super()._handle_exception(error)

    # -- what is sent ----------------------------------------------------------------------------------------------

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        if isinstance(renderable, CompositorUpdate):
            renderable = Changes(renderable, self._picture)
        super()._display(screen, renderable)

    def on_resize(self) -> None:
        """Also called when the program goes on after it was suspended."""
        self._picture.forget()

    def action_redraw(self) -> None:
        self._picture.forget()
        self.screen.refresh()

    # -- choices ---------------------------------------------------------------------------------------------------

    def _warn(self, sentence: str) -> None:
        self.notify(plain(sentence), severity="warning", timeout=10, markup=False)

    def _keep(self, **choices: Any) -> None:
        """Remember choices; a thread may wait for the disk."""

        def change() -> None:
            problem = self.settings.problem
            self.settings.change(**choices)
            if self.settings.problem != problem:
                self.call_from_thread(self._warn, self.settings.problem)

        self.run_worker(change, thread=True, group="settings")

    # -- the look --------------------------------------------------------------------------------------------------

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """What the style sheets use beside Textual's own variables, for its own themes too."""
        return variables(dark=self.current_theme.dark)

    def watch_theme(self, theme: str) -> None:
        if self.is_running and theme != self.settings.value.theme:
            self._keep(theme=theme)

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        return [*filters, self._ascii_filter] if self._ascii_filter.enabled else filters

    def refresh_css(self, animate: bool = True) -> None:
        """Style everything again for another theme; Textual also asks for the one that a start begins with."""
        if not self.stylesheet.knows(self.get_css_variables()):
            super().refresh_css(animate)

    def watch_ascii_only(self, ascii_only: bool) -> None:
        self._ascii_filter.enabled = ascii_only
        super().refresh_css(animate=False)  # what was drawn before is kept by widgets until their style changes

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Of Textual's own commands those that suit a cockpit, and the choices that have no key."""
        for command in super().get_system_commands(screen):
            if command.title in ("Theme", "Screenshot"):
                yield command
        title = "All characters" if self.ascii_only else "ASCII only"
        yield SystemCommand(title, "Draw with ASCII characters only, or with lines and dots", self._toggle_ascii)

        if (choice := self.settings.value.notify) in notice.CHOICES:
            about = f"Now {notice.CHOICES[choice]}; next {notice.CHOICES[notice.following(choice)]}"
            yield SystemCommand("Terminal alerts", about, self._change_notice)

    def _change_notice(self) -> None:
        choice = notice.following(self.settings.value.notify)
        self._keep(notify=choice)
        self.notify(f"Terminal alerts: {notice.CHOICES[choice]}.")

    @on(notice.Notice)
    def _tell_elsewhere(self, message: notice.Notice) -> None:
        if message.key not in self._noticed:
            self._noticed.add(message.key)
            notice.tell(self, self.settings.value.notify, message.text)

    def _toggle_ascii(self) -> None:
        self.ascii_only = not self.ascii_only
        self._keep(ascii=self.ascii_only)

    # -- the keys --------------------------------------------------------------------------------------------------

    def get_key_display(self, binding: Binding) -> str:
        """In ASCII by name where Textual has a sign."""
        name = _PLAIN_KEYS.get(binding.key.rpartition("+")[2]) if self.ascii_only and not binding.key_display else None
        return super().get_key_display(binding) if name is None else binding.key.rpartition("+")[0] + name

    def _take_keys(self) -> None:
        """Runs in a worker's thread: to know every key, every screen must be imported."""
        known, chosen = keys.catalogue(type(self)), self.settings.value.keys
        self.call_from_thread(self.set_keymap, keys.completed(chosen, known))
        for sentence in keys.problems(chosen, known):
            self.call_from_thread(self._warn, f"{sentence} See `keys` in {self.settings.path}.")

    # -- the clipboard ---------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "copy":
            return self._has_clipboard or None
        if action == "suspend_process":
            return self._driver is not None and self._driver.can_suspend  # in a browser there is no shell to go back to
        return super().check_action(action, parameters)

    @property
    def _has_clipboard(self) -> bool:
        return os.environ.get("TERM", "") not in PLAIN_TERMINALS or self.is_headless

    def _copyable(self) -> Callable[[], str] | None:
        """Gives what would be copied now, by what has the focus or is around it; None where there is nothing."""
        selected = self.screen.get_selected_text() if self.screen.selections else None
        if selected:
            return lambda: selected
        around: Sequence[object] = self.focused.ancestors_with_self if self.focused and self.focused.display else ()
        return next((node.copyable for node in around if isinstance(node, Copyable)), None)

    def action_copy(self) -> None:
        """By OSC 52: the sequence reaches the clipboard of the machine the person sits at, also over SSH."""
        read = self._copyable()
        lines = [plain(line) for line in read().split("\n")] if read is not None else []
        if not any(lines):
            self.notify("Nothing to copy here: move to a table, a chart or a log first.")
            return
        self.copy_to_clipboard("\n".join(lines))
        shown = lines[0] if len(lines) == 1 else f"{len(lines)} lines"
        self.notify(f"copied {shown if len(shown) <= SHOWN_COPIED else shown[:SHOWN_COPIED] + '…'}", markup=False)

    # -- the title -------------------------------------------------------------------------------------------------

    def _show_title(self) -> None:
        below: object = next(
            (screen for screen in reversed(self.screen_stack) if not isinstance(screen, ModalScreen)), None
        )
        self._terminal_title.show(below.terminal_title() if isinstance(below, Titled) else "cockpit")
