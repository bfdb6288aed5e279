"""Rows of steps between the epochs, and which columns there are: what grows against what is made at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.core.metrics.steps import NO_STEPS, Steps
from cockpit.core.table.columns import FoundColumns, chosen
from cockpit.core.table.rows import StepRow, TableRows, is_long, step_rows, steps_between
from engines.contract.events import Epoch
from engines.contract.steps import ABSENT
from engines.runs.history import History
from tests.support.fake_run import COLUMNS, epoch


def steps(count: int, every: int = 1) -> Steps:
    """Steps 0 to `count`, logged every so many: loss a tenth of the step, one learning rate."""
    at = np.arange(0, count, every, dtype=np.float64)
    return Steps(np.stack([at, 1e9 + at, at / 10, np.full_like(at, 1e-3), np.full_like(at, ABSENT)]))


def test_a_row_of_steps_has_the_mean_of_what_was_logged_since_the_one_before() -> None:
    assert step_rows(steps(12), 0, 12, 5) == [StepRow(5, 0.2, 1e-3), StepRow(10, 0.7, 1e-3)]
    assert step_rows(steps(12), 4, 10, 5) == [StepRow(5, 0.4, 1e-3)]  # of this epoch only; its last step is its own row
    assert step_rows(steps(12, every=4), 0, 12, 2) == [
        StepRow(2, 0.0, 1e-3),
        StepRow(6, 0.4, 1e-3),
        StepRow(10, 0.8, 1e-3),
    ]
    assert step_rows(steps(12), 0, 12, 0) == step_rows(NO_STEPS, 0, 12, 5) == []


@given(
    counts=st.lists(st.integers(0, 4), min_size=1, max_size=6),
    every=st.sampled_from([0, 2, 5]),
    back=st.integers(0, 3),
)
def test_rows_that_grew_are_those_made_at_once(counts: list[int], every: int, back: int) -> None:
    grown, epochs = TableRows(), list[Epoch]()
    for place, count in enumerate(counts):
        if place == len(counts) // 2:  # a resume takes some back
            del epochs[max(len(epochs) - back, 0) :]
        epochs += [epoch(len(epochs) + number + 1) for number in range(count)]
        logged = steps(10 * len(epochs) + 7)
        before = list(grown.rows)
        changed = grown.update(epochs, logged, every)
        fresh = TableRows()
        fresh.update(epochs, logged, every)
        assert grown.rows == fresh.rows
        assert grown.rows[:changed] == before[:changed]
        assert [row for row in grown.rows if isinstance(row, Epoch)] == epochs


@pytest.mark.parametrize("read", [0, 6, 13])
def test_steps_that_are_read_after_their_epoch_come_before_it(read: int) -> None:
    """Events and steps are two files, read one after the other: of either there may be more."""
    epochs = [epoch(1), epoch(2)]
    grown, fresh = TableRows(), TableRows()
    grown.update(epochs, steps(read), 2)
    grown.update(epochs, steps(24), 2)
    fresh.update(epochs, steps(24), 2)
    assert grown.rows == fresh.rows


@pytest.mark.parametrize(
    ("per_epoch", "rows", "every"),
    [(10, 10, 1), (100, 10, 10), (1234, 10, 200), (90_000, 5, 20_000), (3, 50, 1), (9, 0, 0)],
)
def test_rows_of_steps_come_at_round_numbers(per_epoch: int, rows: int, every: int) -> None:
    assert steps_between(per_epoch, rows) == every


def test_an_epoch_is_long_by_the_last_one() -> None:
    history = History()
    history.add(epoch(1))
    assert not is_long(history, NO_STEPS)
    slow = epoch(2)
    slow.seconds = 121.0
    history.add(slow)
    assert is_long(history, NO_STEPS)


def test_columns_are_found_as_they_appear_and_those_chosen_are_shown() -> None:
    found = FoundColumns(COLUMNS)
    assert not found.look([epoch(1)])
    later = epoch(2)
    later.validation["new"] = 0.5
    assert found.look([epoch(1), later])
    assert not found.look([epoch(1), later])
    sources = [column.source for column in found.all]
    assert sources[:3] == ["epoch", "step", "train.loss"]
    assert sources[-3:] == ["validation.new", "stage", "seconds"]
    assert [column.source for column in chosen(found.all, ["score", "gone", "epoch"])] == ["score", "epoch"]
    assert chosen(found.all, ["gone"]) == chosen(found.all, []) == found.all
