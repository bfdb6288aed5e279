"""The footer offers what can be done now; the mouse does it, and pointing at a key tells more."""

from __future__ import annotations

import re
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot
from textual.screen import Screen

from cockpit.core.settings import SettingsFile
from cockpit.stylesheet import KeepingStylesheet
from cockpit.terminal_app import TerminalApp
from cockpit.theme import THEMES
from cockpit.widgets.footer import Footer
from tests.cockpit.driving import text, until


class Keys(App[None]):
    CSS = """
    Footer { dock: bottom; height: 1; padding: 0 1; }
    .footer--pointed { text-style: reverse; }
    """
    BINDINGS = [
        Binding("a", "add", "add", tooltip="One more"),
        Binding("b,x", "borrow", "borrow", tooltip="One less"),
        Binding("h", "hidden", "hidden", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.added, self.beeps = 0, 0

    def compose(self) -> ComposeResult:
        yield Footer()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return (self.added > 0 or None) if action == "borrow" else True

    def action_add(self) -> None:
        self.added += 1
        self.refresh_bindings()

    def action_borrow(self) -> None:
        self.added -= 1
        self.refresh_bindings()

    def bell(self) -> None:
        self.beeps += 1


def greyed(pilot: Pilot[None]) -> bool:
    """Whether the words of the second key are painted unlike those of the first."""
    footer = pilot.app.query_one(Footer)
    [line] = footer.render_lines(footer.size.region)
    colours = {segment.text: segment.style.color for segment in line if segment.style is not None}
    return colours[" add"] != colours[" borrow"]


async def test_keys_are_shown_greyed_clicked_and_explained() -> None:
    app = Keys()
    async with app.run_test(size=(40, 4)) as pilot:
        footer = app.query_one(Footer)
        await until(pilot, lambda: "a add  b borrow" in text(pilot))
        assert "hidden" not in text(pilot)
        assert greyed(pilot)
        await pilot.click(Footer, offset=(8, 0))  # greyed: it says so and does nothing
        await until(pilot, lambda: app.beeps == 1)
        assert app.added == 0
        await pilot.click(Footer, offset=(3, 0))
        await until(pilot, lambda: app.added == 1 and not greyed(pilot))
        await pilot.hover(Footer, offset=(8, 0))
        await until(pilot, lambda: footer.tooltip == "One less")
        await pilot.hover(Footer, offset=(6, 0))  # the gap between two keys
        await until(pilot, lambda: footer.tooltip is None)
        await pilot.click(Footer, offset=(6, 0))
        await pilot.click(Footer, offset=(8, 0))
        await until(pilot, lambda: app.added == 0 and greyed(pilot))
        assert app.beeps == 1


async def test_the_rules_are_those_of_a_sheet_that_parses_everything(settings: SettingsFile) -> None:
    """After a start, after another theme: with all variables of that."""

    def rules(sheet: Stylesheet) -> list[Any]:
        return [(rule.selectors, rule.styles.get_rules()) for rule in sheet.rules]

    class Themed(TerminalApp):
        CSS = "Footer { background: $panel; color: $quiet; }"

        def compose(self) -> ComposeResult:
            yield Footer()

    app = Themed(settings, ascii_only=False)
    async with app.run_test(size=(40, 4)) as pilot:
        for theme in THEMES:
            app.theme = theme
            await pilot.pause()
            fresh = Stylesheet(variables=app.get_css_variables())
            fresh.source = dict(app.stylesheet.source)
            fresh.parse()
            assert isinstance(app.stylesheet, KeepingStylesheet)
            assert rules(app.stylesheet) == rules(fresh)
            quiet = app.get_css_variables()["quiet"]
            assert app.query_one(Footer).styles.color.hex.lower() == quiet


class Narrow(App[None]):
    """As the app: a way out, a palette, and more keys of its own than have space."""

    CSS = Keys.CSS
    BINDINGS = [Binding("ctrl+p", "command_palette", "commands"), Binding("q", "quit", "quit")]

    def get_default_screen(self) -> Screen[None]:
        return Own()


class Own(Screen[None]):
    BINDINGS = [Binding(key, f"app.do('{key}')", f"action {key}") for key in "cdefg"]

    def compose(self) -> ComposeResult:
        yield Footer()


@pytest.mark.behaviour("own-keys-first")
async def test_in_a_narrow_footer_the_palette_gives_way_to_the_screens_own_keys() -> None:
    app = Narrow()
    async with app.run_test(size=(60, 4)) as pilot:
        footer = app.screen.query_one(Footer)
        own = [f"{key} action {key}" for key in "cdefg"]
        for width, shown in ((90, [*own, "^p commands", "q quit"]), (70, [*own, "q quit"]), (40, [*own[:2], "q quit"])):
            await pilot.resize_terminal(width, 4)
            await until(pilot, lambda width=width: footer.size.width == width - 2)  # type: ignore[misc]
            line = "".join(segment.text for segment in footer.render_line(0))
            assert [word.strip() for word in re.split(r"  +", line) if word.strip()][-len(shown) :] == shown
