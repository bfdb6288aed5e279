"""A first config for a project: every setting with what it means, its default commented out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from cockpit.core.config.fields import NOTHING, Field, Path, fields_of
from engines.basics import yaml12
from engines.contract.references import load
from engines.contract.spec import Spec

WIDTH = 116
INDENT = "  "


def starter_text(spec: Spec) -> str:
    """YAML that says only what has no default; all else is there to be uncommented, and says what holds without it.

    `data.path` becomes `data/<project>`.
    """
    fields = fields_of(load(spec.config).model_json_schema())
    lines = [f"# {spec.title}.", "# What is commented out is the default.", f"project: {spec.name}"]
    needed = {field.key[:length] for field in fields if _is_needed(field) for length in range(len(field.key))}
    shown: set[Path] = {()}
    for field in fields:
        for length in range(1, len(field.key)):
            if (section := field.key[:length]) not in shown:
                shown.add(section)
                mark = "" if section in needed else "# "
                lines += [*([""] if length == 1 else []), f"{mark}{INDENT * (length - 1)}{section[-1]}:"]
        lines += _setting(field, spec, whole=field.key[:-1] in needed)
    return "\n".join(lines) + "\n"


def _is_needed(field: Field) -> bool:
    return field.value_in({}) is NOTHING


def _setting(field: Field, spec: Spec, *, whole: bool) -> Iterator[str]:
    """The lines of one setting: what it means, and its value; `whole`: its section is not commented out."""
    indent = INDENT * (len(field.key) - 1)
    about = f"{field.help} ({field.type})" if field.help else field.type
    yield from (f"{'' if whole else '# '}{indent}# {line}" for line in textwrap.wrap(about, WIDTH - len(indent)))
    value = field.value_in({})
    if value is not NOTHING:
        yield (f"{indent}# " if whole else f"# {indent}") + f"{field.key[-1]}: {yaml12.write_line(value)}"
    else:
        value = f"data/{spec.name}" if field.key == ("data", "path") else None
        yield f"{indent}{field.key[-1]}: {yaml12.write_line(value)}"
