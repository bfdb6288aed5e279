"""The fast batches equal the slow, readable windows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from projects.controls.batches import WindowSource
from projects.controls.features import SOURCES, frame_features, target_frames, window_features
from projects.controls.layout import (
    ACTION,
    CONTROL_SIZE,
    DEFAULT_STATE,
    HISTORY,
    HISTORY_FEATURES,
    LOOK,
    SCREEN_OPEN,
    STATE_FEATURES,
    VELOCITY_FEATURES,
    WINDOW,
)
from tests.projects.controls.sessions import random_session

CPU = torch.device("cpu")


def philox(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 70), min_size=1, max_size=4),
    seed=st.integers(0, 2**32),
    dropout=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_every_window_equals_the_slow_reference(lengths: list[int], seed: int, dropout: float) -> None:
    sessions = [random_session(str(k), length, seed + k) for k, length in enumerate(lengths)]
    source = WindowSource(sessions, CPU, dropout)
    windows = [(k, last) for k, length in enumerate(lengths) for last in target_frames(length)]
    assert len(source) == len(windows)
    assert source.sessions.tolist() == [k for k, _ in windows]
    order = np.random.default_rng(seed).permutation(len(windows))
    batch = source.batch(torch.from_numpy(order), philox(seed))
    hidden = philox(seed).random((len(order), SOURCES), np.float32) < dropout
    for row, window in enumerate(order):
        session, last = sessions[windows[window][0]], windows[window][1]
        features, mask = window_features(session, last, hidden[row])
        np.testing.assert_array_equal(batch["features"][row].numpy(), features)
        np.testing.assert_array_equal(batch["mask"][row].numpy(), mask)
        np.testing.assert_array_equal(batch["target"][row].numpy(), session.controls[last])


def test_masks_of_a_batch_follow_their_definitions() -> None:
    session = random_session("a", 300, 3)
    session.controls[40, LOOK] = 0.07  # beyond the dead zone together, neither by itself
    source = WindowSource([session], CPU, 0.3)
    batch = source.batch(torch.arange(len(source)), None)
    for row, frame in enumerate(range(WINDOW - 1, 300)):
        controls, screen = session.controls[frame], session.state[frame, SCREEN_OPEN]
        yaw, pitch = controls[list(LOOK)]
        assert batch["gameplay"][row] == (screen == 0)
        assert batch["screen_open"][row] == (screen > 0)
        assert batch["hotbar_changed"][row] == (controls[14:23].max() == 1)
        assert batch["look_active"][row] == (yaw**2 + pitch**2 > 0.08**2)
        assert batch["idle"][row] == (screen == 0 and controls[list(ACTION)].max() == 0)


def test_evaluation_hides_nothing_and_the_same_rng_hides_the_same() -> None:
    source = WindowSource([random_session("a", 100, 1)], CPU, 0.3)
    indices = torch.tensor([3, 60, 3])
    plain, again = (source.batch(indices, None)["features"] for _ in range(2))
    first, second = (source.batch(indices, philox(5))["features"] for _ in range(2))
    assert torch.equal(plain, again)
    assert torch.equal(first, second)
    assert not torch.equal(plain, first)
    assert not torch.equal(first[0], first[2]), "each window of a batch draws its own"
    assert torch.equal(plain[..., : HISTORY_FEATURES.start], first[..., : HISTORY_FEATURES.start])


def test_a_hidden_frame_is_hidden_in_every_row_that_shows_it() -> None:
    session = random_session("a", 100, 2)
    session.controls[:] = np.arange(1, 101)[:, None]
    source = WindowSource([session], CPU, 0.3)
    history = source.batch(torch.arange(64), philox(0))["features"][..., HISTORY_FEATURES]
    slots = history.reshape(64, WINDOW, HISTORY, CONTROL_SIZE).numpy()
    rate = []
    for window in range(64):
        for source_frame in range(window, window + WINDOW - 1):
            copies = [
                slots[window, row, HISTORY - back]
                for back in range(1, HISTORY + 1)
                if 0 <= (row := source_frame + back - window) < WINDOW
            ]
            values = np.unique(np.concatenate(copies))
            assert values.tolist() in ([0], [source_frame + 1])
            rate.append(values[0] == 0)
    assert np.mean(rate) == pytest.approx(0.3, abs=0.03)


def test_feature_rows_are_what_the_layout_says() -> None:
    session = random_session("a", 40, 4)
    rows = frame_features(session)
    assert rows.shape == (40, 671)
    assert (rows[0, VELOCITY_FEATURES] == 0).all()
    np.testing.assert_array_equal(rows[7, 260:485], session.frames[7, :225] - session.frames[6, :225])
    expected = session.state[7].copy()
    expected[[20, 21, 25, 44]] = session.state[6, [20, 21, 25, 44]]
    np.testing.assert_array_equal(rows[7, STATE_FEATURES], expected)
    np.testing.assert_array_equal(rows[0, 485 + 20], DEFAULT_STATE[20])
    np.testing.assert_array_equal(rows[7, HISTORY_FEATURES], session.controls[2:7].ravel())
    np.testing.assert_array_equal(rows[2, 531 : 531 + 3 * 28], np.zeros(3 * 28))
    np.testing.assert_array_equal(rows[2, 531 + 3 * 28 :], session.controls[:2].ravel())


def test_a_short_session_is_padded_on_the_left() -> None:
    source = WindowSource([random_session("a", 12, 5)], CPU, 0.3)
    assert len(source) == 1
    batch = source.batch(torch.tensor([0]), None)
    assert batch["mask"][0].tolist() == [False] * 18 + [True] * 12
    assert (batch["features"][0, :18] == 0).all()


def test_resident_arrays_stay_below_twice_the_raw_bytes() -> None:
    session = random_session("a", 2000, 6)
    source = WindowSource([session], CPU, 0.3)
    raw = sum(a.nbytes for a in (session.frames, session.controls, session.state, session.timestamps))
    storages = {
        t.untyped_storage().data_ptr(): t.untyped_storage() for t in vars(source).values() if torch.is_tensor(t)
    }
    beside = source.sessions.nbytes + source.times.nbytes
    assert sum(storage.nbytes() for storage in storages.values()) + beside == source.nbytes
    assert source.nbytes <= 2 * raw


def test_no_sync_with_the_host_is_asked_for_in_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    source = WindowSource([random_session("a", 100, 7)], CPU, 0.3)

    def refuse(*_: object) -> None:
        raise AssertionError("a value was taken to the host")

    for name in ("item", "tolist", "__bool__", "__int__", "__float__", "numpy", "cpu", "nonzero"):
        monkeypatch.setattr(torch.Tensor, name, refuse)
    source.batch(torch.tensor([1, 2]), philox(0))


def test_statistics_are_those_of_the_training_frames_of_coordinates_and_velocities() -> None:
    sessions = [random_session("a", 1500, 1), random_session("b", 12, 2), random_session("c", 90, 3)]
    for session in sessions:
        session.frames[:, 0] = 5000 + session.frames[:, 0] * 1e-2  # far away, and moving by centimetres
        session.frames[:, 1] = 1234.5  # does not move at all
    mean, std = WindowSource(sessions, CPU, 0.3).feature_statistics()
    rows = np.concatenate([frame_features(session) for session in sessions]).astype(np.float64)
    moving = np.r_[0:225, 260:485]
    expected = np.where(rows.std(0) < 1e-6, 1, rows.std(0))
    np.testing.assert_allclose(mean[moving], rows.mean(0)[moving], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(std[moving], expected[moving], rtol=1e-6)
    assert std[1] == std[261] == 1
    rest = np.setdiff1d(np.arange(671), moving)
    assert (mean[rest] == 0).all()
    assert (std[rest] == 1).all()
