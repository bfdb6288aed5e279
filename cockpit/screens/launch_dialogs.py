"""What the launch form asks on its own: several lines of YAML, where to save, whether to leave."""

from __future__ import annotations

from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Input, Static, TextArea
from textual.worker import Worker, WorkerState

from cockpit.core.config.fields import Field
from cockpit.core.launch.form import LaunchForm
from cockpit.core.launch.saving import save_config
from cockpit.core.text import plain
from cockpit.screens.dialog import Dialog
from cockpit.widgets.heading import literal
from engines.basics import yaml12
from engines.basics.errors import UserError


class BlockScreen(Dialog[str | None]):
    """Edits a list or section as YAML; gives its text, or None where it stays as it was."""

    CSS_PATH = "launch_dialogs.tcss"
    BINDINGS = [
        Binding("ctrl+s", "take", "accept", id="block.take", tooltip="Use the text as the value", priority=True),
        Binding("escape", "dismiss(None)", "cancel", id="block.leave", tooltip="Keep the old value"),
    ]

    def __init__(self, field: Field, text: str) -> None:
        super().__init__()
        self._field, self._text = field, text

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="block") as dialog:
            dialog.border_title = literal(self._field.name)
            dialog.border_subtitle = "ctrl+s accept   escape cancel"
            yield Static(f"{plain(self._field.type)} · {plain(self._field.help)}", markup=False, classes="about")
            yield TextArea(self._text, compact=True, show_line_numbers=True)
            yield Static(markup=False, classes="fault")

    def action_take(self) -> None:
        text = self.query_one(TextArea).text
        try:
            yaml12.read(text)
        except yaml12.YamlError as error:
            line, _, what = str(error).partition(": ")
            self.query_one(".fault", Static).update(f"✖ line {line}: {plain(what)}.")
        else:
            self.dismiss(text)


class SaveScreen(Dialog[Path | None]):
    """Saves a form as a new config file; gives its path, or None where nothing was saved."""

    CSS_PATH = "launch_dialogs.tcss"
    BINDINGS = [Binding("escape", "dismiss(None)", "close", id="save.close", tooltip="Close without saving")]

    def __init__(self, form: LaunchForm, suggestion: str) -> None:
        super().__init__()
        self._form, self._suggestion = form, suggestion
        self._to_replace: Path | None = None
        """The file that the user knows is there."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="save") as dialog:
            dialog.border_title = "Save as"
            dialog.border_subtitle = "enter save   escape close"
            yield Input(self._suggestion, compact=True)
            yield Static(markup=False, classes="fault")

    @on(Input.Submitted)
    def _save(self, event: Input.Submitted) -> None:
        if not (typed := event.value.strip()):
            return
        path = Path(typed).expanduser()

        def save() -> Path | str:
            try:
                return save_config(self._form, path, overwrite=path == self._to_replace)
            except FileExistsError as error:
                self._to_replace = path
                return f"{error} Press enter again to replace it."
            except UserError as error:
                return str(error)

        self._say("")
        self.run_worker(save, thread=True, exclusive=True)

    @on(Worker.StateChanged)
    def _saved(self, event: Worker.StateChanged) -> None:
        if event.state != WorkerState.SUCCESS:
            return
        if isinstance(result := event.worker.result, Path):
            self.dismiss(result)
        elif isinstance(result, str):
            self._say(f"✖ {plain(result)}")

    def _say(self, text: str) -> None:
        self.query_one(".fault", Static).update(text)


class LeaveScreen(Dialog[bool]):
    """Asks before changes are given up; True where the form is to be left."""

    CSS_PATH = "launch_dialogs.tcss"
    BINDINGS = [
        Binding("escape,enter", "dismiss(False)", "stay", id="leave.stay", tooltip="Back to the form"),
        Binding("d", "dismiss(True)", "discard", id="leave.discard", tooltip="Close the form and discard its changes"),
    ]

    def __init__(self, changes: int) -> None:
        super().__init__()
        self._changes = changes

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="leave") as dialog:
            dialog.border_title = "Close the form"
            many = "1 change" if self._changes == 1 else f"{self._changes} changes"
            yield Static(f"{many} not saved.", markup=False, classes="about")
            yield Static("[b $accent]enter[/]  stay: `a` saves them as a file")
            yield Static("    [b $accent]d[/]  discard them and close")
