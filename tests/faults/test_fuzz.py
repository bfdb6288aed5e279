"""A few damaged inputs for every reader; `python -m tests.faults.fuzz` gives each of them thousands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.fuzz import COUNTED, Tally, TooMuch, counting, fuzz
from tests.faults.readers import Reader, all_readers

READERS = {reader.name: reader for reader in all_readers()}


@pytest.mark.behaviour("readers-refuse-in-words")
@pytest.mark.parametrize("name", READERS)
def test_a_reader_gives_a_result_or_its_own_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path))
    reader = READERS[name]
    count = max(COUNTED // 2, round(2 * COUNTED * reader.share))
    tally = fuzz(reader, count, tmp_path)
    assert tally.inputs >= count
    if reader.shaped is not None and count >= COUNTED:
        assert tally.read >= 0.2 * tally.inputs  # of few; `LEAST_READ` of many


def greedy(path: Path) -> object:
    return bytearray(1 << 30)


def slow(path: Path) -> object:
    return [len(path.name) for _ in range(500_000)]


def hidden(path: Path) -> object:
    raise KeyError(path)


def test_what_takes_too_much_or_hides_its_error_is_found(tmp_path: Path) -> None:
    def reader(read: object) -> Reader:
        return Reader("a", "a", lambda: [b"seed"], read)  # type: ignore[arg-type]

    with pytest.raises(TooMuch, match="bytes of memory"), counting(reader(greedy), 4, Tally()):
        greedy(tmp_path)
    (tmp_path / "a").write_bytes(b"seed")
    with pytest.raises(TooMuch, match="calls"), counting(reader(slow), 4, Tally()):
        slow(tmp_path / "a")
    with pytest.raises(KeyError):
        fuzz(reader(hidden), 3, tmp_path)
