"""A frame of pose and hands as lines in a plane, seen from the front; y grows upwards."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engines.contract.scenes import Kind, Line, Point
from projects.controls.layout import COORDINATES, HAND_POINTS, POSE_POINTS
from projects.controls.masks import Floats

PRESENT = COORDINATES
"""Where a frame says whether the left hand was seen; the right hand follows."""
_FACE = ((8, 6, 5, 4, 0, 1, 2, 3, 7), (9, 10))
_BODY = (
    (11, 12, 24, 23, 11), (11, 13, 15), (12, 14, 16), (23, 25, 27, 29, 31, 27), (24, 26, 28, 30, 32, 28),
)  # fmt: skip
"""MediaPipe's numbers of the landmarks that each line joins: trunk, arms, legs with feet."""
_WRISTS = (15, 16)
_FINGERS = tuple((0, *range(first, first + 4)) for first in range(1, HAND_POINTS, 4))
_SURE = 0.01
"""Share of all coordinates on either side that the picture's edges may ignore: the tracker's slips."""
_MARGIN = 0.08


def figure(frame: Floats) -> list[Line]:
    """The lines of a frame, `frame: (260,)`; a hand that was not seen is left out, others hang on their wrist."""
    points = _points(frame)
    pose = points[:POSE_POINTS]
    lines = [_line(pose, joints, "quiet") for joints in _FACE] + [_line(pose, joints, "plain") for joints in _BODY]
    for side, wrist in enumerate(_WRISTS):
        if frame[PRESENT + side] > 0.5:
            start = POSE_POINTS + side * HAND_POINTS
            hand = points[start : start + HAND_POINTS]
            lines += [_line(hand - hand[0] + pose[wrist], joints, "accent") for joints in _FINGERS]
    return lines


def bounds(frames: Floats) -> tuple[Point, Point]:
    """Lower left and upper right corner of what a session's bodies fill, `frames: (n, 260)`, with a margin."""
    x, y = (frames[:, start : 3 * POSE_POINTS : 3].astype(np.float64) for start in (0, 1))
    (left, right), (bottom, top) = (np.quantile(values, (_SURE, 1 - _SURE)) for values in (x, -y))
    margin = _MARGIN * max(right - left, top - bottom, 1e-3)
    return (float(left - margin), float(bottom - margin)), (float(right + margin), float(top + margin))


def _points(frame: Floats) -> NDArray[np.float64]:
    """(75, 2): x and height of every landmark."""
    return frame[:COORDINATES].reshape(-1, 3)[:, :2].astype(np.float64) * (1, -1)


def _line(points: NDArray[np.float64], joints: tuple[int, ...], kind: Kind) -> Line:
    return Line([(round(x, 4), round(y, 4)) for x, y in points[list(joints)].tolist()], kind)
