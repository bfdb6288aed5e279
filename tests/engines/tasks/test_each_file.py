"""Files over processes: every one has an outcome, in order, whatever it does to the process that reads it."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from engines.basics.errors import DataError
from engines.tasks import StopRequested
from engines.tasks.each_file import AHEAD, Kind, Left, Taken, each_file
from tests.engines.conftest import alive, wait_for
from tests.support import readers


def go_on() -> None:
    """Nobody presses stop."""


def test_outcomes_come_in_order_from_processes_that_work_side_by_side(tmp_path: Path) -> None:
    jobs = [(tmp_path, 0), (tmp_path, 1)]
    with each_file(readers.wait_for_the_next, jobs, go_on, workers=2) as outcomes:
        assert [outcome.item for outcome in outcomes] == jobs  # one process alone would wait for itself


def test_processes_are_gone_when_all_is_read() -> None:
    with each_file(readers.process, range(4), go_on, workers=2) as outcomes:
        pids = {outcome.value for outcome in outcomes if isinstance(outcome, Taken)}
    assert 1 <= len(pids) <= 2
    assert os.getpid() not in pids
    assert not any(psutil.pid_exists(pid) for pid in pids)


@pytest.mark.parametrize(
    ("item", "kind", "reason"),
    [
        ("error", "error", "ValueError: not a game: �[31m byte 7"),
        ("panic", "panic", "Panic: index out of bounds"),
        ("exit", "panic", "SystemExit: a library thinks that it is the program"),
        ("code", "death", "its process ended with exit code 3"),
        ("SIGKILL", "death", "its process died by SIGKILL"),
        ("SIGSEGV", "death", "its process died by SIGSEGV"),
    ],
)
def test_what_goes_wrong_is_a_reason_and_the_rest_is_taken(item: str, kind: Kind, reason: str) -> None:
    with each_file(readers.read, ["a", item, "b"], go_on, workers=1) as outcomes:
        first, bad, last = outcomes
    assert (first, last) == (Taken("a", "aa"), Taken("b", "bb"))
    assert bad == Left(item, reason, kind)


def test_what_cannot_go_to_a_process_or_come_back_is_a_reason() -> None:
    items: list[Any] = ["function", "unkind", lambda: 0, "a"]
    with each_file(readers.read, items, go_on, workers=1) as outcomes:
        value, answer, item, last = outcomes
    assert isinstance(value, Left)
    assert "pickle" in value.reason
    assert answer == Left("unkind", "ValueError: invalid literal for int() with base 10: 'no number'", "error")
    assert isinstance(item, Left)
    assert last == Taken("a", "aa")


def refuse(item: str) -> None:
    raise DataError(f"{item}: holds no frames; " + "x" * 400)


def test_a_sentence_for_users_is_the_reason_as_it_is_and_not_too_long() -> None:
    with each_file(refuse, ["a.slp"], go_on, workers=1) as outcomes:
        (outcome,) = outcomes
    assert isinstance(outcome, Left)
    assert outcome.reason.startswith("a.slp: holds no frames; xxx")
    assert len(outcome.reason) == 300


def test_who_was_killed_once_from_outside_is_tried_again(tmp_path: Path) -> None:
    with each_file(readers.die_once, [tmp_path / "one", tmp_path / "two"], go_on, workers=2) as outcomes:
        assert list(outcomes) == [Taken(tmp_path / k, "taken") for k in ("one", "two")]


def test_items_are_asked_for_as_they_are_needed(tmp_path: Path) -> None:
    """Also while the first one takes long and others are done: it ends when as many as allowed have been asked for."""
    asked = given = 0

    def items() -> Iterator[Path]:
        nonlocal asked
        for number in range(300):
            asked += 1
            assert asked - given <= 2 * AHEAD
            if asked == 2 * AHEAD:
                (tmp_path / "0").touch()
            yield tmp_path / str(number)

    with each_file(readers.wait_for_the_first, items(), go_on, workers=2) as outcomes:
        for outcome in outcomes:
            assert outcome == Taken(tmp_path / str(given), None)
            given += 1
    assert given == 300


def test_large_items_and_values_pass_both_ways() -> None:
    items = [os.urandom(4_000_000) for _ in range(3)]
    with each_file(readers.length, items, go_on, workers=2) as outcomes:
        assert [outcome.value for outcome in outcomes if isinstance(outcome, Taken)] == [one + b"!" for one in items]


def test_a_process_imports_no_more_than_its_function_needs() -> None:
    with each_file(readers.imported, ["torch", "sys"], go_on, workers=1) as outcomes:
        assert [outcome.value for outcome in outcomes if isinstance(outcome, Taken)] == [False, True]


def test_what_the_items_themselves_raise_passes() -> None:
    def items() -> Iterator[str]:
        yield "a"
        raise DataError("games.zip: cut short")

    with pytest.raises(DataError, match=r"games\.zip: cut short"), each_file(readers.read, items(), go_on) as outcomes:
        list(outcomes)


def test_where_no_process_can_begin_the_work_ends_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "gone_soon.py").write_text("def read(item):\n    return item\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    function = importlib.import_module("gone_soon").read
    (tmp_path / "gone_soon.py").unlink()
    with (
        pytest.raises(DataError, match=r"No worker process could be started: .* exit code 1"),
        each_file(function, range(100_000), go_on, workers=1) as outcomes,
    ):
        list(outcomes)


def _stop_when(there: Path) -> Callable[[], None]:
    def check() -> None:
        if there.exists():
            raise StopRequested

    return check


def test_a_stop_is_heard_while_a_file_hangs_and_leaves_no_process(tmp_path: Path) -> None:
    busy = tmp_path / "pid"
    with (
        pytest.raises(StopRequested),
        each_file(readers.hang, [busy], _stop_when(busy), workers=1) as outcomes,
    ):
        list(outcomes)
    assert not psutil.pid_exists(int(busy.read_text()))


PARENT = """
import sys
from pathlib import Path
from engines.tasks.each_file import each_file
from tests.support import readers

if __name__ == "__main__":
    with each_file(readers.hang, [Path(sys.argv[1])], lambda: None, workers=1) as outcomes:
        list(outcomes)
"""


def test_processes_end_with_their_parent(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    parent = subprocess.Popen([sys.executable, tmp_path / "parent.py", tmp_path / "pid"], env=environment)
    readers.wait_for(tmp_path / "pid")
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    pid = int((tmp_path / "pid").read_text())
    wait_for("the process to be gone", lambda: not alive(pid))
