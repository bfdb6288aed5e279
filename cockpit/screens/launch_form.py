"""Start a run, second step: its settings as a form, checked as the file would be, and the command that does it."""

from __future__ import annotations

from collections.abc import Callable
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

from cockpit.core import failures
from cockpit.core.config.fields import Field
from cockpit.core.launch.devices import Devices, look_at_devices
from cockpit.core.launch.form import NAME, Fault, LaunchForm, open_form, shown
from cockpit.core.text import plain
from cockpit.screens.changing_keys import ChangingKeysScreen
from cockpit.screens.launch_dialogs import BlockScreen, LeaveScreen, SaveScreen
from cockpit.screens.launch_words import DEVICE, about_field, about_start, field_line, form_title
from cockpit.screens.palette import ActionProvider
from cockpit.widgets.check_pane import CheckPane
from cockpit.widgets.field_editor import FieldEditor
from cockpit.widgets.footer import Footer
from cockpit.widgets.form_view import FormView
from cockpit.widgets.steady import Steady
from engines.contract import launch, yaml12
from engines.contract.machine import Machine
from engines.contract.rundir import RunDirectory

QUEUE = ("launch", "queue")


class LaunchFormScreen(ChangingKeysScreen):
    CSS_PATH = "launch_form.tcss"
    CHANGING = ("edit", "start", "wait", "check", "try", "give_up", "save", "step", "reset", "undo", "back")
    COMMANDS = {ActionProvider}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]
    AUTO_FOCUS = "#form"
    BINDINGS = [
        Binding("enter", "edit", "edit", id="launch.edit", tooltip="Change the value under the cursor"),
        Binding("g", "start", "go", id="launch.start", tooltip="Start the run and show it"),
        Binding(
            "w", "wait", "go when free", show=False, id="launch.wait", tooltip="Start it as soon as its device is free"
        ),
        Binding("c", "check", "check", id="launch.check", tooltip="Read the data, build the model, estimate its needs"),
        Binding("t", "try", "try", id="launch.try", tooltip="Try a minute of real steps: speed, memory, time, cost"),
        Binding("x", "give_up", "give up", id="launch.give-up", tooltip="Give up the check that is running"),
        Binding("a", "save", "save as", id="launch.save", tooltip="Save the settings as a new config file"),
        Binding("u", "undo", "undo", show=False, id="launch.undo", tooltip="Take the last change back"),
        Binding("slash", "filter", "filter", id="launch.filter", tooltip="Show only some of the fields"),
        Binding(
            "backspace,delete", "reset", "reset", show=False, id="launch.reset", tooltip="Back to the file's value"
        ),
        Binding("right,space", "step(1)", "next choice", show=False, id="launch.next", tooltip="The next choice"),
        Binding("left", "step(-1)", "previous choice", show=False, id="launch.previous", tooltip="The choice before"),
        Binding("f", "fault", "next fault", show=False, id="launch.fault", tooltip="Go to the next field with a fault"),
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
    class Validated(Message):
        """What is wrong with the settings as they were after so many changes."""

        version: int
        faults: tuple[Fault, ...]

    @dataclass
    class Looked(Message):
        """The devices are known."""

        devices: Devices

    @dataclass
    class Refused(Message):
        """The run did not start: sentences for the person."""

        text: str

    @dataclass
    class Reopened(Message):
        """The settings were saved, and the form is now one over that file."""

        form: LaunchForm

    def __init__(self, form: LaunchForm, machine: Machine, folder: Path) -> None:
        super().__init__()
        self._form, self._machine, self._folder = form, machine, folder
        self._version = 0
        self._faults: tuple[Fault, ...] | None = None
        """None until they are known for the settings as they are."""
        self._known: tuple[Fault, ...] = ()
        """The faults last known: shown until there are newer ones."""
        self._devices: Devices | None = None
        self._starting = False
        self._told = ""
        """How the start goes: that it is under way, or why it was refused."""

    def compose(self) -> ComposeResult:
        yield Steady(id="title", markup=False)
        with Container(id="body"):
            with Container(id="fields"):
                yield FormView()
                yield FieldEditor()
                yield Input(placeholder="filter: words of a name or its help", id="filter", compact=True)
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
        self.query_one(FormView).say("● changed   ◦ not the default   ✖ fault")
        self._show_title()
        self._changed()
        self._in_thread("devices", lambda: self.post_message(self.Looked(look_at_devices(self._machine, self._folder))))

    def _in_thread(self, group: str, work: Callable[[], object]) -> None:
        guarded = failures.told(work, lambda sentence: self.post_message(self.Refused(sentence)))
        self.run_worker(guarded, thread=True, group=group, exclusive=True)

    # -- showing ---------------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        """The settings are others than before: show them, and find out what is wrong with them."""
        self._version += 1
        self._faults = None
        self._told = ""
        self._show()
        form, version = self._form, self._version
        self._in_thread("validate", lambda: self.post_message(self.Validated(version, form.faults())))

    @on(Validated)
    def _take_faults(self, message: Validated) -> None:
        if message.version == self._version:
            self._faults = self._known = message.faults
            self._show()

    @on(Looked)
    def _take_devices(self, message: Looked) -> None:
        self._devices = message.devices
        self._form.suggest(DEVICE, message.devices.choices)
        self._show()

    def _show_title(self) -> None:
        self.query_one("#title", Steady).update(form_title(self._form))

    def _show(self) -> None:
        lines = [
            field_line(self._form, field, self._faults_at(field.key), self._devices)
            for field in self._form.fields
            if self._passes(field)
        ]
        sections = {line.field.key[:-1] for line in lines} - {()}
        section_faults = {".".join(at): " ".join(found) for at in sections if (found := self._faults_at(at))}
        self.query_one(FormView).show(lines, section_faults)
        check = self.query_one(CheckPane)
        command = self._form.command if self._form.path else "a saves the settings: a run starts from a file"
        self.query_one("#command", Steady).update(Content.assemble(("$ ", "$accent"), plain(command)))
        self.query_one("#state", Steady).update(
            about_start(self._form, self._faults, check.found_for(self._form.arguments), self._devices)
        )
        told = [*self._told.splitlines(), *self._faults_at(())]
        self.query_one("#told", Steady).update(Text("\n".join(map(plain, told))))
        check.compare(self._form.arguments)
        self._show_field()
        self.refresh_keys()

    def _passes(self, field: Field) -> bool:
        words = self.query_one("#filter", Input).value.lower().split()
        return all(word in f"{field.name} {field.help}".lower() for word in words)

    def _faults_at(self, place: tuple[str, ...]) -> list[str]:
        return [fault.sentence for fault in self._known if self._form.place_of(fault.key) == place]

    @on(FormView.Moved)
    def _show_field(self) -> None:
        field = self.query_one(FormView).field
        about = Content("No field has these words.") if field is None else about_field(
            self._form, field, self._faults_at(field.key), self._devices
        )  # fmt: skip
        self.query_one("#field", Steady).update(about)
        self.refresh_keys()

    # -- editing ---------------------------------------------------------------------------------------------------

    @on(FormView.Chosen)
    def action_edit(self) -> None:
        if (field := self.query_one(FormView).field) is None or not self.check_action("edit", ()):
            return
        if field.kind in ("switch", "choice"):
            self.action_step(1)
        elif field.kind == "block":
            text = yaml12.write(self._form.value(field)) if self._form.value(field) else shown(self._form.value(field))
            self.app.push_screen(BlockScreen(field, text), lambda typed: self._set(field, typed))
        else:
            form = self.query_one(FormView)
            self.query_one(FieldEditor).open(self._form.text_of(field), form.value_region)
            self.refresh_keys()

    def _set(self, field: Field, typed: str | None) -> None:
        if typed is not None:
            self._form.set(field, typed)
            self._changed()

    @on(FieldEditor.Accepted)
    def _accept(self, message: FieldEditor.Accepted) -> None:
        form = self.query_one(FormView)
        self._leave_editor()
        if form.field is not None:
            self._set(form.field, message.text)
        if message.move:
            form.action_move(message.move)

    @on(FieldEditor.Left)
    def _leave_editor(self) -> None:
        self.set_focus(self.query_one(FormView))
        self.refresh_keys()

    @on(FormView.Scrolled)
    def _follow_scroll(self) -> None:
        self.query_one(FieldEditor).move_to(self.query_one(FormView).value_region)

    def action_step(self, by: int) -> None:
        if (field := self.query_one(FormView).field) is not None and field.choices:
            self._form.step(field, by)
            self._changed()

    def action_reset(self) -> None:
        if (field := self.query_one(FormView).field) is not None:
            self._form.reset(field)
            self._changed()

    def action_undo(self) -> None:
        if self._form.undo():
            self._changed()

    def action_filter(self) -> None:
        self.add_class("-filtered")
        self.query_one("#filter").focus()

    @on(Input.Changed, "#filter")
    def _filtered(self) -> None:
        self._show()

    @on(Input.Submitted, "#filter")
    def _filter_done(self) -> None:
        self.set_class(bool(self.query_one("#filter", Input).value), "-filtered")
        self.query_one(FormView).focus()

    def action_fault(self) -> None:
        """To the next field with a fault, round and round."""
        form, fields = self.query_one(FormView), self._form.fields
        faulty = [field for field in fields if self._faults_at(field.key) and self._passes(field)]
        if faulty:
            now = next((at for at, field in enumerate(fields) if form.field and field.key == form.field.key), -1)
            form.go_to(next((field for field in faulty if fields.index(field) > now), faulty[0]))

    # -- checking --------------------------------------------------------------------------------------------------

    def action_check(self) -> None:
        self._ask("Check")

    def action_try(self) -> None:
        self._ask("A minute's try", "--try")

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

    @on(Refused)
    def _tell(self, message: Refused) -> None:
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
        self.notify("The command is in the clipboard.", markup=False)

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
