"""report.json as tables, and a sentence where it is none."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import msgspec
import pytest

from cockpit.core.run.report import NamedTable, no_report, read_report
from cockpit.core.text_table import TextTable
from engines.basics.errors import DataError
from tests.support.fake_run import FakeRun


def test_a_report_is_its_tables_in_order_with_what_is_not_finite(tmp_path: Path) -> None:
    run = FakeRun(tmp_path).run
    run.report.write_text(
        '{"tables": {"b": {"columns": ["x", "y"], "rows": [[1, NaN], [null, "a"]], "note": "n"},'
        ' "a": {"columns": ["z"], "rows": []}}}'
    )
    first, second = read_report(run)
    assert (first.name, first.columns, first.note, first.rows[1]) == ("b", ("x", "y"), "n", (None, "a"))
    assert math.isnan(first.rows[0][1])
    assert second == NamedTable("a", ("z",), ())


@pytest.mark.parametrize(
    ("text", "why"),
    [*((text, "it is not JSON") for text in ("", "{", "\x00\x00", "[" * 100_000)),
     *((text, 'it has no "tables"') for text in ("[]", "null", "3", "{}", '{"tables": []}')),
     *((f'{{"tables": {{"a": {table}}}}}', 'the table "a" has no lists "columns" and "rows"') for table in
       ("1", '{"columns": ["x"]}', '{"columns": "x", "rows": []}', '{"columns": [], "rows": []}',
        '{"columns": ["x"], "rows": 1}')),
     ('{"tables": {"a": {"columns": ["x"], "rows": [1]}}}', 'the rows of the table "a" are not all lists')],
)  # fmt: skip
def test_a_damaged_report_is_a_sentence_in_words(tmp_path: Path, text: str, why: str) -> None:
    run = FakeRun(tmp_path).run
    run.report.write_text(text)
    with pytest.raises(DataError, match=rf"report\.json cannot be read as a report \({re.escape(why)}"):
        read_report(run)


def test_without_a_report_its_state_says_why(tmp_path: Path) -> None:
    run = FakeRun(tmp_path).run
    with pytest.raises(FileNotFoundError):
        read_report(run)
    assert no_report(run, "running").endswith("at the latest when training finishes; the run is running now.")
    assert "writes none" in no_report(run, "finished")
    task = FakeRun(tmp_path, "walk-20261127-201400-birch", kind="task").run
    assert no_report(task, "running") == "No report: the task has written none yet; it is running now."
    assert no_report(task, "failed") == "No report: the task has written none."
    assert no_report(run, "failed").endswith("this run is failed. Resume it to finish.")
    run.write_info(msgspec.structs.replace(run.info, engine=""))
    assert no_report(run, "lost") == "No report: runs of external programs write none."


def test_ragged_rows_are_made_even() -> None:
    table = TextTable.of(("name", "n"), json.loads('[["a"], ["b", 2, 3], []]'))
    assert table.rows == (("a   ", "—"), ("b   ", "2"), ("—   ", "—"))
    assert (table.header, table.rule, table.width) == (("name", "n"), ("----", "-"), 7)


def test_numbers_that_are_huge_do_not_widen_their_column() -> None:
    assert TextTable.of(("v",), [(999_999_999.0,), (2.5e39,)]).rows == (("999,999,999",), ("    2.50e39",))
