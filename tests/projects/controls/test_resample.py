"""Ticks become frames without losing or doubling anything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projects.controls.resample import Clock, limited

steps = st.lists(st.integers(20, 300), min_size=2, max_size=60)
rates = st.sampled_from([10.0, 20.0, 30.0, 60.0])


def clock_of(milliseconds: list[int], fps: float) -> Clock:
    return Clock(np.cumsum([0, *milliseconds]) / 1000, fps)


@given(steps, rates)
def test_pulses_keep_their_number_and_order(milliseconds: list[int], fps: float) -> None:
    clock = clock_of(milliseconds, fps)
    ticks = np.random.default_rng(len(milliseconds)).random(len(milliseconds) + 1) < 0.3
    ticks[-2:] = False  # what is pressed in the very last frames may have no frame left
    frames = clock.pulses(ticks)
    inside = clock.frame[ticks]
    if len(np.unique(inside)) == len(inside):
        assert np.array_equal(np.flatnonzero(frames), inside)
    if fps >= 60:
        assert frames.sum() == ticks.sum()


def test_two_presses_in_one_frame_take_two_frames() -> None:
    clock = clock_of([100, 20, 20, 200, 50], 20)  # ticks at 0, 100, 120, 140 and 340 ms; frames of 50 ms
    ticks = np.array([False, True, True, False, True, False])
    assert np.flatnonzero(clock.pulses(ticks)).tolist() == [2, 3, 6]


@given(steps, rates)
def test_what_is_held_lasts_as_long_as_it_was_held(milliseconds: list[int], fps: float) -> None:
    clock = clock_of(milliseconds, fps)
    ticks = np.random.default_rng(sum(milliseconds)).random((len(milliseconds) + 1, 1)) < 0.5
    frames = clock.held(ticks)
    for frame in range(clock.frames):  # slowly: which ticks are in force in this frame?
        begun = [k for k, at in enumerate(clock.frame) if at == frame]
        latest = max(k for k, at in enumerate(clock.frame) if at <= frame)
        assert frames[frame, 0] == (any(ticks[k, 0] for k in begun) if begun else ticks[latest, 0])


@given(steps, rates)
def test_amounts_keep_their_sum_and_their_time(milliseconds: list[int], fps: float) -> None:
    clock = clock_of(milliseconds, fps)
    ticks = np.random.default_rng(sum(milliseconds)).normal(size=(len(milliseconds) + 1, 2))
    frames = clock.moved(ticks)
    assert frames.shape == (clock.frames, 2)
    np.testing.assert_allclose(frames.sum(axis=0), ticks.sum(axis=0), atol=1e-9)
    one = np.zeros_like(ticks)
    one[0] = 1.0
    assert np.all(clock.moved(one)[int(np.ceil(milliseconds[0] / 1000 * fps)) :] == pytest.approx(0))


def test_what_is_too_much_for_a_frame_is_done_in_the_next_ones() -> None:
    amounts = np.array([[0.5, -3.0], [2.5, 0.0], [-0.2, 0.5], [0.0, 0.0]])
    assert np.allclose(limited(amounts, 1.0), [[0.5, -1.0], [1.0, -1.0], [1.0, -0.5], [0.3, 0.0]])
