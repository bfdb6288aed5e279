"""The policy on a stream of frames: its features, its caches, its history, and that nothing stays pressed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from projects.controls.features import frame_features, window_features
from projects.controls.layout import ACTION, BINARY, CONTROL_SIZE, CURSOR, DEFAULT_STATE, HOTBAR, INV, LOOK, SCREEN_OPEN
from projects.controls.masks import Floats
from projects.controls.policy import ControlPolicy, Decision
from projects.controls.policy.network import outputs
from projects.controls.policy.window import FeatureStream
from projects.controls.recordings import Recording
from tests.projects.controls.exports import THRESHOLDS, nested, tiny_model, write
from tests.projects.controls.sessions import random_session


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("export"), nested())


@pytest.fixture
def policy(folder: Path) -> ControlPolicy:
    return ControlPolicy.load(folder)


@pytest.fixture(scope="module")
def session() -> Recording:
    return random_session("s", 75, 3)


def replay(policy: ControlPolicy, session: Recording, *, forced: bool) -> list[Decision]:
    decisions = []
    for k in range(len(session)):
        decisions.append(policy.step(session.frames[k], session.state[k], float(session.timestamps[k])))
        if forced:
            policy.observe(session.controls[k])
    return decisions


def test_the_rows_of_a_stream_are_those_of_the_session(session: Recording) -> None:
    stream = FeatureStream(lagged=(20, 21, 25, 44))  # what `frame_features` lags
    for k, expected in enumerate(frame_features(session)):
        assert np.array_equal(stream.row(session.frames[k], session.state[k]), expected)
        stream.observe(session.controls[k])


def reference(session: Recording, controls: Floats, last: int) -> dict[str, NDArray[np.float32]]:
    """The model on one whole window, made anew from the session with these past controls."""
    told = Recording(
        name="", frames=session.frames[: last + 1], controls=controls[: last + 1], state=session.state[: last + 1],
        timestamps=session.timestamps[: last + 1], fps=20.0, session_type="",
    )  # fmt: skip
    features, mask = window_features(told, last)
    # the tests' config lags sprinting and hotbar_slot only; sneaking and is_using_item are as on the frame itself
    for row in range(30):
        frame = last - 29 + row
        if frame >= 0:
            features[row, [485 + 21, 485 + 25]] = session.state[frame, [21, 25]]
    with torch.inference_mode():
        return vars(outputs(tiny_model()(torch.from_numpy(features)[None], torch.from_numpy(mask)[None])))


def assert_same(decision: Decision, expected: dict[str, NDArray[np.float32]]) -> None:
    for head, values in expected.items():
        np.testing.assert_allclose(getattr(decision.raw, head), values, atol=2e-6, err_msg=head)


def test_a_step_equals_the_whole_window_made_again(policy: ControlPolicy, session: Recording) -> None:
    """Teacher-forced; short windows at the start are padded on the left."""
    decisions = replay(policy, session, forced=True)
    for last in (2, 3, 10, 28, 29, 30, 44, 74):
        assert_same(decisions[last], reference(session, session.controls, last))


def test_history_is_its_own_past_frame_by_frame(policy: ControlPolicy, session: Recording) -> None:
    """The decisions in the form of the targets: on or off with hysteresis, look and cursor before smoothing."""
    decisions = replay(policy, session, forced=False)
    own = np.zeros((len(session), CONTROL_SIZE), np.float32)
    own[:, CURSOR] = 0.5
    on = np.zeros(15, np.bool_)
    thresholds = np.array(THRESHOLDS)
    for k, decision in enumerate(decisions):
        if not decision.ready:
            continue
        screen = session.state[k, SCREEN_OPEN] > 0
        p = np.concatenate([decision.raw.action, decision.raw.inv])
        on = (p >= thresholds + 0.02) | (on & (p >= thresholds - 0.02))
        on &= np.array([screen != (column in ACTION) or column == 13 for column in BINARY])
        own[k, BINARY] = on
        own[k, CURSOR if screen else LOOK] = decision.raw.cursor if screen else decision.raw.look
        own[k, HOTBAR] = decision.controls[list(HOTBAR)]
    for last in (5, 30, 50, 74):
        assert_same(decisions[last], reference(session, own, last))
    assert own[:, BINARY].any(axis=0).sum() >= 8  # the case is worth something


def test_what_is_sent_has_the_form_of_a_recording(policy: ControlPolicy, session: Recording) -> None:
    decisions = replay(policy, session, forced=False)
    assert [decision.ready for decision in decisions] == [False, False] + [True] * 73
    controls = np.stack([decision.controls for decision in decisions])
    screen = session.state[:, SCREEN_OPEN] > 0
    assert controls.shape == (75, 28)
    assert np.isin(controls[:, [*BINARY, *HOTBAR]], (0, 1)).all()
    assert controls[:, HOTBAR].sum(axis=1).max() == 1
    assert not controls[screen][:, [column for column in ACTION if column != 13]].any()
    assert not controls[~screen][:, INV].any()
    assert not controls[screen][:, LOOK].any()
    assert (controls[~screen][:, CURSOR] == 0.5).all()
    assert controls[~screen][:, LOOK].any()
    degrees = np.stack([decision.degrees for decision in decisions])
    assert np.allclose(degrees, controls[:, LOOK] * [5, 3])
    for pulse in (6, 7, 11, 12, 13, 25, 26):
        fired = session.timestamps[controls[:, pulse] > 0]
        assert (np.diff(fired) >= 0.3).all()


def test_smoothing_begins_again_in_each_mode(policy: ControlPolicy, session: Recording) -> None:
    decisions = replay(policy, session, forced=False)
    screen = session.state[:, SCREEN_OPEN] > 0
    changes = [k for k in range(4, len(session)) if screen[k] != screen[k - 1]]
    assert {bool(screen[k]) for k in changes} == {False, True}
    for k in changes:
        raw, controls = decisions[k].raw, decisions[k].controls
        if screen[k]:
            np.testing.assert_allclose(controls[list(CURSOR)], raw.cursor, atol=1e-6)
        else:
            wanted = raw.look if np.hypot(*raw.look) > 0.1 else np.zeros(2)
            np.testing.assert_allclose(controls[list(LOOK)], np.clip(0.4 * wanted, -0.2, 0.2), atol=1e-6)


def pressed(decision: Decision) -> bool:
    return bool(
        decision.controls[list(BINARY)].any() or decision.degrees.any() or decision.controls[list(HOTBAR)].any()
    )


def busy(tmp_path: Path) -> ControlPolicy:
    """One that holds every key in the game."""
    config = nested()
    config["thresholds"]["action"] = [0.0] * 12
    return ControlPolicy.load(write(tmp_path / "busy", config))


BAD_FRAME = np.full(260, np.nan, np.float32)
GOOD_FRAME = np.zeros(260, np.float32)


@pytest.mark.parametrize(
    ("frame", "state", "later", "why"),
    [
        (BAD_FRAME, None, 0.05, "not finite"),
        (np.full(260, 1e300), None, 0.05, "not finite"),
        (np.full(260, 3e38, np.float32), None, 0.05, "the model's answer is not finite"),
        (GOOD_FRAME, np.full(46, np.inf, np.float32), 0.05, "not finite"),
        (GOOD_FRAME, None, float("nan"), "not finite"),
        (GOOD_FRAME, None, 0.0, "the clock stood still or went back"),
        (GOOD_FRAME, None, -3.0, "the clock stood still or went back"),
        (GOOD_FRAME, None, 0.6, "no frame for over 0.5 s"),
    ],
)
def test_whatever_breaks_the_stream_releases_everything(
    tmp_path: Path, frame: Floats, state: Floats | None, later: float, why: str
) -> None:
    policy = busy(tmp_path)
    held = [policy.step(GOOD_FRAME, None, k / 20) for k in range(6)][-1]
    assert held.controls[0] == 1
    with np.errstate(all="ignore"):
        broken = policy.step(frame, state, 0.25 + later)
    assert not broken.ready
    assert not pressed(broken)
    assert why in broken.why
    # and the buffer is filled anew before anything is pressed again
    start = 10.0
    again = [policy.step(GOOD_FRAME, None, start + k / 20) for k in range(3)]
    assert [decision.ready for decision in again] == [False, False, True]
    assert [pressed(decision) for decision in again] == [False, False, True]


@pytest.mark.parametrize(
    ("frame", "state", "message"),
    [
        (np.zeros(261, np.float32), None, r"frame has shape \(261,\) of float32, expected \(260,\) numbers"),
        (np.zeros((1, 260), np.float32), None, r"frame has shape \(1, 260\)"),
        (GOOD_FRAME, np.zeros(24, np.float32), r"state has shape \(24,\)"),
        (np.array(["x"] * 260), None, "frame has shape"),
    ],
)
def test_a_wrong_shape_is_an_error_and_everything_is_forgotten(
    tmp_path: Path, frame: Floats, state: Floats | None, message: str
) -> None:
    policy = busy(tmp_path)
    for k in range(6):
        policy.step(GOOD_FRAME, None, k / 20)
    with pytest.raises(ValueError, match=message):
        policy.step(frame, state, 0.3)
    assert not pressed(policy.step(GOOD_FRAME, None, 0.35))
    with pytest.raises(ValueError, match=r"controls has shape \(27,\)"):
        policy.observe(np.zeros(27, np.float32))


def test_release_lets_go_and_reset_forgets(policy: ControlPolicy, session: Recording) -> None:
    first = replay(policy, session, forced=False)
    assert not pressed(policy.release())
    second = replay(policy, session, forced=False)  # the clock starts anew with the buffer
    policy.reset()
    third = replay(policy, session, forced=False)
    for other in (second, third):
        assert all(np.array_equal(a.controls, b.controls) for a, b in zip(first, other, strict=True))


def test_a_screen_that_opens_lets_go_of_the_game(tmp_path: Path) -> None:
    policy = busy(tmp_path)
    opened = DEFAULT_STATE.copy()
    opened[SCREEN_OPEN] = 0.33
    moods = [DEFAULT_STATE] * 5 + [opened] * 3 + [DEFAULT_STATE]
    held = [policy.step(GOOD_FRAME, state, k / 20).controls[:9].any() for k, state in enumerate(moods)]
    assert held == [False] * 2 + [True] * 3 + [False] * 3 + [True]


def test_without_a_state_it_is_gameplay(policy: ControlPolicy, session: Recording) -> None:
    told = [policy.step(frame, DEFAULT_STATE, k / 20) for k, frame in enumerate(session.frames[:20])]
    policy.reset()
    untold = [policy.step(frame, None, k / 20) for k, frame in enumerate(session.frames[:20])]
    assert_same(untold[2], vars(told[2].raw))
    assert all((decision.controls[list(CURSOR)] == 0.5).all() for decision in untold)


def test_the_inputs_are_left_as_they_are_and_may_be_reused(policy: ControlPolicy, session: Recording) -> None:
    expected = replay(policy, session, forced=False)
    policy.reset()
    frame, state = np.empty(260, np.float32), np.empty(46, np.float32)
    for k, decision in enumerate(expected):
        frame[:], state[:] = session.frames[k], session.state[k]
        again = policy.step(frame, state, float(session.timestamps[k]))
        assert np.array_equal(frame, session.frames[k])
        assert np.array_equal(again.controls, decision.controls)


def test_it_needs_no_training_code(folder: Path) -> None:
    code = f"""
import json, sys
from pathlib import Path
from projects.controls.policy import ControlPolicy
ControlPolicy.load(Path({str(folder)!r}))
print(json.dumps(sorted(sys.modules)))
"""
    answer = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(answer.stdout))
    training = {"projects.controls.project", "projects.controls.losses", "projects.controls.batches", "pydantic"}
    assert {name for name in loaded if name.startswith("engines.training")} | (loaded & training) == set()
