"""Keys that arrive together do what they do one by one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from cockpit import ordered_keys
from cockpit.app import CockpitApp
from cockpit.core.runs.fleet import Fleet, FleetNews
from cockpit.ordered_keys import OrderedKeysApp
from cockpit.screens.run import RunScreen
from tests.cockpit.driving import PATIENCE, until
from tests.support.fake_run import FakeRun


class Numbers(Widget, can_focus=True):
    """Takes digits itself and moves by a binding, as the tables do."""

    BINDINGS = [Binding("down", "move", "move"), Binding("x", "vanish", "vanish")]

    def __init__(self) -> None:
        super().__init__()
        self.typed = ["", ""]
        self.at = 0

    def on_key(self, event: events.Key) -> None:
        if event.character and event.character.isdigit():
            self.typed[self.at] += event.character
            event.stop()

    def action_move(self) -> None:
        self.at = 1

    async def action_vanish(self) -> None:
        await self.remove()


class Slow(Widget, can_focus=True):
    """Has work to do for each key, as on a busy machine; a key that comes meanwhile is too early."""

    class Worked(Message):
        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self) -> None:
        super().__init__()
        self.typed, self.early, self.at_work = "", "", False

    async def on_key(self, event: events.Key) -> None:
        event.stop()
        if self.at_work:
            self.early += event.key
        self.at_work = True
        await asyncio.sleep(0.08)
        self.post_message(self.Worked(event.key))

    @on(Worked)
    def worked(self, message: Worked) -> None:
        self.typed += message.key
        self.at_work = False


class Line(Vertical):
    """A field that tells the one around it, which tells the app, when it is done; as the filter of a list does."""

    class Done(Message):
        pass

    def compose(self) -> ComposeResult:
        yield Input(id="line")

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Done())


class Form(Screen[None]):
    def compose(self) -> ComposeResult:
        yield Input(id="form")


class Host(OrderedKeysApp):
    BINDINGS = [
        Binding("slash", "look", "look"), Binding("n", "form", "form"), Binding("d", "delete", "delete"),
    ]  # fmt: skip
    deleted = False

    def compose(self) -> ComposeResult:
        yield Numbers()
        yield Line()

    @on(Line.Done)
    def back(self) -> None:
        self.query_one(Numbers).focus()

    def action_look(self) -> None:
        self.query_one("#line", Input).focus()

    def action_form(self) -> None:
        self.push_screen(Form())

    def action_delete(self) -> None:
        self.deleted = True


def host(pilot: Pilot[None]) -> Host:
    assert isinstance(pilot.app, Host)
    return pilot.app


async def burst(pilot: Pilot[None], *pressed: str) -> None:
    """All of it before anything of it is handled."""
    app = host(pilot)
    for key in pressed:
        app.post_message(events.Key({"/": "slash"}.get(key, key), key if len(key) == 1 else None))
    await pilot.pause()  # the first is given
    await until(pilot, lambda: not app._waiting_keys and not app._key_on_its_way)


@pytest.mark.behaviour("keys-arrive-together-over")
async def test_a_number_typed_behind_a_move_is_the_number_of_the_new_line() -> None:
    async with Host().run_test() as pilot:
        await burst(pilot, "1", "down", "5", "7")
        assert pilot.app.query_one(Numbers).typed == ["1", "57"]


@pytest.mark.behaviour("keys-arrive-together-over")
async def test_what_is_typed_behind_a_key_that_opens_a_field_goes_into_it() -> None:
    async with Host().run_test() as pilot:
        await burst(pilot, "/", "d", "4", "down", "5", "d")
        assert pilot.app.query_one("#line", Input).value == "d45d"
        assert pilot.app.query_one(Numbers).typed == ["", ""]
        assert not host(pilot).deleted


@pytest.mark.behaviour("keys-arrive-together-over")
async def test_what_is_typed_behind_the_enter_that_ends_a_field_goes_where_the_person_is_then() -> None:
    async with Host().run_test() as pilot:
        await burst(pilot, "/", "4", "enter", "down", "5")
        assert pilot.app.query_one("#line", Input).value == "4"
        assert pilot.app.query_one(Numbers).typed == ["", "5"]


@pytest.mark.behaviour("keys-arrive-together-over")
async def test_what_is_typed_behind_a_key_that_opens_a_screen_goes_into_it() -> None:
    async with Host().run_test() as pilot:
        await burst(pilot, "n", "d", "7")
        assert pilot.app.screen.query_one("#form", Input).value == "d7"
        assert not host(pilot).deleted


async def test_a_widget_that_goes_with_a_key_takes_no_others_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_keys, "PATIENCE_SECONDS", 0.05)
    async with Host().run_test() as pilot:
        await burst(pilot, "x", "d")
        assert not pilot.app.query(Numbers)
        assert pilot.app.query_one("#line", Input).value == "d"


async def test_many_keys_at_once_wait_for_each_other_though_all_together_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The patience is with one key: it does not begin when the key comes, far back in the queue."""
    monkeypatch.setattr(ordered_keys, "PATIENCE_SECONDS", 0.5)

    class SlowHost(OrderedKeysApp):
        def compose(self) -> ComposeResult:
            yield Slow()

    async with SlowHost().run_test() as pilot:
        for key in "1234567890":
            pilot.app.post_message(events.Key(key, key))
        slow = pilot.app.query_one(Slow)
        await until(pilot, lambda: len(slow.typed) == 10)
        assert (slow.typed, slow.early) == ("1234567890", "")


@pytest.mark.behaviour("keys-in-order-from-the-start")
async def test_keys_before_the_first_screen_is_filled_are_given_in_order_when_it_is() -> None:
    """Enter among them, of which a terminal that is not set up yet makes a line feed."""
    app = Host()
    app.hold_keys()
    async with app.run_test() as pilot:
        for key in ("slash", "4", "ctrl+j", "down", "5"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await pilot.pause()
        assert app.query_one("#line", Input).value == ""
        app.release_keys()
        await until(pilot, lambda: not app._waiting_keys and not app._key_on_its_way)
        assert app.query_one("#line", Input).value == "4"
        assert app.query_one(Numbers).typed == ["", "5"]


@pytest.mark.behaviour("keys-in-order-from-the-start")
async def test_enter_that_came_before_the_list_opens_its_first_run(
    cockpit: Callable[..., CockpitApp], fake: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    pressed, poll = threading.Event(), Fleet.poll

    def poll_late(fleet: Fleet) -> FleetNews:
        assert pressed.wait(PATIENCE)
        return poll(fleet)

    monkeypatch.setattr(Fleet, "poll", poll_late)
    fake.begin().started().epochs(1)
    app = cockpit()
    async with app.run_test(size=(80, 24)) as pilot:
        app.post_message(events.Key("ctrl+j", None))
        await pilot.pause()
        pressed.set()
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
