"""Plain tables and lines: aligned, safe, and rewritten only where there is a terminal."""

from __future__ import annotations

import io
import json
import sys

import pytest

from cockpit.cli import printing


def test_numbers_are_right_aligned_words_left_and_gaps_marked(capsys: pytest.CaptureFixture[str]) -> None:
    printing.show_table(
        ("name", "n", "share", "mixed"),
        [("all zero", 3, 0.123456, "a"), ("夏", 12, None, 5), ("", None, 1234567.0, True)],
    )
    assert capsys.readouterr().out.splitlines() == [
        "name       n      share  mixed",
        "--------  --  ---------  -----",
        "all zero   3     0.1235  a",
        "夏        12          —  5",
        "           —  1,234,567  True",
    ]


def test_a_table_without_rows_is_its_titles(capsys: pytest.CaptureFixture[str]) -> None:
    printing.show_table(("a", "bc"), [])
    assert capsys.readouterr().out.splitlines() == ["a  bc", "-  --"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.25, "0.2500"), (0.0, "0.0000"), (2e-5, "2.0e-5"), (-9.5, "-9.5000"), (771.125, "771.12"), (12345.6, "12,346"),
     (float("nan"), "nan"), (float("inf"), "inf"), (3, "3"), (10_000, "10000")],
)  # fmt: skip
def test_numbers_have_the_decimals_that_their_size_asks_for(
    capsys: pytest.CaptureFixture[str], value: float, text: str
) -> None:
    printing.show_table(("v",), [(value,)])
    assert capsys.readouterr().out.splitlines()[-1] == text


def test_pairs_are_aligned_and_empty_ones_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    printing.show_pairs({"run": "x\x1b[2Jy", "label": "", "directory": "/a"})
    assert capsys.readouterr().out == "run        xy\ndirectory  /a\n"


def test_json_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    printing.show_json({"label": "\x1b夏", "score": None})
    text = capsys.readouterr().out
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text) == {"label": "\x1b夏", "score": None}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_status_line_is_rewritten_in_place_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "20")
    line = printing.StatusLine()
    line.show("training, epoch 1 of 4, and much more")
    line.show("short")
    line.show("short")
    line.clear()
    line.clear()
    assert terminal.getvalue().split("\r") == ["", "training, epoch 1 o", "short" + " " * 14, " " * 5, ""]


def test_no_terminal_gets_no_status_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = printing.StatusLine()
    line.show("training")
    line.clear()
    assert capsys.readouterr().err == ""
