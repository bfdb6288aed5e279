"""Stepping through a recording: decisions against the model run by windows, differences, the figure, an engine."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cockpit.core.scenes.play import PlayFollower, open_play
from engines.basics.errors import DataError
from engines.basics.lock import lock_holder
from engines.contract import scenes
from engines.contract.rundir import RunDirectory
from engines.contract.scenes import Gauge, Scene
from engines.runs import launch
from engines.runs.state import RunReader
from projects.controls.decisions import Decisions, decide, differences
from projects.controls.features import window_features
from projects.controls.layout import (
    ACTION,
    BINARY,
    CONTROL_NAMES,
    DEFAULT_STATE,
    FRAME_SIZE,
    HOTBAR,
    INV,
    LEAKING_STATE,
    SCREEN_OPEN,
    STATE_NAMES,
)
from projects.controls.play import ControlsSession
from projects.controls.policy import ControlPolicy
from projects.controls.recordings import Recording, write_recording
from projects.controls.stick_figure import bounds, figure
from tests.engines.conftest import wait_for
from tests.projects.controls.exports import THRESHOLDS, nested, tiny_model, write
from tests.projects.controls.sessions import random_session

CONFIG = Path(__file__).resolve().parents[3] / "configs" / "controls_demo.yaml"
LIMITS = np.array(THRESHOLDS)


def exported(folder: Path) -> Path:
    config = nested()
    config["features"]["state_lagged_one_frame"] = [STATE_NAMES[column] for column in LEAKING_STATE]
    return write(folder, config)


def no_tick() -> None:
    pass


@pytest.fixture(scope="module")
def recording() -> Recording:
    return random_session("play", frames=60, seed=8)


@pytest.fixture(scope="module")
def forced(recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> Decisions:
    policy = ControlPolicy.load(exported(tmp_path_factory.mktemp("export")))
    return decide(policy, recording, forced=True, tick=no_tick)


def test_with_the_players_history_it_is_the_model_run_on_each_window(recording: Recording, forced: Decisions) -> None:
    model = tiny_model()
    assert forced.ready.tolist() == [False, False] + [True] * 58
    for last in (2, 7, 29, 30, 59):
        features, mask = window_features(recording, last)
        with torch.no_grad():
            heads = model(torch.from_numpy(features)[None], torch.from_numpy(mask)[None])
        expected = torch.cat([heads["action_logits"][0], heads["inv_click_logits"][0]]).sigmoid().numpy()
        np.testing.assert_allclose(forced.binary[last], expected, atol=1e-5)
        np.testing.assert_allclose(forced.look[last], heads["look"][0].numpy(), atol=1e-5)
        np.testing.assert_allclose(forced.hotbar[last], heads["hotbar_logits"][0].softmax(0).numpy(), atol=1e-5)


def test_with_its_own_history_what_the_player_did_does_not_matter(recording: Recording, tmp_path: Path) -> None:
    policy = ControlPolicy.load(exported(tmp_path))
    ticks: list[None] = []
    own = decide(policy, recording, forced=False, tick=lambda: ticks.append(None))
    other = replace(recording, controls=np.zeros_like(recording.controls))
    np.testing.assert_array_equal(own.binary, decide(policy, other, forced=False, tick=no_tick).binary)
    assert np.abs(own.binary - decide(policy, other, forced=True, tick=no_tick).binary).max() > 1e-3
    assert len(ticks) == len(recording)


def test_differences_by_hand() -> None:
    frames = 6
    state = np.tile(DEFAULT_STATE, (frames, 1))
    state[3:5, SCREEN_OPEN] = 0.33
    controls, sent = np.zeros((2, frames, 28), np.float32)
    binary = np.zeros((frames, 15), np.float32)
    forward, inventory, click = (BINARY.index(CONTROL_NAMES.index(name)) for name in (
        "move_forward", "open_inventory", "inv_left_click"
    ))  # fmt: skip
    binary[:, forward] = [0.9, 0.9, 0.5, 0.9, 0.2, 0.2]  # a threshold of 0.5 is reached by 0.5
    controls[[1, 5], ACTION[0]] = 1
    binary[4, inventory] = 0.9
    binary[[2, 3], click] = 0.9
    sent[2, HOTBAR[4]] = 1
    controls[4, HOTBAR[0]] = 1
    nothing = np.zeros((frames, 2), np.float32)
    decisions = Decisions(
        np.array([False, *[True] * 5]), binary, nothing, np.zeros((frames, 9), np.float32), nothing, sent
    )
    recording = Recording(
        "hand", np.zeros((frames, FRAME_SIZE), np.float32), controls, state.astype(np.float32),
        np.arange(frames) / 20, 20.0, "walk",
    )  # fmt: skip
    found = differences(recording, decisions, np.full(15, 0.5))
    # frame 0 is not asked; 1 agrees; 3 and 4 have a screen open, where moving means nothing and clicks do
    expected = {(2, forward), (2, 15), (3, click), (4, inventory), (4, 15), (5, forward)}
    assert {(int(frame), int(control)) for frame, control in np.argwhere(found)} == expected


def test_the_figure_joins_the_landmarks_and_hangs_hands_on_wrists() -> None:
    frame = np.zeros(FRAME_SIZE, np.float32)
    points = frame[:225].reshape(75, 3)
    points[:33, 0] = np.arange(33)
    points[:33, 1] = np.arange(33) * 2  # downwards
    points[33:54, 0] = 100 + np.arange(21)
    frame[225] = 1  # only the left hand is seen
    lines = [line.points for line in figure(frame)]
    assert [(11, -22), (13, -26), (15, -30)] in lines
    assert [(15, -30), (20, -30), (21, -30), (22, -30), (23, -30)] in lines  # the index finger from wrist 15
    assert (16, -32) not in [line[0] for line in lines]
    low, high = bounds(np.stack([frame] * 4))
    assert low[0] < 0 < 32 < high[0]
    assert low[1] < -64 < 0 < high[1]


def test_jumps_go_to_every_frame_that_differs(recording: Recording, forced: Decisions) -> None:
    nothing_pressed = replace(forced, binary=np.zeros_like(forced.binary), sent=np.zeros_like(forced.sent))
    session = ControlsSession(recording, [forced, nothing_pressed], LIMITS)

    def expected(pressed: Callable[[int, int], bool], slot: Callable[[int], bool]) -> list[int]:
        differing = []
        for frame in range(2, len(recording)):
            screen = recording.state[frame, SCREEN_OPEN]
            for k, column in enumerate(BINARY):
                counts = screen > 0 if column in INV else screen == 0 or CONTROL_NAMES[column] == "open_inventory"
                if counts and pressed(frame, k) != (recording.controls[frame, column] > 0.5):
                    differing.append(frame)
            if slot(frame):
                differing.append(frame)
        return sorted(set(differing))

    def slots_differ(frame: int) -> bool:
        return list(recording.controls[frame, HOTBAR] > 0.5) != list(forced.sent[frame, HOTBAR] > 0.5)

    for history, places in enumerate(
        (
            expected(lambda frame, k: bool(forced.binary[frame, k] >= THRESHOLDS[k]), slots_differ),
            expected(lambda frame, k: False, lambda frame: bool((recording.controls[frame, HOTBAR] > 0.5).any())),
        )
    ):
        position, found = 0, []
        while (later := session.act("next", position)) != position:
            found.append(position := later)
        assert found == places
        back = [position]
        while (earlier := session.act("previous", position)) != position:
            back.append(position := earlier)
        assert back == places[::-1]
        assert session.scene(0).note.startswith(f"{len(places)} differ")
        assert session.act("history", 5) == 5, history


def test_a_scene_tells_what_the_frame_holds(recording: Recording, forced: Decisions) -> None:
    session = ControlsSession(recording, [forced, forced], LIMITS)
    frame = next(k for k in range(2, 60) if recording.state[k, SCREEN_OPEN] == 0 and recording.controls[k, 0] > 0.5)
    scene = session.scene(frame)
    gauges = {row.label: row for panel in scene.panels for row in panel.rows if isinstance(row, Gauge)}
    forward = gauges["forward"]
    assert forward.value == pytest.approx(forced.binary[frame, 0], abs=1e-3)
    assert forward.mark == THRESHOLDS[0]
    assert forward.signs[0].text == "●"
    assert (forward.signs[1].text == "●") == (forced.binary[frame, 0] >= THRESHOLDS[0])
    assert gauges["look yaw"].other == pytest.approx(recording.controls[frame, 9], abs=1e-3)
    assert gauges["left click"].value is None  # means nothing without an open screen
    assert len(scenes.encode(scene)) < 20_000


# -- the engine itself -------------------------------------------------------------------------------------------------


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunDirectory]:
    """A training's directory with an export, and its data: what is played of it is ended."""
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    for number in range(3):
        write_recording(tmp_path / "data" / f"s{number}.npz", random_session(f"s{number}", 50, seed=number))
    run = launch.prepare_training(CONFIG, [f"data.path={tmp_path / 'data'}"])
    exported(run.export)
    yield run
    for path in (tmp_path / "runs").iterdir():
        if (holder := lock_holder(RunDirectory(path).lock)) is not None:
            os.kill(holder, signal.SIGQUIT)


