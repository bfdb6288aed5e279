"""A MediaPipe-like body that shows gestures: 33 pose landmarks, two 21-point hands, presence and visibility.

World coordinates in metres as MediaPipe gives them: the origin is the middle of the hips, y points down, z away from
the camera; the player faces the camera, so their left is at +x. Hands are relative to their wrist.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from projects.controls.demo import names
from projects.controls.layout import CONTROL_SIZE, COORDINATES, FRAME_SIZE, HAND_POINTS, POSE_POINTS

Floats = NDArray[np.float64]
_POINTS = POSE_POINTS + 2 * HAND_POINTS
_LEFT_HAND, _RIGHT_HAND = POSE_POINTS, POSE_POINTS + HAND_POINTS

# landmark numbers of MediaPipe pose
_NOSE, _FACE, _EARS = (0,), (1, 2, 3, 4, 5, 6, 9, 10), (7, 8)
_HEAD = (*_NOSE, *_FACE, *_EARS)
_SHOULDERS, _ELBOWS, _KNEES = (11, 12), (13, 14), (25, 26)
_RIGHT_SHOULDER, _LEFT_ELBOW, _RIGHT_ELBOW = (12,), (13,), (14,)
_LEFT_WRIST, _RIGHT_WRIST = (15, 17, 19, 21), (16, 18, 20, 22)
_FEET = (27, 28, 29, 30, 31, 32)
_LEGS_DOWN = (*_KNEES, *_FEET)
_ARMS = (*_ELBOWS, *_LEFT_WRIST, *_RIGHT_WRIST)
# joints of MediaPipe hands, as points of this body
_LEFT_FINGERS = tuple(range(_LEFT_HAND + 1, _LEFT_HAND + HAND_POINTS))
_RIGHT_THUMB, _RIGHT_INDEX, _RIGHT_MIDDLE = (
    tuple(_RIGHT_HAND + joint for joint in joints) for joints in ((3, 4), (6, 7, 8), (10, 11, 12))
)

Movement = list[tuple[tuple[int, ...], tuple[float, float, float]]]


def _standing() -> Floats:
    """(75, 3): a person of 1.7 m standing with the forearms in front, hands half open."""
    points = np.zeros((_POINTS, 3))
    points[:11] = [
        (0.0, -0.64, -0.20), (0.02, -0.67, -0.18), (0.03, -0.67, -0.18), (0.05, -0.67, -0.17), (-0.02, -0.67, -0.18),
        (-0.03, -0.67, -0.18), (-0.05, -0.67, -0.17), (0.08, -0.64, -0.07), (-0.08, -0.64, -0.07),
        (0.03, -0.59, -0.17), (-0.03, -0.59, -0.17),
    ]  # fmt: skip
    left_side = {
        11: (0.17, -0.48, 0.0), 13: (0.24, -0.22, 0.03), 15: (0.20, -0.10, -0.18), 17: (0.20, -0.08, -0.25),
        19: (0.18, -0.10, -0.27), 21: (0.16, -0.12, -0.22), 23: (0.10, 0.0, 0.0), 25: (0.11, 0.40, -0.02),
        27: (0.11, 0.78, 0.04), 29: (0.11, 0.83, 0.07), 31: (0.13, 0.86, -0.08),
    }  # fmt: skip
    for landmark, (x, y, z) in left_side.items():
        points[landmark] = x, y, z
        points[landmark + 1] = -x, y, z  # landmarks of the right side follow those of the left by one
    for finger in range(5):
        joints = np.arange(1, 5)[:, None]
        spread = (finger - 2.0) * 0.012
        # the thumb is short and points to the side, the other fingers up and slightly forward
        step = (-0.02, -0.014, -0.006) if finger == 0 else (spread * 0.6, -0.024, -0.008)
        base = (-0.02, -0.01, 0.0) if finger == 0 else (spread * 2.2, -0.06, 0.0)
        first = 1 + 4 * finger
        points[_LEFT_HAND + first : _LEFT_HAND + first + 4] = np.array(base) + joints * np.array(step)
    points[_RIGHT_HAND:] = points[_LEFT_HAND:_RIGHT_HAND] * (-1, 1, 1)
    return points


_MOVEMENTS: dict[int, Movement] = {
    names.FORWARD: [(_HEAD, (0, 0.02, -0.15)), (_SHOULDERS, (0, 0.01, -0.11)), (_ARMS, (0, 0, -0.05))],
    names.BACK: [(_HEAD, (0, 0.02, 0.15)), (_SHOULDERS, (0, 0.01, 0.11)), (_ARMS, (0, 0, 0.05))],
    names.LEFT: [(_HEAD, (0.16, 0.02, 0)), (_SHOULDERS, (0.11, 0, 0)), (_ARMS, (0.06, 0, 0))],
    names.RIGHT: [(_HEAD, (-0.16, 0.02, 0)), (_SHOULDERS, (-0.11, 0, 0)), (_ARMS, (-0.06, 0, 0))],
    names.SPRINT: [(_LEFT_ELBOW, (0.08, -0.05, 0.14)), (_RIGHT_ELBOW, (-0.08, -0.05, 0.14))],
    names.SNEAK: [(_KNEES, (0, -0.10, -0.18)), (_FEET, (0, -0.18, 0.02))],
    names.JUMP: [(_SHOULDERS, (0, -0.12, 0)), (_HEAD, (0, -0.10, 0)), (_ELBOWS, (0, -0.12, -0.02))],
    names.ATTACK: [
        (_RIGHT_WRIST, (0.04, -0.14, -0.40)), (_RIGHT_ELBOW, (0, -0.10, -0.22)), (_RIGHT_SHOULDER, (0, 0, -0.08)),
    ],
    names.USE: [(_LEFT_WRIST, (-0.04, -0.10, -0.22)), (_LEFT_ELBOW, (0, -0.05, -0.12))],
    names.YAW: [(_NOSE, (-0.12, 0, 0.02)), (_FACE, (-0.10, 0, 0)), ((7,), (0.02, 0, -0.09)), ((8,), (0.02, 0, 0.09))],
    names.PITCH: [(_NOSE, (0, 0.12, 0.03)), (_FACE, (0, 0.09, 0.02)), (_EARS, (0, 0.02, -0.05))],
    names.DROP: [
        (_RIGHT_WRIST, (-0.38, 0.12, 0.04)), (_RIGHT_ELBOW, (-0.16, 0.04, 0)), (_RIGHT_SHOULDER, (-0.02, 0.05, 0)),
    ],
    names.SWAP: [
        (_LEFT_WRIST, (-0.36, -0.06, 0.02)), (_RIGHT_WRIST, (0.36, -0.06, 0.02)), (_ELBOWS, (0, -0.05, -0.06)),
    ],
    names.INVENTORY: [
        (_RIGHT_WRIST, (0, -0.50, 0.10)), (_RIGHT_ELBOW, (-0.08, -0.22, 0)), (_RIGHT_SHOULDER, (0, -0.06, 0)),
    ],
    # the left hand touches one of nine fields of an imagined pad in front of the shoulder
    **{
        names.FIRST_SLOT + slot: [
            (_LEFT_WRIST, (0.26 * (slot % 3 - 1) + 0.04, -0.30 + 0.24 * (slot // 3 - 1), 0.12)),
            (_LEFT_ELBOW, (0.14 * (slot % 3 - 1) + 0.04, -0.08 + 0.12 * (slot // 3 - 1), 0.06)),
        ]
        for slot in range(9)
    },
    names.POINT_X: [(_RIGHT_WRIST, (-0.50, 0, 0)), (_RIGHT_ELBOW, (-0.20, 0, 0))],
    names.POINT_Y: [(_RIGHT_WRIST, (0, 0.40, 0)), (_RIGHT_ELBOW, (0, 0.15, 0))],
    names.LEFT_CLICK: [(_RIGHT_INDEX, (0.05, 0.06, -0.02)), (_RIGHT_THUMB, (-0.03, 0, -0.02))],
    names.RIGHT_CLICK: [(_RIGHT_MIDDLE, (0.05, 0.07, -0.03)), (_RIGHT_THUMB, (-0.03, 0, -0.02))],
    names.SHIFT: [(_LEFT_FINGERS, (0, 0.05, -0.04))],
}  # fmt: skip
"""By control the movement that announces it, in metres: these landmarks move by (x, y, z)."""


def _shapes() -> Floats:
    """(28, 75, 3): how far each landmark moves when a control is shown in full."""
    shapes = np.zeros((CONTROL_SIZE, _POINTS, 3))
    for control, movement in _MOVEMENTS.items():
        for landmarks, shift in movement:
            shapes[control, list(landmarks)] += shift
    return shapes


STANDING = _standing()
SHAPES = _shapes()


def pose(shown: Floats, fps: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Frames of one person in front of one camera who shows `shown: (frames, 28)`: (frames, 260).

    Bodies differ in size, camera angle and liveliness from call to call; the body sways, the tracker trembles and
    loses a hand now and then.
    """
    frames = len(shown)
    points = STANDING + np.tensordot(shown, SHAPES * rng.uniform(0.9, 1.1, (CONTROL_SIZE, 1, 1)), 1)
    points += _sway(frames, fps, rng)
    angle = np.deg2rad(rng.uniform(-8, 8))
    turned = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    points = points @ turned * rng.uniform(0.93, 1.07)
    points[:, :POSE_POINTS] += rng.normal(0, 0.006, (frames, POSE_POINTS, 3))
    points[:, POSE_POINTS:] += rng.normal(0, 0.002, (frames, 2 * HAND_POINTS, 3))
    present = np.column_stack([_present(frames, fps, rng) for _ in range(2)])
    for hand, start in enumerate((_LEFT_HAND, _RIGHT_HAND)):
        points[~present[:, hand], start : start + HAND_POINTS] = 0.0
    result = np.empty((frames, FRAME_SIZE), np.float32)
    result[:, :COORDINATES] = points.reshape(frames, COORDINATES)
    result[:, COORDINATES : COORDINATES + 2] = present
    result[:, COORDINATES + 2 :] = _visibility(frames, rng)
    return result


