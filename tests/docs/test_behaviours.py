"""Every behaviour that docs/behaviours.md promises names a test that there is, or says why there is none."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "behaviours.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
REASONS = ("Not ", "Measured, ")
"""How a second column without a test begins."""


def rows() -> list[tuple[str, str]]:
    """Behaviour and evidence of each row, without titles and rules."""
    lines = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("|")]
    cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    assert {len(row) for row in cells} == {2}
    return [(row[0], row[1]) for row in cells if row != ("you can rely on", "shown by") and set(row[0]) != {"-"}]


@cache
def names_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text())
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in tree.body if isinstance(node, kinds) and node.name.startswith("test_")}


def test_there_are_rows() -> None:
    assert len(rows()) > 40
    assert len({behaviour for behaviour, _ in rows()}) == len(rows())


@pytest.mark.parametrize(("behaviour", "evidence"), rows(), ids=[behaviour[:50] for behaviour, _ in rows()])
def test_a_behaviour_has_tests_that_exist_or_a_reason(behaviour: str, evidence: str) -> None:
    assert behaviour.endswith(".")
    named = NAMED.findall(evidence)
    if not named:
        assert evidence.startswith(REASONS)
        assert evidence.endswith(".")
        assert len(evidence) > 40
        return
    assert NAMED.sub("", evidence).strip() == ""
    assert [f"{file}::{name}" for file, name in named if name not in names_in(file)] == []
