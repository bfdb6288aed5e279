"""What `engines.check` says about a config: asked in a process, given up on demand, marked where it is out of date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from cockpit.core.engine_question import EngineQuestion, GivenUp
from cockpit.core.launch.check_facts import facts_of
from cockpit.core.text import fit_left, plain
from cockpit.widgets.heading import literal
from engines.basics.errors import UserError

NAME_WIDTH = 12
HINT = "press c to read the data, build the model and estimate memory, disk and time"


class CheckPane(VerticalScroll):
    DEFAULT_CSS = "CheckPane.-stale #facts { text-opacity: 60%; }"

    @dataclass
    class Changed(Message):
        """A check began or ended."""

    @dataclass
    class Progressed(Message, bubble=False):
        """The check goes on."""

        question: EngineQuestion
        line: str

    @dataclass
    class Answered(Message, bubble=False):
        """The check is done: what it found, or sentences."""

        question: EngineQuestion
        found: Mapping[str, Any] | str

    def __init__(self) -> None:
        super().__init__(id="check", classes="pane")
        self.border_title = "Check"
        self._question: EngineQuestion | None = None
        self._arguments: Sequence[str] = ()
        self._found: Mapping[str, Any] | None = None

    def compose(self) -> ComposeResult:
        yield Static(HINT, id="facts", markup=False)

    def on_unmount(self) -> None:
        if self._question is not None:
            self._question.cancel()

    @property
    def running(self) -> bool:
        return self._question is not None

    def found_for(self, arguments: Sequence[str]) -> Mapping[str, Any] | None:
        """What was found, if it was found for these arguments."""
        return self._found if list(arguments) == list(self._arguments) else None

    def ask(self, title: str, arguments: Sequence[str], options: Sequence[str] = ()) -> None:
        """Check the config and overrides that `arguments` name; `options` say how."""
        self._arguments, self._found = list(arguments), None
        self._question = question = EngineQuestion("engines.check", [*arguments, *options])
        self.border_title = literal(title)
        self._say("reading data and building the model …", "quiet")

        def ask() -> None:
            try:
                found = question.answer(lambda line: self.post_message(self.Progressed(question, line)))
            except GivenUp:
                return
            except (UserError, OSError) as error:
                self.post_message(self.Answered(question, str(error)))
            else:
                self.post_message(self.Answered(question, found))

        self.run_worker(ask, thread=True, group="check")
        self.post_message(self.Changed())

    def give_up(self) -> None:
        if self._question is not None:
            self._question.cancel()
            self._question = None
            self._say("cancelled", "quiet")
            self.post_message(self.Changed())

    def compare(self, arguments: Sequence[str]) -> None:
        """Say whether the answer is still that for the settings as they are."""
        stale = self._found is not None and self.found_for(arguments) is None
        self.set_class(stale, "-stale")
        words = "x cancel" if self.running else "out of date: settings have changed" if stale else ""
        if words != self.border_subtitle:
            self.border_subtitle = words

    @on(Progressed)
    def _progress(self, message: Progressed) -> None:
        if message.question is self._question:
            self._say(plain(message.line), "quiet")

    @on(Answered)
    def _answered(self, message: Answered) -> None:
        if message.question is not self._question:
            return
        self._question = None
        if isinstance(message.found, str):
            self._say("\n".join(f"✖ {plain(line)}" for line in message.found.splitlines()), "bad")
        else:
            self._found = message.found
            self.query_one("#facts", Static).update(_words(message.found))
        self.post_message(self.Changed())

    def _say(self, text: str, colour: str) -> None:
        self.query_one("#facts", Static).update(Content.styled(text, f"${colour}"))


def _words(found: Mapping[str, Any]) -> Content:
    """Faults first, then facts as names and words: what a run takes before what the data holds."""
    lines = [Content.styled(f"✖ {plain(fault)}", "$bad") for fault in found["faults"]]
    if not lines:
        lines.append(Content.styled("✔ OK", "$good"))
    facts = facts_of(dict(found))
    for name in sorted(facts, key=lambda name: name.startswith("data ")):
        if words := facts[name]:
            name = fit_left(plain(name), max(NAME_WIDTH, cell_len(name))) + "  "
            lines.append(Content.assemble((name, "$quiet"), plain(words)))
    return Content("\n").join(lines)
