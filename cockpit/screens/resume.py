"""Before a run goes on, or is forked: what may be changed, and what becomes of each change."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from cockpit.core import failures
from cockpit.core.format import count, number
from cockpit.core.run import going_on
from cockpit.core.run.going_on import USUAL, Outlook
from cockpit.core.runs.labels import LONGEST_LABEL
from cockpit.core.text import plain
from cockpit.screens.dialog import Dialog
from cockpit.widgets.heading import literal
from engines.basics.amounts import size
from engines.basics.errors import UserError
from engines.contract.rundir import RunDirectory

if TYPE_CHECKING:
    from engines.runs.fork import ForkPoint

MORE = "section.key=value …"


@dataclass(frozen=True)
class Choice:
    """What the person asked for."""

    overrides: list[str]
    point: ForkPoint | None = None
    label: str = ""
    trusted: bool = False
    """It is a run from elsewhere, and what it runs was seen."""


class ResumeScreen(Dialog[Choice | None]):
    """Gives the settings to resume with. Enter starts, once it is known what becomes of them."""

    CSS_PATH = "resume.tcss"
    BINDINGS = [Binding("escape", "dismiss(None)", "Close", id="resume.close", tooltip="Close without starting")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (34, "-tall")]
    VERB = "Resume"

    @dataclass
    class Seen(Message):
        """What would become of the settings typed when `asked` was the newest question; or what is wrong with them."""

        asked: int
        outlook: Outlook | None
        fault: str = ""

    @dataclass
    class Since(Message):
        """What else has changed since the run was last trained, a sentence each."""

        sentences: list[str]

    def __init__(self, run: RunDirectory, run_id: str) -> None:
        super().__init__()
        self.run = run
        self._run_id = run_id
        self._usual: Mapping[str, str] = {}
        self._asked = 0
        self._ready = False
        """The newest question is answered, and it can start."""
        self._go = False
        """Enter was pressed before the answer came."""
        self._elsewhere: Sequence[str] = ()
        self._asked_for_trust = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="go-on") as dialog:
            dialog.border_title = literal(f"{self.VERB} {self._run_id}")
            dialog.border_subtitle = f"enter {self.VERB.lower()}   tab next field   escape close"
            yield from self.choices()
            with Horizontal(classes="usual"):
                for name in USUAL:
                    yield Static(name, classes="name", markup=False)
                    yield Input(id=name, compact=True)
            with Horizontal(classes="more"):
                yield Static("other", classes="name", markup=False)
                yield Input(id="more", placeholder=MORE, compact=True)
            with VerticalScroll(id="fates"):
                yield Static(id="lines", markup=False)
            yield Static(id="since", markup=False)
            yield Static(id="fault", markup=False)

    def choices(self) -> Iterator[Widget]:
        """What there is to choose beside the settings."""
        yield from ()

    def on_mount(self) -> None:
        self.run_worker(self._look_back, thread=True)
        self.begin()

    def begin(self) -> None:
        """Apart from `on_mount`, which Textual calls of every class."""
        self.query_one("#epochs", Input).focus()
        self.ask()

    # -- asking what would become of it ------------------------------------------------------------------------------

    def look(self, overrides: list[str]) -> Outlook:
        """Runs in a worker's thread. Raises `UserError`."""
        return going_on.look_at_resume(self.run, overrides)

    def _look_back(self) -> None:
        """In a worker: it reads data. Where it is not known, the answer about the settings says why."""
        with contextlib.suppress(UserError, OSError):
            self.post_message(self.Since(going_on.changed_since(self.run)))

    @on(Since)
    def _show_since(self, message: Since) -> None:
        lines = "\n".join(f"▲ {plain(sentence)}" for sentence in message.sentences)
        since = self.query_one("#since", Static)
        since.display = bool(lines)
        since.update(lines)

    def ask(self) -> None:
        self._asked += 1
        self._ready = False
        asked, typed = self._asked, self._typed()
        usual, more = self._usual, self.query_one("#more", Input).value

        def look() -> None:
            overrides = going_on.overrides_of(typed, usual, more) if usual else []
            self.post_message(self.Seen(asked, self.look(overrides)))

        guarded = failures.told(look, lambda sentence: self.post_message(self.Seen(asked, None, sentence)))
        self.run_worker(guarded, thread=True, exclusive=True, group="look")

    def _typed(self) -> dict[str, str]:
        return {name: self.query_one(f"#{name}", Input).value for name in USUAL}

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        if event.input.id != "label" and self._usual:
            self._go = False
            self.ask()

    @on(Seen)
    def _show(self, message: Seen) -> None:
        if message.asked != self._asked:
            return  # something else was typed meanwhile
        outlook = message.outlook
        fault = outlook.why_not if outlook is not None else message.fault
        if outlook is not None:
            self._elsewhere = outlook.elsewhere
            self._fill(outlook.usual)
            self.query_one("#lines", Static).update(self._lines(outlook))
        self.query_one("#fault", Static).update(f"✖ {plain(fault)}" if fault else "")
        self._ready = outlook is not None and not fault
        if self._go and self._ready:
            self.start()
        self._go = False

    def _fill(self, usual: Mapping[str, str]) -> None:
        """Show what is in force in every field that was not changed."""
        before, self._usual = self._usual, usual
        for name in USUAL:
            field = self.query_one(f"#{name}", Input)
            if field.value == before.get(name, "") and field.value != usual[name]:
                with field.prevent(Input.Changed):
                    field.value = usual[name]
                if field.has_focus:
                    field.action_select_all()  # as when one comes to a field: typing replaces

    def _lines(self, outlook: Outlook) -> Table | Content:
        if not outlook.lines:
            return Content.styled("no settings changed", "$quiet")
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column()
        table.add_column(ratio=1)
        for key, change, fate in outlook.lines:
            mark = "✓" if fate == "applied" else "✖" if fate.startswith("ignored") else "▲"
            table.add_row(Text(plain(key)), Text(plain(change)), Text(f"{mark} {plain(fate)}"))
        return table

    # -- starting ----------------------------------------------------------------------------------------------------

    @on(Input.Submitted)
    def _enter(self) -> None:
        if self._ready:
            self.start()
        else:
            self._go = True

    def start(self) -> None:
        """Of a run from elsewhere only once what it runs was shown and `enter` pressed again."""
        if self._elsewhere and not self._asked_for_trust:
            self._asked_for_trust = True
            sentences = "\n".join(f"▲ {plain(sentence)}" for sentence in self._elsewhere)
            self.query_one("#fault", Static).update(f"{sentences}\n▲ enter again if you trust it; escape if not")
            return
        more = self.query_one("#more", Input).value
        self.dismiss(self.choice(going_on.overrides_of(self._typed(), self._usual, more)))

    def choice(self, overrides: list[str]) -> Choice:
        return Choice(overrides, trusted=self._asked_for_trust)