def _sway(frames: int, fps: float, rng: np.random.Generator) -> Floats:
    """(frames, 75, 3): slow drift of a few centimetres; the hips stay the origin, and hands are relative to wrists."""
    kept = np.exp(-1 / fps)  # memory of about a second
    drift = np.empty((frames, 4, 3))
    drift[0] = rng.normal(0, 1, (4, 3))
    kicks = rng.normal(0, np.sqrt(1 - kept**2), (frames, 4, 3))
    for frame in range(1, frames):
        drift[frame] = kept * drift[frame - 1] + kicks[frame]
    sway = np.zeros((frames, _POINTS, 3))
    parts = ((*_HEAD, *_SHOULDERS), (*_LEFT_ELBOW, *_LEFT_WRIST), (*_RIGHT_ELBOW, *_RIGHT_WRIST), _LEGS_DOWN)
    for part, (landmarks, metres) in enumerate(zip(parts, (0.015, 0.02, 0.02, 0.008), strict=True)):
        sway[:, list(landmarks)] = metres * drift[:, part, None, :]
    return sway


def _present(frames: int, fps: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(frames,): whether a hand is tracked; it is lost for up to half a second, about once in a minute."""
    present = np.ones(frames, bool)
    for start in np.flatnonzero(rng.random(frames) < 1 / (60 * fps)):
        present[start : start + int(rng.integers(3, max(4, int(fps / 2))))] = False
    return present


def _visibility(frames: int, rng: np.random.Generator) -> Floats:
    """(frames, 33) in [0, 1]: nearly 1 for the upper body, less sure for legs and feet."""
    usual = np.full(POSE_POINTS, 0.99)
    usual[list(_KNEES)] = 0.9
    usual[list(_FEET)] = 0.8
    return np.clip(usual + rng.normal(0, 0.01, (frames, POSE_POINTS)), 0, 1)
