"""What the launch form says about the field under the cursor, about the check, and about the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from cockpit.core.check_facts import facts_of
from cockpit.core.config_fields import NOTHING, Field
from cockpit.core.devices import Devices
from cockpit.core.format import money
from cockpit.core.launch_form import Fault, LaunchForm, shown
from cockpit.core.text import fit_left, plain
from cockpit.widgets.form_view import FieldLine

DEVICE, PRICE, BUDGET = ("launch", "device"), ("cost", "usd_per_hour"), ("cost", "budget_usd")
NOTE_VALUE_WIDTH = 24
Colours = Mapping[str, str]


def form_title(form: LaunchForm, colours: Colours) -> Text:
    """The line above all: of which project the form is, and over which file."""
    return Text.assemble(
        ("◢ cockpit", f"bold {colours['accent']}"),
        ("   New run   ", "bold"),
        plain(form.spec.name),
        f" · {plain(str(form.path)) if form.path else 'from its defaults, no file yet'}",
    )


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


def about_field(
    form: LaunchForm, field: Field, faults: Sequence[str], devices: Devices | None, colours: Colours
) -> Text:
    """Everything about one field: type and limits, default, what the file says, help, faults."""
    quiet = colours["quiet"]
    text = Text.assemble((plain(field.name), "bold"), (f"   {plain(field.type)}", quiet))
    if (default := field.value_in({})) is not NOTHING and field.key[0] != "--name":
        text.append(f"   default {_short(default)}", quiet)
    if form.changed(field) and (before := _short(form.file_value(field))):
        text.append(f"   file {before}", quiet)
    if field.choices and field.key == DEVICE and devices is not None:
        text.append("".join(f"\n  {'▸' if choice == form.value(field) else ' '} {plain(devices.words(choice))}"
                            for choice in field.choices[1:]), quiet)  # fmt: skip
    if field.help:
        text.append(f"\n{plain(field.help)}")
    for fault in faults:
        text.append(f"\n✖ {plain(fault)}", colours["bad"])
    return text


def about_start(
    form: LaunchForm, faults: Sequence[Fault] | None, found: Mapping[str, Any] | None, devices: Devices | None,
    colours: Colours,
) -> Text:  # fmt: skip
    """One line: what is changed, whether it can start, what it costs, whether the device is free."""
    changes = len(form.overrides)
    parts = [Text(f"{changes} changed" if changes else "nothing changed", colours["quiet"])]
    if faults is None:
        parts.append(Text("checking the settings …", colours["quiet"]))
    elif faults:
        parts.append(Text(f"✖ {len(faults)} fault{'s' * (len(faults) > 1)}", colours["bad"]))
    elif form.path is None:
        parts.append(Text("a saves it as a file, then it can be checked and started", colours["accent"]))
    values = {field.key: form.value(field) for field in form.fields if field.key in (DEVICE, PRICE, BUDGET)}
    if isinstance(price := values.get(PRICE), int | float) and price > 0:
        parts.append(Text(f"{money(price)}/h", colours["foreground"]))
    if found and (words := facts_of({name: found.get(name) for name in ("time", "cost")}).get("cost")):
        parts.append(Text(f"about {plain(words)}", colours["foreground"]))
    elif isinstance(budget := values.get(BUDGET), int | float):
        parts.append(Text(f"at most {money(budget)}", colours["quiet"]))
    if devices is not None and (busy := devices.busy.get(devices.meant(shown(values.get(DEVICE, ""))))):
        parts.append(Text(f"‖ {devices.meant(shown(values[DEVICE]))} is busy with {plain(busy)}", colours["best"]))
    return Text(" · ", colours["quiet"]).join(parts)
