"""One rate for data, model and game: read, checked, made, and kept whatever the camera's is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engines.basics.errors import DataError
from projects.controls.batches import WindowSource
from projects.controls.evaluation import review_arrays, sending_arrays
from projects.controls.exported import read_exported
from projects.controls.importers.task import parse
from projects.controls.layout import CONTROL_SIZE, CURSOR, DEFAULT_STATE, FRAME_SIZE, HOTBAR, LOOK
from projects.controls.losses import head_losses, pos_weights
from projects.controls.model import ControlTransformer
from projects.controls.policy import ControlPolicy
from projects.controls.policy.ticks import Ticks
from projects.controls.predictions import predict
from projects.controls.recordings import Recording, read_folder, read_recording, write_recording
from projects.controls.resample import resampled
from projects.controls.sending import Rules
from projects.controls.thresholds import search_thresholds
from tests.projects.controls.exports import SIZES, nested, write
from tests.projects.controls.sessions import random_session
from tests.projects.controls.task_context import Listener

FORWARD, JUMP, ATTACK = 0, 6, 7


def at(recording: Recording, fps: float, times: NDArray[np.float64] | None = None) -> Recording:
    """The same frames, said to be of another rate."""
    return replace(recording, fps=fps, timestamps=np.arange(len(recording)) / fps if times is None else times)


# -- data ----------------------------------------------------------------------------------------------------------


def test_a_folder_has_one_rate(tmp_path: Path) -> None:
    for k, fps in enumerate((20.0, 60.0, 20.5, 20.0)):
        write_recording(tmp_path / f"s{k}.npz", at(random_session(f"s{k}", 40, k), fps))
    with pytest.raises(DataError) as caught:
        read_folder(tmp_path)
    file = tmp_path / "s1.npz"
    assert str(caught.value) == (
        f"{file}: has 60 frames a second, expected 20, as most recordings beside it have; "
        f"`cockpit data parse {file} OUT --set fps=20` makes one of that rate."
    )
    file.unlink()
    assert [one.fps for one in read_folder(tmp_path)] == [20.0, 20.5, 20.0]


def test_a_rate_that_the_timestamps_do_not_have_is_refused(tmp_path: Path) -> None:
    """Gaps do not count; milliseconds that are rounded do."""
    steps = np.array([17, 17, 16] * 30) / 1000
    steps[[5, 40]] = 3.0
    path = tmp_path / "a.npz"
    times = np.concatenate([[7.0], 7 + np.cumsum(steps)])
    write_recording(path, at(random_session("a", 91, 0), 20.0, times))
    with pytest.raises(
        DataError, match=r"its timestamps have 59\.99 frames a second, expected 20, as its fps says; `cockp"
    ):
        read_recording(path)
    write_recording(path, at(random_session("a", 91, 0), 60.0, times))
    assert read_recording(path).fps == 60


def content(path: Path, **changes: Any) -> dict[str, Any]:
    write_recording(path, random_session("a", 40, 0))
    with np.load(path) as file:
        found = {**file, **changes}
    np.savez(path, **{key: value for key, value in found.items() if value is not None})
    return found


def test_times_that_are_all_zero_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    content(path, timestamps=np.zeros(40), fps=30.0)
    recording = read_recording(path)
    assert recording.fps == 30
    assert recording.timestamps.tolist() == pytest.approx([k / 30 for k in range(40)])
    content(path, fps=None)
    assert read_recording(path).fps == pytest.approx(20)
    for times in (np.zeros(40), None):
        content(path, timestamps=times, fps=None)
        with pytest.raises(DataError, match="has neither timestamps nor fps, so nothing says how fast it was recorded"):
            read_recording(path)


def test_a_clock_that_goes_back_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    times = np.arange(40) / 20
    times[17:] -= 0.5
    content(path, timestamps=times)
    with pytest.raises(DataError, match=r"timestamps row 17 is 0\.35, before the 0\.8 of the row above; expected"):
        read_recording(path)


def test_parse_brings_recordings_to_a_rate(tmp_path: Path) -> None:
    """By their timestamps, even where the declared rate is wrong."""
    source = tmp_path / "in"
    write_recording(source / "a.npz", at(random_session("a", 121, 0), 20.0, np.arange(121) / 60))
    listener = Listener()
    parse({"source": str(source), "out": str(tmp_path / "out"), "fps": 20}, listener)
    made = read_recording(tmp_path / "out" / "a.npz")
    assert (len(made), made.fps) == (41, 20.0)
    assert "121 frames at 60 a second are brought to 20." in listener.lines[0]
    with pytest.raises(DataError, match="use it as it is, or give a rate to bring it to, as in --set fps=20"):
        parse({"source": str(source), "out": str(tmp_path / "other")}, Listener())


def test_the_same_rate_changes_nothing() -> None:
    session = random_session("a", 90, 1)
    again = resampled(session, 20.0)
    for name in ("frames", "state", "timestamps"):
        np.testing.assert_allclose(getattr(again, name), getattr(session, name), atol=1e-6)
    np.testing.assert_allclose(again.controls, session.controls, atol=1e-6)


@pytest.mark.parametrize(("fps", "wanted"), [(60.0, 20.0), (30.0, 20.0), (20.0, 30.0), (20.0, 60.0)])
def test_presses_turns_and_slots_survive_another_rate(fps: float, wanted: float) -> None:
    n = int(20 * fps)
    controls = np.zeros((n, CONTROL_SIZE), np.float32)
    controls[:, CURSOR] = 0.5
    taps = np.arange(5, n - 5, int(fps))
    controls[taps, JUMP] = 1
    controls[int(2 * fps) : int(5 * fps), ATTACK] = 1
    controls[taps, [HOTBAR[k % 9] for k in range(len(taps))]] = 1
    controls[:, LOOK] = np.random.default_rng(0).uniform(-0.2, 0.2, (n, 2))
    frames = np.zeros((n, FRAME_SIZE), np.float32)
    frames[:, 0] = np.arange(n) / fps
    session = Recording("a", frames, controls, np.tile(DEFAULT_STATE, (n, 1)), np.arange(n) / fps, fps, "x")
    made = resampled(session, wanted)
    assert len(made) == int(20 * wanted)
    np.testing.assert_allclose(made.frames[:-3, 0], np.arange(len(made))[:-3] / wanted, atol=1e-5)
    fires = np.flatnonzero(made.controls[:, JUMP])
    assert len(fires) == len(taps)
    assert np.abs(fires / wanted - taps / fps).max() < 1 / wanted
    assert made.controls[:, ATTACK].sum() / wanted == pytest.approx(3.0, abs=2 / wanted)
    slots = made.controls[:, HOTBAR]
    assert slots.argmax(axis=1)[slots.any(axis=1)].tolist() == [k % 9 for k in range(len(taps))]
    np.testing.assert_allclose(made.controls[:, LOOK].sum(axis=0), controls[:, LOOK].sum(axis=0), atol=1e-3)


# -- ticks ---------------------------------------------------------------------------------------------------------


def ticked(fps: float, times: NDArray[np.float64]) -> list[list[tuple[float, float]]]:
    """Time and first coordinate of the ticks of each frame; the coordinate of a frame is its time."""
    ticks = Ticks(fps)
    found = []
    for time in times.tolist():
        frame = np.full(FRAME_SIZE, time, np.float32)
        found.append([(tick.time, float(tick.frame[0])) for tick in ticks.push(frame, DEFAULT_STATE, time)])
    return found


@pytest.mark.parametrize("camera", [10.0, 15.0, 18.0, 24.0, 25.0, 30.0, 50.0, 60.0, 120.0])
def test_ticks_have_the_models_rate_and_what_was_seen_then(camera: float) -> None:
    ticks = [tick for some in ticked(20.0, 3 + np.arange(int(30 * camera)) / camera) for tick in some]
    times, seen = np.array(ticks).T
    assert len(times) == pytest.approx(30 * 20, abs=3)
    assert np.abs(np.diff(times) - 0.05).max() < 0.025
    np.testing.assert_allclose(seen, times, atol=1e-5)


def test_a_camera_of_the_same_rate_has_one_tick_a_frame_as_it_is() -> None:
    random = np.random.default_rng(0)
    for off in (0.985, 1.0, 1.015):
        times = np.arange(2000) * 0.05 * off + random.uniform(-0.004, 0.004, 2000)
        found = ticked(20.0, times)
        assert [len(some) for some in found] == [1] * 2000
        assert [some[0][0] for some in found] == times.tolist()


# -- a performance, seen by cameras of three rates -----------------------------------------------------------------

STEP, LENGTH = 0.05, 60.0


@dataclass
class Performance:
    """A body of which three coordinates sway and six bump: forward while it sways far, a jump as it bumps."""

    seed: int

    def __post_init__(self) -> None:
        random = np.random.default_rng(self.seed)
        self.phases = random.uniform(0, 6, 3)
        self.bumps = 1 + np.cumsum(random.uniform(0.7, 1.6, 60))

    def sway(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        return sum((np.sin(t * w + p) for w, p in zip((2.1, 3.3, 1.2), self.phases, strict=True)), np.zeros(len(t)))

    def frames(self, t: NDArray[np.float64]) -> NDArray[np.float32]:
        frames = np.zeros((len(t), FRAME_SIZE))
        frames[:, 0:3] = self.sway(t)[:, None]
        frames[:, 3:9] = np.exp(-(((t[:, None] - self.bumps) / 0.1) ** 2)).sum(axis=1)[:, None]
        return frames.astype(np.float32)

    def controls(self) -> NDArray[np.float32]:
        """At the model's rate: a jump on the first frame after a bump's middle."""
        t = np.arange(0, LENGTH, STEP)
        controls = np.zeros((len(t), CONTROL_SIZE), np.float32)
        controls[:, CURSOR] = 0.5
        controls[:, FORWARD] = self.sway(t) > 0.5
        places = np.ceil(self.bumps / STEP).astype(int)
        controls[places[places < len(t)], JUMP] = 1
        return controls

    def recording(self) -> Recording:
        t = np.arange(0, LENGTH, STEP)
        return Recording(
            f"p{self.seed}", self.frames(t), self.controls(), np.tile(DEFAULT_STATE, (len(t), 1)), t, 20.0, "x"
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of a small model that has learned it, tuned as it is sent."""
    torch.manual_seed(0)
    source = WindowSource([Performance(k).recording() for k in range(1, 4)], torch.device("cpu"), 0.5)
    weights = pos_weights(source, "neg_pos", 8.0)
    model = ControlTransformer(**{**SIZES, "num_layers": 1}, dropout=0.0)
    model.normalise(*source.feature_statistics())
    steps = 240
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    random = np.random.default_rng(0)
    for _ in range(steps):
        batch = source.batch(torch.from_numpy(random.integers(0, len(source), 96)), random)
        losses = head_losses(model(batch["features"], batch["mask"]), batch, weights, frozenset())
        loss = losses["action"].total / losses["action"].count
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        rate.step()
    held_out = WindowSource([Performance(9).recording()], torch.device("cpu"), 0.0)
    prediction, truth = predict(model.eval(), held_out, 512)
    rules = Rules.of(0.05, 0.0, {})
    review = {**review_arrays(prediction, truth, held_out.sessions), **sending_arrays(held_out.times, 20.0, rules)}
    config = nested()
    config["model"]["num_layers"] = 1
    config["features"] = {"history_frames": 5, "frames_per_second": 20.0}
    config["features"]["state_lagged_one_frame"] = ["sprinting", "sneaking", "is_using_item", "hotbar_slot"]
    config["thresholds"] = search_thresholds(review, 0.3)["thresholds"]
    config["post_processing"] |= {"hysteresis_margin": 0.05, "pulse_margin": 0.0}
    return write(tmp_path_factory.mktemp("export"), config, model.state_dict())


