"""Start a run, first step: which config, of which project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from cockpit.core.config.configs import ConfigFile, ProjectConfigs, by_project, find_configs
from cockpit.core.launch.form import LaunchForm, new_form, open_form
from cockpit.core.text import plain
from cockpit.screens.palette import ActionProvider
from cockpit.widgets.footer import Footer
from cockpit.widgets.heading import heading, literal
from engines.basics.errors import UserError

Open = Callable[[], LaunchForm]


class ConfigList(OptionList):
    BINDINGS = [Binding("enter", "select", "open", id="launch.open", tooltip="Open the config under the cursor")]


class LaunchScreen(Screen[None]):
    CSS_PATH = "launch.tcss"
    COMMANDS = {ActionProvider}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]
    AUTO_FOCUS = "#configs"
    BINDINGS = [
        Binding("slash", "type", "path", id="launch.path", tooltip="Type the path of a config"),
        Binding("escape", "back", "back", id="launch.back", tooltip="Back, without starting a run"),
    ]

    @dataclass
    class Back(Message):
        """The person starts nothing."""

    @dataclass
    class Opened(Message):
        """A config is read and its form can be shown."""

        form: LaunchForm

    @dataclass
    class Found(Message):
        """The configs there are."""

        groups: list[ProjectConfigs]

    @dataclass
    class Failed(Message):
        """A config cannot be opened: sentences for the person."""

        text: str

    def __init__(self) -> None:
        super().__init__()
        self._choices: dict[str, tuple[Open, ConfigFile | None]] = {}
        """What opens each option of the list, by its id, and the file it is of."""

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        with Horizontal(id="body"):
            with Vertical(id="left", classes="pane") as pane:
                pane.border_title = "Configs"
                yield ConfigList(id="configs", markup=False)
                yield Static("Looking for configs …", id="empty", markup=False)
            with VerticalScroll(id="preview", classes="pane", can_focus=False):
                yield Static(id="text", markup=False)
        yield Static(id="fault", markup=False)
        yield Input(placeholder="/  path of a config …", id="path", compact=True)
        yield Footer()

    def on_mount(self) -> None:
        self.query_one("#title", Static).update(heading("New run", "choose a config"))
        self._in_thread(lambda: self.post_message(self.Found(by_project(find_configs()))))

    @on(Found)
    def _show(self, message: Found) -> None:
        listed = self.query_one("#configs", OptionList)
        for group in message.groups:
            listed.add_option(Option(self._heading(group), disabled=True))
            for config in group.configs:
                self._offer(_prompt(config), partial(open_form, config.path), config)
            if not group.broken and not group.configs:
                self._offer(Text.assemble(("  + new from defaults", "bold")), partial(new_form, group.name), None)
        if self._choices:
            self.query_one("#empty").display = False
            listed.action_first()
        else:
            listed.display = False
            self.query_one("#empty", Static).update("No project installed and no config found here.")
            self.action_type()

    def _heading(self, group: ProjectConfigs) -> Content:
        return Content.assemble(
            (plain(group.name) or "other files", "bold $name"),
            (f"  {plain(group.title)}", "$quiet"),
            (f"✖ {plain(group.broken)}" if group.broken else "", "$bad"),
        )

    def _offer(self, prompt: Text, opens: Open, config: ConfigFile | None) -> None:
        key = str(len(self._choices))
        self._choices[key] = (opens, config)
        self.query_one("#configs", OptionList).add_option(Option(prompt, id=key))

    @on(OptionList.OptionHighlighted)
    def _preview(self, event: OptionList.OptionHighlighted) -> None:
        _, config = self._choices.get(event.option_id or "", (None, None))
        preview = self.query_one("#preview")
        preview.border_title = literal(str(config.path) if config else "")
        lines = config.text.splitlines() if config else []
        self.query_one("#text", Static).update(Text("\n".join(map(plain, lines))))

    # -- choosing --------------------------------------------------------------------------------------------------

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        if event.option_id in self._choices:
            self._open(self._choices[event.option_id][0])

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        if typed := event.value.strip():
            self._open(partial(open_form, Path(typed).expanduser()))

    def _open(self, opens: Open) -> None:
        def read() -> None:
            try:
                form = opens()
            except (UserError, OSError) as error:
                self.post_message(self.Failed(str(error)))
            except Exception as error:  # a third party's config model may fail in any way
                self.post_message(self.Failed(f"The config model cannot be loaded ({type(error).__name__}: {error})."))
            else:
                self.post_message(self.Opened(form))

        self._say("")
        self._in_thread(read)

    def _in_thread(self, work: Callable[[], object]) -> None:
        self.run_worker(work, thread=True, group="launch", exclusive=True)

    @on(Failed)
    def _tell(self, message: Failed) -> None:
        self._say(message.text)

    def _say(self, text: str) -> None:
        self.query_one("#fault", Static).update("\n".join(map(plain, text.splitlines())))

    def action_type(self) -> None:
        self.query_one("#path").focus()

    def action_back(self) -> None:
        listed = self.query_one("#configs", OptionList)
        if self.focused is not listed and listed.display:
            listed.focus()
        else:
            self.post_message(self.Back())


def _prompt(config: ConfigFile) -> Text:
    return Text.assemble(
        "  ", (plain(config.path.name), "bold"), (f"  {plain(str(config.path.parent))}\n", "dim"),
        ("  " + (plain(config.about) or "—"), "dim"), overflow="ellipsis", no_wrap=True,
    )  # fmt: skip
