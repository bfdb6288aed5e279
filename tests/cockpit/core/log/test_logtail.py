import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.core.log.logtail import FIRST_READ, LogTail, TerminalText


def shown(*chunks: str) -> tuple[str, ...]:
    text = TerminalText()
    for chunk in chunks:
        text.feed(chunk)
    return text.shown()


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        (["one\ntwo\n"], ("one", "two")),
        (["on", "e\ntw", "o"], ("one", "two")),
        (["a\r\nb\r", "\nc"], ("a", "b", "c")),
        (["a\r\n", "b\r\n"], ("a", "b")),
        (["  0%\r 50%\r100%\ndone\n"], ("100%", "done")),
        (["a\n\nb\n"], ("a", "", "b")),
        (["bar one\nbar two\n\x1b[2Abar ONE\nbar TWO\n"], ("bar ONE", "bar TWO")),
        (["x\x1b[31mred\x1b[0m\x1b[2J\n"], ("xred",)),
        (["cut \x1b", "[31mhere\n"], ("cut here",)),
        (["cut \x1b[3", "1mhere\n"], ("cut here",)),
        (["cut \x1b(", "Bhere\n"], ("cut here",)),
        (["50%\r\x1b[K"], ("50%",)),
        (["[bold]not markup[/]\n"], ("[bold]not markup[/]",)),
    ],
)
def test_text_becomes_the_lines_a_terminal_would_show(chunks: list[str], lines: tuple[str, ...]) -> None:
    assert shown(*chunks) == lines


@pytest.mark.behaviour("ten-thousand-updates-progress")
def test_ten_thousand_updates_are_one_line_equal_to_the_last() -> None:
    assert shown(*(f"\r{update}/10000 [{update}s]" for update in range(1, 10_001))) == ("10000/10000 [10000s]",)


@pytest.mark.behaviour("ten-thousand-updates-progress")
def test_two_nested_bars_stay_two_lines() -> None:
    text = TerminalText()
    text.feed("outer 0\ninner 0")
    for update in range(1, 500):
        text.feed(f"\r\x1b[Aouter {update}\n\rinner {update}")
    assert text.shown() == ("outer 499", "inner 499")


@pytest.mark.behaviour("bytes-utf-8-letter")
@given(text=st.text(st.sampled_from("ab\r\n\x1b[A2J "), max_size=80), cut=st.integers(0, 80))
def test_where_the_stream_is_cut_changes_nothing(text: str, cut: int) -> None:
    assert shown(text[:cut], text[cut:]) == shown(text)


@pytest.mark.behaviour("ten-thousand-updates-progress")
def test_memory_is_bounded() -> None:
    text = TerminalText(most=10)
    text.feed("".join(f"line {number}\n" for number in range(1000)))
    text.feed("x" * 100_000)
    assert len(text.lines) == 10
    assert text.shown()[0] == "line 991"
    assert max(map(len, text.lines)) == 2000
    assert text.dropped == 991  # 1000 lines and the long one came, 10 are here


# -- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("bytes-utf-8-letter")
def test_a_log_is_followed_as_it_grows(tmp_path: Path) -> None:
    log = tmp_path / "stdout.log"
    tail = LogTail(log)
    assert not tail.poll()
    log.write_bytes(b"first\n")
    assert tail.poll()
    assert not tail.poll()
    with open(log, "ab") as file:
        file.write("é".encode()[:1])
    tail.poll()
    with open(log, "ab") as file:
        file.write("é".encode()[1:] + b" \xff\n")
    tail.poll()
    assert tail.text.shown() == ("first", "é �")


@pytest.mark.parametrize("how", ["truncated", "replaced"])
def test_a_log_made_again_is_read_from_its_start(tmp_path: Path, how: str) -> None:
    log = tmp_path / "stdout.log"
    log.write_bytes(b"a long old line\n")
    tail = LogTail(log)
    tail.poll()
    if how == "truncated":
        log.write_bytes(b"new\n")
    else:
        (tmp_path / "other").write_bytes(b"a long new line that is longer\n")
        os.replace(tmp_path / "other", log)
    tail.poll()
    assert tail.text.shown()[0] in ("new", "a long new line that is longer")
    assert len(tail.text.shown()) == 1


def test_only_the_end_of_a_large_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "stdout.log"
    line = b"x" * 99 + b"\n"
    log.write_bytes(b"the start\n" + line * 20_000 + b"the end\n")
    tail = LogTail(log)
    tail.poll()
    assert tail.text.shown()[-1] == "the end"
    assert "the start" not in tail.text.shown()
    assert set(tail.text.shown()[:-1]) == {"x" * 99}  # no half line at the cut
    assert tail.skipped == log.stat().st_size - FIRST_READ
