"""A first config for a project: every setting with what it means, its default commented out."""

from __future__ import annotations

import copy
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from cockpit.core.config.fields import NOTHING, VERSION, Field, Path, fields_of, find
from engines.basics import yaml12
from engines.contract.references import load
from engines.contract.spec import Spec

WIDTH = 116
INDENT = "  "


def starter_text(spec: Spec) -> str:
    """YAML that says only what it must; all else is there to be uncommented, and says what holds without it.

    `data.path` becomes `data/<project>`. Of a project whose configs have a version it is the newest.
    """
    from engines.contract.config import check_config

    fields = fields_of(load(spec.config).model_json_schema())
    versions = next((field.choices for field in fields if field.key == VERSION), ())
    said = {"project": spec.name, "data": {"path": f"data/{spec.name}"}}
    if versions:
        said["version"] = versions[-1]
    defaults = check_config(copy.deepcopy(said), "a new config", {}, ()).settings.model_dump(mode="json")
    lines = [f"# {spec.title}.", "# What is commented out is the default.", f"project: {spec.name}"]
    shown: set[Path] = {()}
    for field in fields:
        for length in range(1, len(field.key)):
            if (section := field.key[:length]) not in shown:
                shown.add(section)
                mark = "# " if find(said, section) is NOTHING else ""
                lines += [*([""] if length == 1 else []), f"{mark}{INDENT * (length - 1)}{section[-1]}:"]
        lines += _setting(field, said, defaults)
    return "\n".join(lines) + "\n"


def _setting(field: Field, said: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[str]:
    """The lines of one setting: what it means, and its value, commented out where it is the default."""
    indent, name = INDENT * (len(field.key) - 1), field.key[-1]
    apart = "# " if find(said, field.key[:-1]) is NOTHING else ""
    about = f"{field.help} ({field.type})" if field.help else field.type
    yield from (f"{apart}{indent}# {line}" for line in textwrap.wrap(about, WIDTH - len(indent)))
    if (value := find(said, field.key)) is not NOTHING:
        yield f"{indent}{name}: {yaml12.write_line(value)}"
    else:
        value = yaml12.write_line(find(defaults, field.key))
        yield f"{apart}{indent}{name}: {value}" if apart else f"{indent}# {name}: {value}"
