"""What a user reads in the cockpit and the engines is of no project: its own words come from its spec."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OF_A_PROJECT = re.compile(r"(?<!-)\b(controls?|(?<!GPU is )idle(?! GPU)|hotbar|sprint|sneak)\b", re.IGNORECASE)
"""Words of the first project; not `Cache-Control`, and not a GPU without work."""
REVIEWING = re.compile(r"\bsessions?\b")
"""What that project's rows come in, where another's come in groups."""


def read_by_users(path: Path) -> Iterator[tuple[int, str]]:
    """The line and text of every string in a module that is no docstring: help, titles, sentences, keys of JSON."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bodies = [node.body for node in ast.walk(tree) if isinstance(getattr(node, "body", None), list)]  # type: ignore[attr-defined]
    docstrings = {id(line.value) for body in bodies for line in body if isinstance(line, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def found(words: re.Pattern[str], within: str) -> list[str]:
    """Where they stand in modules of the cockpit and the engines whose path has `within`."""
    paths = [path for package in ("cockpit", "engines") for path in (ROOT / package).rglob("*.py")]
    modules = [path for path in paths if within in str(path.relative_to(ROOT))]
    assert len(modules) > 5
    return [
        f"{path.relative_to(ROOT)}:{line}: {text!r}"
        for path in modules for line, text in read_by_users(path) if words.search(text)
    ]  # fmt: skip


def test_no_string_says_what_only_one_project_has() -> None:
    assert found(OF_A_PROJECT, "") == []
    assert found(REVIEWING, "thresholds") == []


def test_style_sheets_and_pages_are_of_no_project() -> None:
    files = [path for kind in ("*.tcss", "*.html") for path in (ROOT / "cockpit").rglob(kind)]
    assert [path.name for path in files if OF_A_PROJECT.search(path.read_text(encoding="utf-8"))] == []
