"""Start a run: choose a config, see every fault it has in place, start it detached."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from cockpit.core.configs import ConfigFile, find_configs
from cockpit.core.text import plain
from engines.contract import launch
from engines.contract.errors import UserError
from engines.contract.rundir import RunDirectory


class StartScreen(ModalScreen[RunDirectory | None]):
    CSS_PATH = "start.tcss"
    BINDINGS = [Binding("escape", "dismiss", "Close", id="start.close", tooltip="Start nothing")]

    @dataclass
    class Started(Message):
        run: RunDirectory

    @dataclass
    class Failed(Message):
        text: str

    def __init__(self) -> None:
        super().__init__()
        self._configs: list[ConfigFile] = []
        self._busy = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="start") as dialog:
            dialog.border_title = "Start a run"
            dialog.border_subtitle = "⏎ start   tab list or path   escape close"
            yield OptionList(id="configs", markup=False)
            yield Input(placeholder="path of a config …", id="path")
            with VerticalScroll(id="faults", can_focus=False):
                yield Static(id="fault", markup=False)

    def on_mount(self) -> None:
        self._configs = find_configs()
        options = self.query_one("#configs", OptionList)
        options.add_options(Option(_prompt(config), id=str(index)) for index, config in enumerate(self._configs))
        if self._configs:
            options.highlighted = 0
        else:
            options.display = False
            self.query_one("#path", Input).focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self._start(self._configs[event.option_index].path)

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self._start(Path(event.value.strip()).expanduser())

    def _start(self, config: Path) -> None:
        """Check and start it in a thread; pressing again meanwhile does nothing."""
        if self._busy:
            return
        self._busy = True
        self._say(f"checking and starting {plain(str(config))} …", bad=False)

        def work() -> None:
            try:
                run = launch.prepare_training(config)
                launch.start(run)
            except (UserError, OSError) as error:
                self.post_message(self.Failed(str(error)))
            else:
                self.post_message(self.Started(run))

        self.run_worker(work, thread=True)

    @on(Started)
    def _show_run(self, message: Started) -> None:
        self.dismiss(message.run)

    @on(Failed)
    def _show_faults(self, message: Failed) -> None:
        self._busy = False
        self._say("\n".join(plain(line) for line in message.text.splitlines()), bad=True)

    def _say(self, text: str, *, bad: bool) -> None:
        fault = self.query_one("#fault", Static)
        fault.update(text)
        fault.set_class(bad, "-bad")


def _prompt(config: ConfigFile) -> Text:
    return Text.assemble(
        (plain(config.path.name), "bold"), f"  {plain(str(config.path.parent))}\n", (plain(config.about) or "—", "dim")
    )