def played(policy: ControlPolicy, performance: Performance, camera: float) -> NDArray[np.bool_]:
    """(ticks, 2): forward and jump as the game was sent them, on frames of the model's rate.

    Forward is what is down 25 ms into a frame; a jump belongs to the frame in which it is sent.
    """
    policy.reset()
    times = np.arange(int(LENGTH * camera)) / camera
    sent = [
        policy.step(frame, None, time).controls
        for frame, time in zip(performance.frames(times), times.tolist(), strict=True)
    ]
    controls = np.array(sent) > 0.5
    grid = np.arange(0, LENGTH, STEP)
    found = np.zeros((len(grid), 2), np.bool_)
    found[:, 0] = controls[np.searchsorted(times, grid + STEP / 2, side="right") - 1, FORWARD]
    found[np.floor(times[controls[:, JUMP]] / STEP + 1e-6).astype(int), 1] = True
    return found


def f1(found: NDArray[np.bool_], truth: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.asarray(2 * (found & truth).sum(axis=0) / (found.sum(axis=0) + truth.sum(axis=0)))


def test_cameras_of_three_rates_make_the_same_performance(folder: Path) -> None:
    """99 % of the frames are sent alike, and no F1 falls by more than .03; without the rate both are far off."""
    performance = Performance(12)
    truth = performance.controls()[:, [FORWARD, JUMP]] > 0.5
    policy = ControlPolicy.load(folder)
    native = played(policy, performance, 20.0)
    reached = f1(native, truth)
    assert (reached > 0.85).all(), reached
    for camera in (30.0, 60.0):
        found = played(policy, performance, camera)
        assert (found == native).mean() > 0.99, camera
        assert (f1(found, truth) > reached - 0.03).all(), camera
    blind = ControlPolicy(replace(read_exported(folder), fps=None), policy._network)
    lost = played(blind, performance, 60.0)
    assert f1(lost, truth)[1] < reached[1] - 0.3


def test_turns_keep_their_sum_at_any_rate(folder: Path) -> None:
    performance, sums = Performance(12), {}
    for camera in (20.0, 30.0, 60.0):
        policy = ControlPolicy.load(folder)
        times = np.arange(int(30 * camera)) / camera
        frames = performance.frames(times)
        turned = [policy.step(f, None, t).degrees for f, t in zip(frames, times.tolist(), strict=True)]
        sums[camera] = np.sum(np.abs(turned), axis=0)
    assert sums[20.0].max() > 5
    for camera in (30.0, 60.0):
        np.testing.assert_allclose(sums[camera], sums[20.0], rtol=0.03, atol=0.5)


def test_an_unlikely_rate_in_a_config_is_refused(tmp_path: Path) -> None:
    for rate in (0, 1e9, "20", True):
        config = nested()
        config["features"]["frames_per_second"] = rate
        with pytest.raises(DataError, match=r"features\.frames_per_second is|frames_per_second is"):
            read_exported(write(tmp_path, config))
    assert read_exported(write(tmp_path, nested())).fps is None
