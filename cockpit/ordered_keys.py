"""Keys and pasted text in the order in which they came, however fast.

Textual hands a key to the focused widget; only what no widget wants comes back to the app, which then looks for a
binding. Of keys that arrive together, as over a slow line, the second reaches the widget before the first one's binding
has moved cursor or focus: `↓ 5` would set the number above, `/delete` would open a dialog. So each key waits until the
one before has been through, and with it what it led to: enter in a field is passed on in messages from widget to widget
until one of them moves the focus. What is pasted waits as one key. Keys of the first moments are held until the screen
that they are meant for is filled.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from textual import events, on
from textual.app import App
from textual.driver import Driver
from textual.message import Message
from textual.message_pump import MessagePump
from textual.timer import Timer
from textual.widget import Widget

from cockpit.pasted import take_pastes_whole

KeyOrPaste = events.Key | events.Paste

PATIENCE_SECONDS = 0.5
"""How long a key is waited for; then the next is given: a widget that is gone, or that waits, gives nothing back."""

HOLD_SECONDS = 10.0
"""How long keys are held at most while the first screen fills."""
NEVER_HELD = ("ctrl+c", "ctrl+q")
MOMENT_SECONDS = 0.001
"""Until it is looked again whether a key has done all that it leads to."""


class OrderedKeysApp(App[None]):
    """An app that gives one key at a time."""

    class Through(Message):
        """Follows a key, by the way that the key takes from its `taker`; `turn` counts the keys given."""

        def __init__(self, taker: Widget, turn: int) -> None:
            super().__init__()
            self.taker, self.turn = taker, turn
            self.set_sender(taker)

    def __init__(self) -> None:
        super().__init__()
        self._waiting_keys: deque[KeyOrPaste] = deque()
        self._key_on_its_way = False
        self._held = False
        self._turn = 0
        self._patience: Timer | None = None
        self._keys_went_to: MessagePump | None = None
        """The screen that was there for the last key."""

    def get_driver_class(self) -> type[Driver]:
        driver = super().get_driver_class()
        take_pastes_whole(driver)
        return driver

    def hold_keys(self) -> None:
        """Keep keys until `release_keys`, or for `HOLD_SECONDS`: what they are meant for is not on the screen yet."""
        self._held = True

    def release_keys(self) -> None:
        """Give the keys that were held, in their order."""
        if self._held:
            self._held = False
            self.call_later(self._give_next, self._turn)

    def on_load(self) -> None:
        if self._held:
            self.set_timer(HOLD_SECONDS, self.release_keys)

    async def on_event(self, event: events.Event) -> None:
        if not isinstance(event, KeyOrPaste) or event.is_forwarded:
            await super().on_event(event)
        elif self._held and not (isinstance(event, events.Key) and event.key in NEVER_HELD):
            self._waiting_keys.append(_as_meant(event))
        elif self._key_on_its_way:
            self._waiting_keys.append(event)
        else:
            await self._give(event)

    async def _give(self, key: KeyOrPaste) -> None:
        self._key_on_its_way, self._keys_went_to = True, self.screen
        taker = self.focused or self.screen
        await super().on_event(key)
        self._follow(taker)

    def _follow(self, taker: Widget) -> None:
        """Send a messenger after what `taker` has been given, and wait for it, but not for ever."""
        self._turn += 1
        if self._patience is not None:
            self._patience.stop()
        self._patience = self.set_timer(PATIENCE_SECONDS, partial(self._give_next, self._turn))
        self._key_on_its_way = taker.post_message(self.Through(taker, self._turn))

    @on(Through)
    def _come_through(self, message: Through) -> None:
        self._let_it_finish(message.taker, message.turn)

    def _let_it_finish(self, taker: Widget, turn: int) -> None:
        """Wait until nothing waits on the way; what was put off for the app, as the focus, stands in line then.

        Without further messengers: a screen that the key has closed would take one along.
        """
        way = (node for node in taker.ancestors_with_self if node is not self and node.is_running)
        if any(node.message_queue_size for node in way):
            self.set_timer(MOMENT_SECONDS, partial(self._let_it_finish, taker, turn))
        else:
            self.call_later(self._give_next, turn)

    async def _give_next(self, turn: int) -> None:
        """Give the key after the one of `turn`, unless that has happened: a key is through, or late, only once."""
        if turn != self._turn:
            return
        self._key_on_its_way = False
        if self._waiting_keys and self.screen is not self._keys_went_to:
            self._keys_went_to = self.screen  # a new one: it is to be there, with its focus, before it has keys
            self._follow(self.screen)
        if self._waiting_keys and not self._key_on_its_way:
            await self._give(self._waiting_keys.popleft())


def _as_meant(event: KeyOrPaste) -> KeyOrPaste:
    """A terminal that is not set up yet makes a line feed of enter, which is read as ctrl+j."""
    if isinstance(event, events.Key) and event.key == "ctrl+j":
        return events.Key("enter", "\r")
    return event
