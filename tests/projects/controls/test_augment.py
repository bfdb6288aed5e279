"""Augmented batches equal the slow, readable windows, leak nothing and stay inside their sessions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from projects.controls.augment import draw
from projects.controls.batches import WindowSource
from projects.controls.config import Augmentation
from projects.controls.features import SOURCES, augmented_window, target_frames
from projects.controls.layout import CONTROL_SIZE, HISTORY, HISTORY_FEATURES, SCREEN_OPEN, VELOCITY_FEATURES, WINDOW
from projects.controls.recordings import Recording
from tests.projects.controls.sessions import random_session

CPU = torch.device("cpu")
OFF = Augmentation(crop=0, warp=0, noise=0)


def philox(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 70), min_size=1, max_size=4),
    seed=st.integers(0, 2**32),
    augmentation=st.builds(
        Augmentation,
        crop=st.sampled_from([0.0, 0.1, 0.3]), warp=st.sampled_from([0.0, 0.2, 0.49]), noise=st.sampled_from([0, 0.1]),
    ),
)  # fmt: skip
def test_every_window_equals_the_slow_reference(lengths: list[int], seed: int, augmentation: Augmentation) -> None:
    sessions = [random_session(str(k), length, seed + k) for k, length in enumerate(lengths)]
    source = WindowSource(sessions, CPU, 0.3, augmentation)
    windows = [(k, last) for k, length in enumerate(lengths) for last in target_frames(length)]
    order = np.random.default_rng(seed).permutation(len(windows))
    batch = source.batch(torch.from_numpy(order), philox(seed))
    rng = philox(seed)
    draws = draw(augmentation, len(order), CPU, rng) if augmentation.on else draw(OFF, len(order), CPU, philox(0))
    hidden = rng.random((len(order), SOURCES), np.float32) < 0.3
    for row, window in enumerate(order):
        session, last = sessions[windows[window][0]], windows[window][1]
        most = int(min(WINDOW, last + 1) * np.float32(augmentation.crop))
        old, new = (int(share * (most + 1)) for share in draws.crop[row].numpy())
        factor = np.float32(float(draws.factor[row]))
        expected = augmented_window(session, last, (old, new), factor, draws.noise[row].numpy(), hidden[row])
        np.testing.assert_allclose(batch["features"][row].numpy(), expected.features, rtol=0, atol=2e-6)
        np.testing.assert_array_equal(batch["features"][row, :, 485:].numpy(), expected.features[:, 485:])
        np.testing.assert_array_equal(batch["mask"][row].numpy(), expected.mask)
        np.testing.assert_array_equal(batch["target"][row].numpy(), session.controls[expected.target])
        assert batch["gameplay"][row] == (session.state[expected.target, SCREEN_OPEN] == 0)


def numbered(frames: int, offset: float = 0.0) -> Recording:
    """A session whose coordinates and controls tell the number of the frame, from 1."""
    session = random_session("n", frames, 0)
    session.controls[:] = np.arange(1, frames + 1)[:, None] + offset
    session.frames[:, :225] = np.arange(1, frames + 1)[:, None] + offset
    return session


def test_off_means_the_plain_windows_bit_for_bit() -> None:
    session = random_session("a", 200, 1)
    plain, off = WindowSource([session], CPU, 0.3), WindowSource([session], CPU, 0.3, OFF)
    indices = torch.arange(100)
    for name, value in plain.batch(indices, philox(3)).items():
        assert torch.equal(off.batch(indices, philox(3))[name], value), name
    on = WindowSource([session], CPU, 0.3, Augmentation())
    for name, value in plain.batch(indices, None).items():
        assert torch.equal(on.batch(indices, None)[name], value), f"{name}: validation is never augmented"


def test_the_code_of_augmentation_changes_nothing_where_nothing_is_drawn() -> None:
    """Noise too small to see, and so on: the other path through the code, the same windows."""
    sessions = [random_session("a", 120, 1), random_session("b", 12, 2)]
    plain = WindowSource(sessions, CPU, 0.0)
    faint = WindowSource(sessions, CPU, 0.0, Augmentation(crop=0, warp=0, noise=1e-30))
    indices = torch.arange(len(plain))
    for name, value in plain.batch(indices, None).items():
        assert torch.equal(faint.batch(indices, philox(3))[name], value), name


def test_the_same_generator_augments_the_same_and_every_window_differently() -> None:
    source = WindowSource([random_session("a", 100, 1)], CPU, 0.3, Augmentation())
    first, second = (source.batch(torch.tensor([3, 60, 3]), philox(5))["features"] for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first[0], first[2])


def test_crop_moves_the_target_and_pads_on_the_left() -> None:
    source = WindowSource([numbered(400)], CPU, 0.0, Augmentation(crop=0.1, warp=0, noise=0))
    batch = source.batch(torch.arange(371), philox(0))
    end = torch.arange(371) + WINDOW
    cut_new = end - batch["target"][:, 0].long()
    rows = batch["mask"].sum(1)
    assert batch["mask"][:, -1].all()
    assert np.unique(cut_new).tolist() == [0, 1, 2, 3]
    assert np.unique(WINDOW - rows - cut_new).tolist() == [0, 1, 2, 3], "cut at the old end"
    assert torch.equal(batch["features"][:, -1, 0], batch["target"][:, 0]), "the newest row is the target's frame"
    assert (batch["features"][~batch["mask"]] == 0).all()


def test_warp_makes_velocity_and_history_of_the_warped_time() -> None:
    source = WindowSource([numbered(400)], CPU, 0.0, Augmentation(crop=0, warp=0.2, noise=0))
    batch = source.batch(torch.arange(60, 371), philox(0))
    features, mask = batch["features"], batch["mask"]
    speed = features[:, -1, VELOCITY_FEATURES][:, 0]
    assert 0.8 <= float(speed.min()) < 0.82
    assert 1.18 < float(speed.max()) <= 1.2001
    ages = torch.arange(WINDOW - 1, -1, -1) * speed[:, None]
    expected = (batch["target"][:, :1] - ages) * mask
    torch.testing.assert_close(features[..., 0], expected, rtol=1e-4, atol=0)
    history = features[..., HISTORY_FEATURES].reshape(-1, WINDOW, HISTORY, CONTROL_SIZE)[..., 0]
    back = torch.arange(HISTORY, 0, -1)
    wanted = features[:, :, :1] - back * speed[:, None, None]
    distance = ((history - wanted).abs() * mask[..., None]).max()
    assert float(distance) <= 0.51, "a control of the history is the one nearest to its time"


def test_the_target_never_comes_into_the_history() -> None:
    source = WindowSource([numbered(400)], CPU, 0.0, Augmentation(crop=0.3, warp=0.49, noise=0))
    for seed in range(5):
        batch = source.batch(torch.arange(371), philox(seed))
        newest = batch["features"][..., HISTORY_FEATURES].amax((1, 2))
        assert (newest < batch["target"][:, 0]).all()


def test_nothing_reaches_across_the_start_of_a_session() -> None:
    sessions = [numbered(60, offset=1000), numbered(60, offset=2000), numbered(9, offset=3000)]
    source = WindowSource(sessions, CPU, 0.0, Augmentation(crop=0.1, warp=0.49, noise=0))
    for seed in range(10):
        batch = source.batch(torch.arange(len(source)), philox(seed))
        for name, columns in (("pose", slice(0, 225)), ("history", HISTORY_FEATURES)):
            shown = batch["features"][..., columns].flatten(1)
            foreign = (shown != 0) & (shown // 1000 != batch["target"][:, :1] // 1000)
            assert not foreign.any(), name
        assert (batch["features"][..., VELOCITY_FEATURES].abs() < 2).all()


def test_noise_is_in_the_velocity_too_but_not_before_the_session() -> None:
    session = random_session("a", 2000, 1)
    session.frames[:] = 0
    source = WindowSource([session], CPU, 0.0, Augmentation(crop=0, warp=0, noise=0.005))
    features = source.batch(torch.arange(500), philox(0))["features"]
    noise = features[..., :225]
    assert float(noise.std()) == pytest.approx(0.005, rel=0.01)
    assert (features[..., 225:260] == 0).all()
    velocity = features[..., VELOCITY_FEATURES]
    torch.testing.assert_close(velocity[:, 1:], noise[:, 1:] - noise[:, :-1], rtol=0, atol=1e-7)
    assert float(velocity[1:, 0].std()) == pytest.approx(0.005 * 2**0.5, rel=0.02)
    assert (velocity[0, 0] == 0).all()


def test_no_sync_with_the_host_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    source = WindowSource([random_session("a", 100, 7)], CPU, 0.3, Augmentation())

    def refuse(*_: object) -> None:
        raise AssertionError("a value was taken to the host")

    for name in ("item", "tolist", "__bool__", "__int__", "__float__", "numpy", "cpu", "nonzero"):
        monkeypatch.setattr(torch.Tensor, name, refuse)
    source.batch(torch.tensor([1, 2]), philox(0))
