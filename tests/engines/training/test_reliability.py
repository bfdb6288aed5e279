"""Calibration against formulas written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.training.reliability import Calibration, reliability


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.55, 0.99, 1.0]), st.booleans()), min_size=1))
def test_errors_equal_loops(pairs: list[tuple[float, bool]]) -> None:
    found = Calibration.of(np.array([p for p, _ in pairs]), np.array([on for _, on in pairs]))
    assert found.mean == pytest.approx(sum(p for p, _ in pairs) / len(pairs))
    assert found.brier == pytest.approx(sum((p - on) ** 2 for p, on in pairs) / len(pairs))
    bins: dict[int, list[tuple[float, bool]]] = {}
    for p, on in pairs:
        bins.setdefault(min(int(p * 10), 9), []).append((p, on))
    gaps = [abs(sum(p for p, _ in inside) - sum(on for _, on in inside)) for inside in bins.values()]
    assert found.ece == pytest.approx(sum(gaps) / len(pairs))
    for k, one in enumerate(reliability(np.array([p for p, _ in pairs]), np.array([on for _, on in pairs]))):
        inside = bins.get(k, [])
        assert one.count == len(inside)
        assert one.observed == (pytest.approx(np.mean([on for _, on in inside])) if inside else None)


def test_without_predictions_there_is_nothing_to_say() -> None:
    nothing = np.zeros(0), np.zeros(0, bool)
    assert Calibration.of(*nothing) == Calibration(None, None, None)
    assert all((one.count, one.predicted, one.observed) == (0, None, None) for one in reliability(*nothing))