class ForkScreen(ResumeScreen):
    """Gives the checkpoint, the settings and the label of a fork."""

    VERB = "Fork"

    @dataclass
    class Found(Message):
        """The run's checkpoints."""

        points: list[ForkPoint]

    def __init__(self, run: RunDirectory, run_id: str) -> None:
        super().__init__(run, run_id)
        self._points: list[ForkPoint] = []
        self._point: ForkPoint | None = None

    def choices(self) -> Iterator[Widget]:
        yield OptionList(id="points", compact=True)
        with Horizontal(classes="more"):
            yield Static("label", classes="name", markup=False)
            yield Input(id="label", max_length=LONGEST_LABEL, compact=True)

    def begin(self) -> None:
        self.query_one(OptionList).focus()

        def find() -> None:
            self.post_message(self.Found(going_on.points_of(self.run)))

        guarded = failures.told(find, lambda sentence: self.post_message(self.Seen(self._asked, None, sentence)))
        self.run_worker(guarded, thread=True)

    @on(Found)
    def _take_points(self, message: Found) -> None:
        self._points = message.points
        self.query_one(OptionList).add_options([Option(_row(point)) for point in message.points])
        self.query_one(OptionList).highlighted = 0

    @on(OptionList.OptionHighlighted)
    def _take_point(self, event: OptionList.OptionHighlighted) -> None:
        self._point = self._points[event.option_index]
        self._go = False
        self.ask()

    @on(OptionList.OptionSelected)
    def _point_chosen(self) -> None:
        self._enter()

    def look(self, overrides: list[str]) -> Outlook:
        assert self._point is not None
        return going_on.look_at_fork(self.run, self._point, overrides)

    def choice(self, overrides: list[str]) -> Choice:
        label = self.query_one("#label", Input).value.strip()
        return Choice(overrides, self._point, label, trusted=self._asked_for_trust)


def _row(point: ForkPoint) -> Text:
    names = ", ".join(name.removesuffix(".pt") for name in point.names)
    where = f"in epoch {point.epoch + 1}" if point.inside else f"epoch {point.epoch}"
    score = f"score {number(point.score)}" if point.score is not None else ""
    return Text(f"{where:<13}step {count(point.step):>9}  {score:<13} {size(point.size):>8}  {plain(names)}")