def test_a_real_engine_is_driven_through_its_socket(trained: RunDirectory) -> None:
    viewing = open_play(trained)
    engine = viewing.run
    second = open_play(trained)
    assert (second.run.path, viewing.started, second.started) == (engine.path, True, False)
    follower = PlayFollower(viewing)

    def shown(what: str, condition: Callable[[Scene], bool]) -> Scene:
        def look() -> Scene | None:
            news = follower.poll(0.05)
            assert news.live, news.log
            return news.scene if news.scene is not None and condition(news.scene) else None

        found: Scene = wait_for(what, look)
        return found

    first = shown("the first scene", lambda scene: True)
    assert (first.position, first.total) == (0, 50)
    assert first.title in ("s0", "s1", "s2")
    follower.send(scenes.Seek(49))
    shown("the end", lambda scene: scene.position == 49)
    follower.send(scenes.Press("start"))
    follower.send(scenes.Press("next"))
    one = shown("a disagreement", lambda scene: 0 < scene.position < 49)
    assert any(row.differs for row in one.panels[0].rows if isinstance(row, Gauge)) or "bad" in str(one.panels[1])
    follower.send(scenes.Press("history"))
    assert shown("its own history", lambda scene: scene.note != one.note).position == one.position
    progress = RunReader(engine)
    progress.poll()
    told = progress.history.progress
    assert told is not None
    assert (told.done, told.total, told.unit) == (100, 100, "frames decided")
    follower.end()
    wait_for("the engine to be gone", lambda: lock_holder(engine.lock) is None)
    assert RunReader(engine).status().state == "finished"
    assert not (engine.path / scenes.SOCKET).exists()


def test_what_cannot_be_played_is_said(trained: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.npz: there is no such file; expected a recording"):
        open_play(trained, str(tmp_path / "nowhere.npz"))
    for file in trained.export.iterdir():
        file.unlink()
    with pytest.raises(DataError, match=r"has no export yet; make one with `cockpit export"):
        open_play(trained)
