"""docs/behaviours.md is what the markers on the tests give: every promise names a test, or says why there is none."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "behaviours.py"))
REASONS = ("Not ", "Measured, ")
"""How a second column without a test begins."""
ROWS = {name: row for rows in SCRIPT["sections"]().values() for name, row in rows.items()}


def test_the_page_is_that_of_the_markers() -> None:
    assert SCRIPT["PAGE"].read_text() == SCRIPT["page"](), "scripts/behaviours.py writes it again"


def test_names_and_sentences_are_there_once() -> None:
    sections = SCRIPT["sections"]().values()
    assert len(ROWS) == sum(map(len, sections)) > 100
    said = [row if isinstance(row, str) else row["says"] for row in ROWS.values()]
    assert len(set(said)) == len(said)
    assert all(sentence.endswith(".") and "|" not in sentence for sentence in said)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if not isinstance(row, str)])
def test_without_a_test_there_is_a_reason(name: str) -> None:
    reason = ROWS[name]["reason"]
    assert reason.startswith(REASONS)
    assert reason.endswith(".")
    assert len(reason) > 40
