"""What a key in the list means, and what can be done with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.core.runs.chosen import ChosenRuns
from cockpit.core.runs.summary import RunSummary
from cockpit.core.states import Shown


def row(
    name: str, state: Shown = "finished", *, queued: tuple[str, int] | None = None, is_task: bool = False
) -> RunSummary:
    return RunSummary(path=Path("/runs", name), id=name, created=0.0, state=state, queued=queued, is_task=is_task)


def chosen(rows: list[RunSummary], cursor: str = "", marked: str = "") -> ChosenRuns:
    """Of runs with names of one letter."""
    runs = ChosenRuns(lambda: next((one for one in rows if one.id == cursor), None))
    runs.rows = rows
    runs.marked = {one.path for one in rows if one.id in marked}
    return runs


@pytest.mark.parametrize(
    ("cursor", "marked", "meant"),
    [("", "", ""), ("b", "", "b"), ("b", "ca", "ac"), ("", "c", "c")],
)
def test_the_marked_ones_are_meant_in_their_order_else_the_one_under_the_cursor(
    cursor: str, marked: str, meant: str
) -> None:
    runs = chosen([row("a"), row("b"), row("c")], cursor, marked)
    assert "".join(one.id for one in runs.meant) == meant


def test_two_trainings_or_any_number_are_compared_and_tasks_left_out() -> None:
    rows = [row(name) for name in "abcdefghijkl"] + [row("t", is_task=True), row("x", "broken")]
    assert chosen(rows, "a").why_not_compare() == "Mark two or more trainings to compare them: none so far."
    assert chosen(rows, marked="at").why_not_compare() == "Mark two or more trainings to compare them: 1 so far."
    for marked, compared in (("ab", "ab"), ("abcdefghijkl", "abcdefghijkl"), ("abt", "ab"), ("ax", "ax")):
        runs = chosen(rows, marked=marked)
        assert runs.why_not_compare() == ""
        assert "".join(one.id for one in runs.compared) == compared


def test_a_live_run_is_not_deleted_and_does_not_keep_others_from_it() -> None:
    rows = [row("a", "running"), row("b", "failed")]
    assert chosen([]).why_not_delete() == "No run to delete."
    assert chosen(rows, "a").why_not_delete() == "a is live: stop it before deleting it."
    assert chosen(rows, marked="ab").why_not_delete() == ""


def test_the_first_of_a_queue_cannot_come_earlier_nor_its_last_later() -> None:
    rows = [row("r", "running"), *(row(name, "queued", queued=("cpu", n)) for n, name in enumerate("abc", 1))]
    rows.append(row("d", "queued", queued=("cuda:0", 1)))  # a queue of its own
    at = {name: chosen(rows, name) for name in "rabcd"}
    can = {name: (runs.can_come(earlier=True), runs.can_come(earlier=False)) for name, runs in at.items()}
    assert can == {
        "r": (False, False), "a": (False, True), "b": (True, True), "c": (True, False), "d": (False, False),
    }  # fmt: skip
    assert [one.id for one in chosen(rows, marked="rbd").waiting] == ["b", "d"]
    assert not chosen(rows[:1]).any_waits


def test_the_run_under_the_cursor_is_the_one_to_steer() -> None:
    target = chosen([row("a"), row("b", "running")], "b", marked="a").target
    assert target is not None
    assert (target.id, target.state, target.run.path) == ("b", "running", Path("/runs/b"))
    assert chosen([]).target is None
