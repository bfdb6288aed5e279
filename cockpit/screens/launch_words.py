"""What the launch form says about the field under the cursor, about the check, and about the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from textual.content import Content

from cockpit.core.config.fields import NOTHING, Field
from cockpit.core.launch.check_facts import facts_of
from cockpit.core.launch.devices import Devices
from cockpit.core.launch.form import Fault, LaunchForm, shown
from cockpit.core.text import fit_left, plain
from cockpit.widgets.form_view import FieldLine
from cockpit.widgets.heading import heading
from engines.basics.amounts import money
from engines.contract import on_finish

DEVICE, PRICE, BUDGET = ("launch", "device"), ("cost", "usd_per_hour"), ("cost", "budget_usd")
NOTE_VALUE_WIDTH = 24


def form_title(form: LaunchForm) -> Content:
    """The line above all: of which project the form is, and over which file."""
    over = plain(str(form.path)) if form.path else "from defaults, not saved yet"
    return heading("New run", f"{plain(form.spec.name)} · {over}")


def field_line(form: LaunchForm, field: Field, faults: Sequence[str], devices: Devices | None) -> FieldLine:
    """A field in the form; its faults without where they are: the line says that already."""
    fault = " ".join(one.partition(f"{field.name}: ")[2] or one for one in faults)
    return FieldLine(
        field, form.text_of(field), form.changed(field), form.not_default(field), fault=fault,
        note=note_of(form, field, devices),
    )  # fmt: skip


def note_of(form: LaunchForm, field: Field, devices: Devices | None) -> str:
    """The few words beside a value."""
    if field.key == DEVICE and devices is not None:
        return devices.words(shown(form.value(field)))
    if form.changed(field):
        before = _short(form.file_value(field))
        return f"was {before}" if before else "not in the file"
    if form.not_default(field):
        return f"default {_short(field.value_in({}))}"
    return field.type


def _short(value: Any) -> str:
    return fit_left(shown(value), NOTE_VALUE_WIDTH).rstrip()


def about_field(form: LaunchForm, field: Field, faults: Sequence[str], devices: Devices | None) -> Content:
    """Everything about one field: type and limits, default, what the file says, help, faults."""
    quiet = ""
    if (default := field.value_in({})) is not NOTHING and field.key[0] != "--name":
        quiet += f"   default {_short(default)}"
    if form.changed(field) and (before := _short(form.file_value(field))):
        quiet += f"   file {before}"
    if field.choices and field.key == DEVICE and devices is not None:
        quiet += "".join(
            f"\n  {'▸' if choice == form.value(field) else ' '} {plain(devices.words(choice))}"
            for choice in field.choices[1:]
        )
    return Content.assemble(
        (plain(field.name), "bold"),
        (f"   {plain(field.type)}{quiet}", "$quiet"),
        f"\n{plain(field.help)}" if field.help else "",
        *((f"\n✖ {plain(fault)}", "$bad") for fault in faults),
    )


def about_start(
    form: LaunchForm, faults: Sequence[Fault] | None, found: Mapping[str, Any] | None, devices: Devices | None
) -> Content:
    """One line: what is changed, whether it can start, what it costs, whether the device is free."""
    changes = len(form.overrides)
    parts = [Content.styled(f"{changes} changed" if changes else "no changes", "$quiet")]
    if faults is None:
        parts.append(Content.styled("checking the settings …", "$quiet"))
    elif faults:
        parts.append(Content.styled(f"✖ {len(faults)} error{'s' * (len(faults) > 1)}", "$bad"))
    elif form.path is None:
        parts.append(Content.styled("press a to save it as a file; then check and start it", "$accent"))
    values = {field.key: form.value(field) for field in form.fields if field.key in (DEVICE, PRICE, BUDGET)}
    if isinstance(price := values.get(PRICE), int | float) and price > 0:
        parts.append(Content.styled(f"{money(price)}/h", "$foreground"))
    if found and (words := facts_of({name: found.get(name) for name in ("time", "cost")}).get("cost")):
        parts.append(Content.styled(f"about {plain(words)}", "$foreground"))
    elif isinstance(budget := values.get(BUDGET), int | float):
        parts.append(Content.styled(f"at most {money(budget)}", "$quiet"))
    for name, command in on_finish.commands_in(form.tree).items():
        when = "then runs" if name == on_finish.ON_FINISH else name.replace("_", " ") + ":"
        parts.append(Content.styled(f"{when} {plain(on_finish.words(command))}", "$best"))
    if devices is not None and (busy := devices.busy.get(devices.meant(shown(values.get(DEVICE, ""))))):
        parts.append(Content.styled(f"‖ {devices.meant(shown(values[DEVICE]))} is busy with {plain(busy)}", "$best"))
    return Content.styled(" · ", "$quiet").join(parts)
