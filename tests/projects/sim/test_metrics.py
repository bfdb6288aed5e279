"""Metrics against counts made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from projects.sim.metrics import Confusion, class_table, composite, confusions, values


def test_recall_and_f1_by_hand() -> None:
    truth = np.array([3, 3, 3, 0, 0, 1, -1])
    said = np.array([3, 3, 0, 3, 0, 1, 2])
    found = Confusion.of(truth, said, 4)
    assert found.counts.sum() == 6
    assert found.recall(3) == pytest.approx(2 / 3)
    assert found.precision(3) == pytest.approx(2 / 3)
    assert found.accuracy == pytest.approx(4 / 6)
    assert found.macro_f1 == pytest.approx((2 / 4 + 2 / 2 + 4 / 6) / 3)  # class 2 occurs nowhere


def test_without_a_positive_recall_is_not_known_and_never_zero() -> None:
    labels = np.array([[0, 3, 0], [1, 3, 1]])
    metrics = values(confusions(labels, labels))
    assert metrics["risk_high_recall"] is None
    assert metrics["risk_high_fn_rate"] is None
    assert composite(metrics) == pytest.approx(1)


def test_d2_always_high_does_not_win_by_the_composite() -> None:
    labels = np.array([[3, 0, 0], [0, 0, 1], [0, 0, 2], [1, 0, 3]])
    always, careful = labels.copy(), labels.copy()
    always[:, 0], always[:, 2] = 3, 0
    careful[3] = [2, 0, 0]
    one, other = (values(confusions(labels, said)) for said in (always, careful))
    assert one["risk_high_recall"] == other["risk_high_recall"] == 1
    assert (composite(one) or 0) < (composite(other) or 0)


def test_classes_without_windows_are_named() -> None:
    labels = np.array([[0, 0, 0], [3, 1, 5]])
    table = class_table(confusions(labels, labels))
    assert len(table.rows) == 14
    assert "risk low, risk med" in table.note
    assert table.rows[3] == ("risk", "high", 1, 1.0, 1.0, 1.0)
