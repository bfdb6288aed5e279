"""Writes docs/behaviours.md: what users can rely on, each with the tests that are marked with it.

`.venv/bin/python scripts/behaviours.py` writes the page. The sentences are in tests/behaviours.toml, by section and by
a short name, which tests name as `@pytest.mark.behaviour("short-name")`; a sentence that no test shows has a reason.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SENTENCES, PAGE = ROOT / "tests" / "behaviours.toml", ROOT / "docs" / "behaviours.md"
HEAD = """\
# What you can rely on

Each line is a way in which tools of this kind fail their users, turned round: what this one does instead, and the test
that shows it. Where there is no test, or the behaviour is not there yet, the second column says so and why.
This page is written by `scripts/behaviours.py` from markers on the tests and the sentences in `tests/behaviours.toml`.
"""


def sections() -> dict[str, dict[str, str | dict[str, str]]]:
    """Sentences by section and name; one without a test is a table of `says` and `reason`."""
    return tomllib.loads(SENTENCES.read_text(encoding="utf-8"))


def marked() -> dict[str, list[str]]:
    """Tests, as `tests/file.py::test_name`, by the behaviour that they are marked with."""
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for name in _names(node):
                    found.setdefault(name, []).append(f"{file.relative_to(ROOT)}::{node.name}")
    return found


def _names(test: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.behaviour":
            yield from (ast.literal_eval(argument) for argument in mark.args)


def page() -> str:
    """The whole page. Raises KeyError for a marker without a sentence, ValueError for a sentence without a test."""
    tests = marked()
    parts = [HEAD]
    for title, rows in sections().items():
        lines = [f"## {title}\n", "| you can rely on | shown by |", "|---|---|"]
        for name, row in rows.items():
            says, shown = (row, tests.pop(name, [])) if isinstance(row, str) else (row["says"], tests.pop(name, []))
            reason = "" if isinstance(row, str) else row["reason"]
            if bool(shown) == bool(reason):
                raise ValueError(f"{name}: expected tests that are marked with it, or a reason why there is none")
            lines.append(f"| {says} | {reason or ' '.join(f'`{test}`' for test in shown)} |")
        parts.append("\n".join(lines) + "\n")
    if tests:
        raise KeyError(f"{', '.join(tests)}: no such sentence in {SENTENCES.name}")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
