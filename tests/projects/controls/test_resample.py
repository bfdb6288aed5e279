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


@given(st.lists(st.floats(-4, 4), min_size=1, max_size=50))
def test_a_limited_turn_keeps_its_sum_and_never_overshoots(turns: list[float]) -> None:
    amounts = np.array([*turns, *[0.0] * (4 * len(turns))])[:, None]  # quiet until all is done
    done = limited(amounts, 1.0)
    assert np.abs(done).max() <= 1
    assert done.sum() == pytest.approx(amounts.sum(), abs=1e-9)
    owed = np.cumsum(amounts) - np.cumsum(done)
    assert np.all(np.abs(owed) <= np.maximum(0, np.max(np.abs(np.cumsum(amounts))) * 2 + 1e-9))


@given(st.integers(0, 10**6), st.integers(2, 200), st.sampled_from([10.0, 20.0, 30.0, 60.0]))
def test_a_log_of_the_same_rate_passes_unchanged(start: int, count: int, fps: float) -> None:
    clock = Clock((start + np.arange(count)) / fps, fps)
    rng = np.random.default_rng(count)
    on, amounts = rng.random((count, 1)) < 0.5, rng.integers(-5, 6, (count, 2)) / 100
    assert clock.frames == count
    assert np.array_equal(clock.held(on), on)
    assert np.array_equal(clock.pulses(on[:, 0]), on[:, 0])
    np.testing.assert_allclose(clock.moved(amounts), amounts, atol=1e-12)
    assert np.all((clock.moved(amounts) == 0) == (amounts == 0))


def test_pulses_that_find_no_frame_are_placed_beyond_the_end() -> None:
    clock = clock_of([50, 1, 1], 20)  # frames of 50 ms: the last three ticks are in the second of two
    assert clock.places(np.array([False, True, True, True])).tolist() == [1, 2, 3]
    assert clock.pulses(np.array([False, True, True, True])).tolist() == [False, True]
