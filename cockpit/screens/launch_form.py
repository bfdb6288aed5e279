"""Start a run, second step: its settings as a form, checked as the file would be, and the command that does it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Input

from cockpit.core.launch.devices import Devices, look_at_devices
from cockpit.core.launch.form import NAME, LaunchForm, open_form
from cockpit.core.text import plain
from cockpit.screens.form_editing import FormEditingScreen
from cockpit.screens.launch_dialogs import LeaveScreen, SaveScreen
from cockpit.screens.launch_words import DEVICE, about_start, form_title
from cockpit.screens.palette import ActionProvider
from cockpit.widgets.check_pane import CheckPane
from cockpit.widgets.field_editor import FieldEditor
from cockpit.widgets.footer import Footer
from cockpit.widgets.form_view import FormView
from cockpit.widgets.steady import Steady
from engines.contract.rundir import RunDirectory
from engines.host.machine import Machine
from engines.runs import launch

QUEUE = ("launch", "queue")


class LaunchFormScreen(FormEditingScreen):
    CSS_PATH = "launch_form.tcss"
    CHANGING = ("edit", "start", "wait", "check", "try", "give_up", "save", "step", "reset", "undo", "back")
    COMMANDS = {ActionProvider}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]
    AUTO_FOCUS = "#form"
    BINDINGS = [
        FormEditingScreen.EDIT,
        Binding("g", "start", "start", id="launch.start", tooltip="Start the run and show it"),
        Binding(
            "w",
            "wait",
            "start when free",
            show=False,
            id="launch.wait",
            tooltip="Start it as soon as its device is free",
        ),
        Binding(
            "c",
            "check",
            "check",
            id="launch.check",
            tooltip="Read the data, build the model, estimate memory, disk and time",
        ),
        Binding(
            "t", "try", "try", id="launch.try", tooltip="Run a minute of real steps: measures speed, memory, time, cost"
        ),
        Binding("x", "give_up", "cancel", id="launch.give-up", tooltip="Cancel the running check"),
        Binding("a", "save", "save as", id="launch.save", tooltip="Save the settings as a new config file"),
        *FormEditingScreen.EDITING,
        Binding("y", "copy", "copy command", show=False, id="launch.copy", tooltip="Copy the command line"),
        Binding("escape", "back", "back", show=False, id="launch.back", tooltip="Back to the configs"),
    ]

    @dataclass
    class Back(Message):
        """The person wants another config."""

    @dataclass
    class Started(Message):
        """A run is under way."""

        run: RunDirectory

    @dataclass
    class Looked(Message):
        """The devices are known."""

        devices: Devices

    @dataclass
    class Reopened(Message):
        """The settings were saved, and the form is now one over that file."""

        form: LaunchForm

    def __init__(self, form: LaunchForm, machine: Machine, folder: Path) -> None:
        super().__init__(form)
        self._machine, self._folder = machine, folder
        self._starting = False

    def compose(self) -> ComposeResult:
        yield Steady(id="title", markup=False)
        with Container(id="body"):
            with Container(id="fields"):
                yield FormView()
                yield FieldEditor()
                yield Input(placeholder="filter: words of a field's name or help", id="filter", compact=True)
            with Vertical(id="side"):
                with VerticalScroll(id="about", classes="pane", can_focus=False) as about:
                    about.border_title = "Field"
                    yield Steady(id="field", markup=False)
                yield CheckPane()
        yield Steady(id="told", markup=False)
        yield Steady(id="command", markup=False)
        yield Steady(id="state", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        self.query_one(FormView).say("● changed   ◦ not the default   ✖ error")
        self._show_title()
        self._changed()
        self._in_thread("devices", lambda: self.post_message(self.Looked(look_at_devices(self._machine, self._folder))))

    # -- showing ---------------------------------------------------------------------------------------------------

    @on(Looked)
    def _take_devices(self, message: Looked) -> None:
        self._devices = message.devices
        self._form.suggest(DEVICE, message.devices.choices)
        self._show()

    def _show_title(self) -> None:
        self.query_one("#title", Steady).update(form_title(self._form))

    def show_rest(self) -> None:
        check = self.query_one(CheckPane)
        command = self._form.command if self._form.path else "press a to save: a run starts from a file"
        self.query_one("#command", Steady).update(Content.assemble(("$ ", "$accent"), plain(command)))
        self.query_one("#state", Steady).update(
            about_start(self._form, self._faults, check.found_for(self._form.arguments), self._devices)
        )
        told = [*self._told.splitlines(), *self._faults_at(())]
        self.query_one("#told", Steady).update(Text("\n".join(map(plain, told))))
        check.compare(self._form.arguments)

    # -- checking --------------------------------------------------------------------------------------------------

    def action_check(self) -> None:
        self._ask("Check")

    def action_try(self) -> None:
        self._ask("Try a minute", "--try")

    def _ask(self, title: str, *options: str) -> None:
        self.add_class("-checked")
        self.query_one(CheckPane).ask(title, self._form.arguments, options)

    def action_give_up(self) -> None:
        self.query_one(CheckPane).give_up()

    @on(CheckPane.Changed)
    def _check_changed(self) -> None:
        self._show()

    # -- starting, saving, leaving ---------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        editing = isinstance(self.focused, FieldEditor)
        running = any(pane.running for pane in self.query(CheckPane))  # none while the screen is being made
        if action == "give_up":
            return running
        if action == "wait":
            return any(field.key == QUEUE for field in self._form.fields) and (self._can_start() or None)
        if action == "start":
            return self._can_start() or None
        if action in ("check", "try"):
            return (self._form.path is not None and not running) or None
        if editing or self._starting:
            return action not in ("edit", "step", "reset", "undo", "back", "save") and super().check_action(
                action, parameters
            )
        return super().check_action(action, parameters)

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        if action not in ("start", "wait", "check", "try") or self._starting:
            return ""
        if self._form.path is None:
            return f"Save the settings first (key {self.key_of('launch.save')}): a run starts from a file."
        if action in ("check", "try"):
            return f"A check is running; {self.key_of('launch.give-up')} cancels it."
        if self._faults is None:
            return "The settings are still being checked."
        more = f" {len(self._faults) - 1} more." if len(self._faults) > 1 else ""
        return f"Cannot start: {self._faults[0].sentence}{more}" if self._faults else ""

    def lead(self, action: str) -> None:
        if action in ("start", "wait") and self._faults:
            self.action_fault()

    def _can_start(self) -> bool:
        return self._form.path is not None and self._faults == () and not self._starting

    def action_wait(self) -> None:
        queue = next(field for field in self._form.fields if field.key == QUEUE)
        self._form.set(queue, "true")
        self._show()
        self.action_start()

    def action_start(self) -> None:
        form = self._form
        if form.path is None or self._starting:
            return
        path, overrides, label = form.path, form.overrides, form.label
        self._starting = True
        self._told = "starting …"
        self._show()

        def start() -> None:
            run = launch.prepare_training(path, overrides, label=label)
            launch.start(run)
            self.post_message(self.Started(run))

        self._in_thread("start", start)

    @on(FormEditingScreen.Refused)
    def _tell(self, message: FormEditingScreen.Refused) -> None:
        self._starting, self._told = False, message.text
        self._show()

    def action_save(self) -> None:
        own = self._form.path or Path("configs") / f"{self._form.spec.name}_new.yaml"
        suggestion = own.with_stem(f"{own.stem}_new") if self._form.path else own

        def saved(path: Path | None) -> None:
            if path is not None:
                self._in_thread("reopen", lambda: self._reopen(path))

        self.app.push_screen(SaveScreen(self._form, str(suggestion)), saved)

    def _reopen(self, path: Path) -> None:
        """Runs in a worker's thread."""
        form = open_form(path)
        form.set(NAME, self._form.label)
        self.post_message(self.Reopened(form))

    @on(Reopened)
    def _take_form(self, message: Reopened) -> None:
        self._form = message.form
        if self._devices is not None:
            self._form.suggest(DEVICE, self._devices.choices)
        self._show_title()
        self._changed()
        self.notify(f"Saved as {plain(str(message.form.path))}.", markup=False)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._form.command)
        self.notify("Command copied.", markup=False)

    def action_back(self) -> None:
        """Out of the filter first, then out of the form; asks where changes would be lost."""
        filter_ = self.query_one("#filter", Input)
        if self.has_class("-filtered"):
            filter_.value = ""
            self.remove_class("-filtered")
            self.query_one(FormView).focus()
        elif self._form.overrides:
            self.app.push_screen(LeaveScreen(len(self._form.overrides)), self._leave)
        else:
            self._leave(True)

    def _leave(self, discard: bool | None) -> None:
        if discard:
            self.post_message(self.Back())
