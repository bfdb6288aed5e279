"""A form over settings: its fields shown, filtered, edited in place, and checked as the file would be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual import on
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widgets import Input

from cockpit.core import failures
from cockpit.core.config.fields import Field
from cockpit.core.launch.devices import Devices
from cockpit.core.launch.form import Fault, LaunchForm, shown
from cockpit.screens.changing_keys import ChangingKeysScreen
from cockpit.screens.launch_dialogs import BlockScreen
from cockpit.screens.launch_words import about_field, field_line
from cockpit.widgets.field_editor import FieldEditor
from cockpit.widgets.form_view import FormView
from cockpit.widgets.steady import Steady
from engines.basics import yaml12


class FormEditingScreen(ChangingKeysScreen):
    """A subclass composes the widgets, `#filter` and `#field` among them, and shows in `show_rest` what else it has."""

    EDIT = Binding("enter", "edit", "edit", id="launch.edit", tooltip="Change the value under the cursor")
    EDITING = [
        Binding("u", "undo", "undo", show=False, id="launch.undo", tooltip="Undo the last change"),
        Binding("slash", "filter", "filter", id="launch.filter", tooltip="Filter the fields"),
        Binding(
            "backspace,delete", "reset", "reset", show=False, id="launch.reset", tooltip="Back to the file's value"
        ),
        Binding("right,space", "step(1)", "next choice", show=False, id="launch.next", tooltip="Next choice"),
        Binding("left", "step(-1)", "previous choice", show=False, id="launch.previous", tooltip="Previous choice"),
        Binding(
            "f", "fault", "next error", show=False, id="launch.fault", tooltip="Go to the next field with an error"
        ),
    ]

    @dataclass
    class Validated(Message):
        """What is wrong with the settings as they were after so many changes."""

        version: int
        faults: tuple[Fault, ...]

    @dataclass
    class Refused(Message):
        """Something could not be done: sentences for the person."""

        text: str

    def __init__(self, form: LaunchForm) -> None:
        super().__init__()
        self._form = form
        self._version = 0
        self._faults: tuple[Fault, ...] | None = None
        """None until they are known for the settings as they are."""
        self._known: tuple[Fault, ...] = ()
        """The faults last known: shown until there are newer ones."""
        self._devices: Devices | None = None
        self._told = ""
        """What was said last; gone with the next change."""

    def show_rest(self) -> None:
        """Show what depends on the settings beside the fields."""
        raise NotImplementedError

    def _in_thread(self, group: str, work: Callable[[], object]) -> None:
        guarded = failures.told(work, lambda sentence: self.post_message(self.Refused(sentence)))
        self.run_worker(guarded, thread=True, group=group, exclusive=True)

    # -- showing ---------------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        """The settings are others than before: show them, and find out what is wrong with them."""
        self._version += 1
        self._faults, self._told = None, ""
        self._show()
        form, version = self._form, self._version
        self._in_thread("validate", lambda: self.post_message(self.Validated(version, form.faults())))

    @on(Validated)
    def _take_faults(self, message: Validated) -> None:
        if message.version == self._version:
            self._faults = self._known = message.faults
            self._show()

    def _show(self) -> None:
        lines = [
            field_line(self._form, field, self._faults_at(field.key), self._devices)
            for field in self._form.fields
            if self._passes(field)
        ]
        sections = {line.field.key[:-1] for line in lines} - {()}
        section_faults = {".".join(at): " ".join(found) for at in sections if (found := self._faults_at(at))}
        self.query_one(FormView).show(lines, section_faults)
        self.show_rest()
        self._show_field()

    def _passes(self, field: Field) -> bool:
        words = self.query_one("#filter", Input).value.lower().split()
        return all(word in f"{field.name} {field.help}".lower() for word in words)

    def _faults_at(self, place: tuple[str, ...]) -> list[str]:
        return [fault.sentence for fault in self._known if self._form.place_of(fault.key) == place]

    @on(FormView.Moved)
    def _show_field(self) -> None:
        field = self.query_one(FormView).field
        about = Content("No field matches.") if field is None else about_field(
            self._form, field, self._faults_at(field.key), self._devices
        )  # fmt: skip
        self.query_one("#field", Steady).update(about)
        self.refresh_keys()

    # -- editing ---------------------------------------------------------------------------------------------------

    @on(FormView.Chosen)
    def action_edit(self) -> None:
        if (field := self.query_one(FormView).field) is None or not self.check_action("edit", ()):
            return
        if field.kind == "switch":
            self.action_step(1)
        elif field.kind == "block":
            text = yaml12.write(self._form.value(field)) if self._form.value(field) else shown(self._form.value(field))
            self.app.push_screen(BlockScreen(field, text), lambda typed: self._set(field, typed))
        else:
            form = self.query_one(FormView)
            choices = tuple(shown(choice) for choice in field.choices)
            self.query_one(FieldEditor).open(
                self._form.text_of(field), form.value_region, replaces=bool(choices) or field.kind == "value",
                choices=choices,
            )  # fmt: skip
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
