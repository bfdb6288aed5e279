"""Scenes of an interactive engine. The screen knows no project: the engine says what is drawn and which keys there are.

Leaving it ends the engine unless others look at it, since nothing of it is worth keeping. A terminal that dies says
nothing: then the engine ends by itself after a while, and until then `cockpit play` finds it again.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingsMap
from textual.message import Message
from textual.widgets import Static

from cockpit.core.format import bar, count, percent
from cockpit.core.poller import Poller
from cockpit.core.scenes.play import PlayFollower, PlayNews, Viewing
from cockpit.core.states import label
from cockpit.core.text import plain
from cockpit.screens.palette import ActionProvider
from cockpit.screens.polling import PollingScreen
from cockpit.widgets.footer import Footer
from cockpit.widgets.scene_view import PlayHeader, SceneView, Timeline
from cockpit.widgets.steady import Steady
from engines.contract.scenes import Action, Press, Seek

LEAST_SECONDS = 0.1
"""Between two pictures, at least."""
BYTES_PER_SECOND = 7000
"""To a terminal of 80 × 24; a larger one gets more, as its picture has more to say."""
SMALL = 80 * 24
MOST_LARGER = 4.0
BAR_WIDTH = 40
WAITING_BYTES = 600
"""What the progress before the first scene costs, drawn once."""
GONE_SECONDS = 0.5
_ID, _KEY = re.compile(r"[a-z][a-z0-9-]{0,30}"), re.compile(r"[A-Za-z0-9_]{1,24}")


class PlayScreen(PollingScreen):
    CSS_PATH = "play.tcss"
    COMMANDS = {ActionProvider}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]
    OWN = (
        Binding("escape", "back", "back", id="go.back", tooltip="Back; the session ends when its last viewer leaves"),
        Binding(
            "q",
            "leave",
            "quit",
            id="go.leave",
            tooltip="Quit the cockpit; the session ends when its last viewer leaves, runs keep running",
        ),
    )
    BINDINGS = list(OWN)

    class Back(Message):
        """The person wants back to where they came from."""

    class Told(Message):
        """The follower has looked; only the newest counts."""

        def __init__(self, news: PlayNews) -> None:
            super().__init__()
            self.news = news

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, PlayScreen.Told)

    def __init__(self, viewing: Viewing) -> None:
        super().__init__()
        self.run = viewing.run
        self._follower = PlayFollower(viewing)
        self._news: PlayNews | None = None
        self._told: PlayNews | None = None
        self._actions: list[Action] = []
        self._next = 0.0
        self._due = False

    def compose(self) -> ComposeResult:
        yield PlayHeader()
        yield Steady(id="banner", markup=False)
        yield Static(id="waiting", classes="pane", markup=False)
        yield SceneView()
        yield Footer()

    def on_mount(self) -> None:
        self.follow(Poller("play", self._look))

    def on_unmount(self) -> None:
        with contextlib.suppress(OSError):  # then it ends when it has waited long enough
            self._follower.end()

    def _look(self) -> float:
        """Runs in the poller's thread, and waits there for the engine."""
        news = self._follower.poll()
        if news != self._told:
            self._told = news
            self.post_message(self.Told(news))
        return 0.0 if news.live else GONE_SECONDS

    # -- showing ---------------------------------------------------------------------------------------------------

    @on(Told)
    def _take(self, message: Told) -> None:
        self._news = message.news
        wait = self._next - time.monotonic()
        if wait <= 0:
            self._show()
        elif not self._due:
            self._due = True
            self.set_timer(wait, self._show)

    def on_resize(self) -> None:
        if self._news is not None:
            self._take(self.Told(self._news))

    def _show(self) -> None:
        """Draw the newest, and wait as long as the terminal's share of the line takes to carry it."""
        self._due = False
        news = self._news
        if news is None or not self.is_active:
            return
        scene = news.scene
        self.set_class(scene is not None, "-shown")
        if scene is None:
            cost = self._show_waiting(news)
        else:
            self._offer(scene.actions)
            cost = self.query_one(SceneView).show(scene)
        self._show_banner(news)
        name = scene.title if scene else self.run.path.name
        cost += self.query_one(PlayHeader).say(name, *_state(news), scene, news.seat)
        larger = min(max(self.size.width * self.size.height / SMALL, 1.0), MOST_LARGER)
        self._next = time.monotonic() + max(LEAST_SECONDS, cost / (BYTES_PER_SECOND * larger))

    def _show_waiting(self, news: PlayNews) -> int:
        """What the engine does before there is anything to see, or why there never will be."""
        words = Text("\n".join(plain(line) for line in news.log))
        words.append(f"{news.status.detail or 'starting'} …\n" if news.live and news.progress is None else "")
        if (progress := news.progress) is not None and news.live:
            share = progress.done / progress.total if progress.total else 0.0
            words.append(f"{bar(share, BAR_WIDTH):·<{BAR_WIDTH}} {percent(share)}\n")
            words.append(f"{count(progress.done)} of {count(progress.total)} {plain(progress.unit)}")
        waiting = self.query_one("#waiting", Static)
        if waiting.content == words:
            return 0
        waiting.update(words)
        return WAITING_BYTES

    def _show_banner(self, news: PlayNews) -> None:
        """How it ended, when it has; before, why this viewer only watches."""
        banner = self.query_one("#banner", Steady)
        words = plain(news.note) if news.live else _how_ended(news)
        banner.set_class(bool(words), "-shown")
        banner.set_class(news.status.state in ("failed", "lost"), "-bad")
        banner.update(words)

    # -- keys ------------------------------------------------------------------------------------------------------

    def _offer(self, actions: Sequence[Action]) -> None:
        """Bind the engine's keys, where they are keys at all and not the screen's own."""
        if actions == self._actions:
            return
        self._actions = list(actions)
        ours = {binding.key for binding in self.OWN} | {"question_mark", "tab", "enter"}
        bindings = [
            Binding(
                ",".join(keys), f"press('{action.id}')", plain(action.label)[:16], id=f"play.{action.id}",
                show=not action.minor,
                tooltip=plain(action.about or action.label)[:120],
            )
            for action in self._actions
            if _ID.fullmatch(action.id)
            and (keys := [key for key in action.key.split(",") if _KEY.fullmatch(key) and key not in ours])
        ]  # fmt: skip
        self._bindings = BindingsMap([*bindings, *self.OWN])
        self.refresh_bindings()

    def action_press(self, action: str) -> None:
        self._follower.send(Press(action))

    @on(Timeline.Picked)
    def _seek(self, message: Timeline.Picked) -> None:
        if self._news is not None and self._news.scene is not None:
            self._follower.send(Seek(round(message.share * (self._news.scene.total - 1))))

    def action_back(self) -> None:
        self.post_message(self.Back())

    async def action_leave(self) -> None:
        await self.app.run_action("app.leave")


def _state(news: PlayNews) -> tuple[str, str]:
    """What it does now, in words with a sign, and the colour of that."""
    if not news.live:
        return label(news.status.state), "bad" if news.status.state in ("failed", "lost") else "quiet"
    if news.scene is None:
        return label("starting"), "quiet"
    if not news.scene.playing:
        return "‖ paused", "text"
    at_the_end = news.scene.live and news.scene.position == news.scene.total - 1
    return ("● live" if at_the_end else "● playing"), "live"


def _how_ended(news: PlayNews) -> str:
    detail = news.status.detail or (news.log[-1] if news.log else "")
    return plain(f"{label(news.status.state)}: {detail}. press escape to go back.".replace("..", "."))
