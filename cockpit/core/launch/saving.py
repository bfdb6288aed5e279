"""A changed config as a file of its own: the comments of the original stay where they can."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cockpit.core.config.diff import diff
from cockpit.core.config.yaml_edit import with_value
from cockpit.core.launch.form import LaunchForm
from engines.basics import yaml12
from engines.basics.errors import DataError
from engines.basics.files import write_for_user
from engines.contract.aliases import written

WIDTH = 118
INDENT = "  "


def merged_text(form: LaunchForm) -> str:
    """The file with every change in place; written again, documented, where its text cannot be changed safely."""
    from engines.contract.config import in_our_names

    try:
        text = form.text
        for key, value in form.changes.items():
            text = with_value(text, tuple(map(str, written(key, form.names))), value)
        tree = yaml12.read(text)[0]
        in_our_names(form.spec, tree)
        if not diff({"text": tree, "form": form.tree}):
            return text
    except ValueError:  # one change in an unusual place made it no YAML
        pass
    return documented_text(form)


def documented_text(form: LaunchForm) -> str:
    """The changed config as YAML with the docstring of each setting above it."""
    helps = {field.key: field.help for field in form.fields}
    return "\n".join(_documented(form.tree, (), helps)) + "\n"


def _documented(section: Mapping[str, Any], at: tuple[str, ...], helps: Mapping[tuple[str, ...], str]) -> Iterator[str]:
    indent = INDENT * len(at)
    for name, value in section.items():
        key = (*at, name)
        if isinstance(value, dict) and value and any(known[: len(key)] == key and known != key for known in helps):
            if not at:
                yield ""
            yield f"{indent}{yaml12.write_line(name)}:"
            yield from _documented(value, key, helps)
        else:
            yield from (f"{indent}# {line}" for line in textwrap.wrap(helps.get(key, ""), WIDTH - len(indent)))
            yield from (indent + line for line in yaml12.write({name: value}).rstrip("\n").split("\n"))


def save_config(form: LaunchForm, path: Path, *, overwrite: bool = False) -> Path:
    """Write the changed config to `path`, whole or not at all, and give the path, which has a `.yaml` at its end.

    Raises FileExistsError where a file is there and `overwrite` does not say that it may go; `DataError`.
    """
    path = path if path.suffix in (".yaml", ".yml") else path.with_name(path.name + ".yaml")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} already exists.")
    try:
        write_for_user(path, merged_text(form).encode())
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error.strerror}); choose another path.") from None
    return path
