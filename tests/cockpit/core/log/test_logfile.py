"""The log of any size against the slow way: all of it through a terminal, all lines looked at."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.core.log import logfile
from cockpit.core.log.log_search import Search, spans
from cockpit.core.log.logfile import LogFile, count_lines, shown_lines
from cockpit.core.log.logtail import TerminalText
from cockpit.core.text_filter import TextFilter


def by_terminal(data: bytes) -> list[str]:
    text = TerminalText(most=None)
    text.feed(data.decode("utf-8", "replace"))
    return list(text.shown())


def indexed(path: Path) -> LogFile:
    log = LogFile(path)
    while log.extend():
        pass
    return log


def searched(log: LogFile, words: str) -> Search:
    search = Search(log, TextFilter.parse(words))
    while search.go():
        pass
    return search


@given(text=st.text(st.sampled_from("ab\r\n é"), max_size=60))
def test_the_quick_way_shows_what_a_terminal_shows(text: str) -> None:
    data = text.encode()
    assert shown_lines(data) == by_terminal(data)
    assert count_lines(data) == len(by_terminal(data))


@pytest.mark.behaviour("ten-thousand-updates-progress")
@pytest.mark.parametrize(
    "data",
    [
        b"bar one\nbar two\n\x1b[2Abar ONE\nbar TWO\nafter\n",
        b"\x1b[31mred\x1b[0m\n\xff\n[bold]\n",
        b"".join(b"\r%d/10000" % update for update in range(1, 10_001)) + b"\ndone\n",
    ],
)
def test_what_moves_and_colours_is_shown_as_by_a_terminal(data: bytes) -> None:
    assert shown_lines(data) == by_terminal(data)
    assert count_lines(data) == len(by_terminal(data))


@settings(max_examples=60, deadline=None)
@given(
    chunks=st.lists(st.lists(st.sampled_from([b"a", b"word\n", b"\n", b"x" * 40, b"y" * 90 + b"\n"])), max_size=8),
    block=st.sampled_from([16, 64]),
)
def test_however_it_grew_every_line_is_there_once(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[list[bytes]], block: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "stdout.log"
    log = LogFile(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logfile, "BLOCK", block)
        data = b""
        for chunk in chunks:
            data += b"".join(chunk)
            path.write_bytes(data) if not path.exists() else _append(path, b"".join(chunk))
            while log.extend():
                pass
        lines = by_terminal(data)
        assert log.count == len(lines)
        assert log.lines(0, log.count) == lines
        for start in range(0, len(lines), 3):
            assert log.lines(start, start + 2) == lines[start : start + 2]
        search = searched(log, "word")
        assert search.total == sum("word" in line for line in lines)


def _append(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


@pytest.fixture
def big(tmp_path: Path) -> Path:
    """5 MB: a word at the start, one in the middle and at the end another, and plain lines between."""
    path = tmp_path / "stdout.log"
    middle = b"".join(b"step %d loss 0.25 grad 0.71 and so on\n" % step for step in range(60_000))
    path.write_bytes(b"NEEDLE at the start\n" + middle + b"a needle, 0.9\n" + middle + b"the end\n")
    return path


def test_a_word_is_found_from_the_end_to_the_start_of_a_large_log(big: Path) -> None:
    log = indexed(big)
    assert log.count == 120_003
    search = searched(log, "needle")
    assert search.total == 2
    assert search.next(log.count, forward=False) == 60_001
    assert search.next(60_001, forward=False) == 0
    assert search.next(0, forward=False) == 60_001  # round
    assert search.next(60_001, forward=True) == 0
    assert [search.place(line) for line in (0, 1, 60_001, 120_002)] == [0, 1, 1, 2]
    assert log.lines(60_000, 60_003) == ["step 59999 loss 0.25 grad 0.71 and so on", "a needle, 0.9",
                                         "step 0 loss 0.25 grad 0.71 and so on"]  # fmt: skip


def test_an_expression_is_sought_in_lines_as_they_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "stdout.log"
    path.write_bytes(b" 50% bad\r100% good\n\x1b[31mer\x1b[0mror: 3\nfine\nError: 4\n")
    log = indexed(path)
    assert searched(log, "bad").total == 0  # written over
    assert searched(log, "error").total == 2
    assert searched(log, r"/^error: [34]$/").total == 2
    assert searched(log, "error 4").next(-1, forward=True) == 3


def test_only_a_little_of_a_large_log_is_read_at_once(big: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    real = os.pread

    def counted(file: int, size: int, offset: int) -> bytes:
        sizes.append(size)
        return real(file, size, offset)

    monkeypatch.setattr(os, "pread", counted)
    log = indexed(big)
    searched(log, "needle")
    assert max(sizes) <= logfile.BLOCK
    sizes.clear()
    log.lines(70_000, 70_050)
    assert sum(sizes) <= 2 * logfile.BLOCK


@pytest.mark.behaviour("log-truncated-replaced-written")
@pytest.mark.parametrize("how", ["truncated", "replaced", "removed"])
def test_a_log_made_again_is_read_from_its_start(tmp_path: Path, how: str) -> None:
    path = tmp_path / "stdout.log"
    path.write_bytes(b"a long old line\nanother\n")
    log = indexed(path)
    if how == "truncated":
        path.write_bytes(b"new\n")
    elif how == "replaced":
        (tmp_path / "other").write_bytes(b"new, and longer than everything before it\n")
        os.replace(tmp_path / "other", path)
    else:
        path.unlink()
    while log.extend():
        pass
    assert [line[:3] for line in log.lines(0, 9)] == ([] if how == "removed" else ["new"])


def test_what_was_found_is_lit_up() -> None:
    assert spans(TextFilter.parse("loss nan"), "NaN loss, loss") == [(0, 3), (4, 8), (10, 14)]
    assert spans(TextFilter.parse("/lo+/"), "loo lo") == [(0, 3), (4, 6)]
    assert spans(TextFilter.parse("/[/"), "x") == []
    assert spans(TextFilter.parse(""), "x") == []


@pytest.mark.parametrize("words", ["kind:", "sgd", "tag:one", "/^kind:/"])
def test_what_marks_runs_is_nothing_special_in_a_log(tmp_path: Path, words: str) -> None:
    (tmp_path / "log").write_text("kind:sgd tag:one lr=1\nother\n")
    assert searched(indexed(tmp_path / "log"), words).total == 1
