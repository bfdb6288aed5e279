"""A rover drives towards one thing after another, and slows, stops, backs or turns as the thing demands.

Each scene is a thing at a distance, of a kind (a human in red, a grey obstacle, walls on both sides) and on a side.
Risk is how soon it would be reached: pictures say the distance, telemetry the speed; either alone says less than both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projects.sim.drives import About, Drive
from projects.sim.labels import ACTION, REASON, TELEMETRY
from projects.sim.readers.rules import labelled, since_last

RATE, HORIZON = 10.0, 3
"""Frames per second, and how many after a window its labels are of."""
HEIGHT, WIDTH = 24, 32
EDGES = (4.0, 2.5, 1.2)
"""Seconds to contact under which risk is low, med and high."""
FAR, NEAR = 12.0, 0.8
"""Metres: where a thing appears, and where the rover stands before it."""
CRUISES = (1.0, 4.0)
COLOURS = {"human": (200, 60, 50), "obstacle": (120, 120, 125), "tight_space": (70, 60, 55)}
RULES = (
    f"risk: the seconds to contact {HORIZON} frames ahead, under {', '.join(f'{edge:g}' for edge in EDGES)}",
    "reason: the kind of thing, unknown without risk",
    f"action: what the rover does {HORIZON} frames ahead",
)


@dataclass
class _Rover:
    """Where it is in a scene: speed and heading's rate, metres to the thing, and how long it has stood."""

    speed: float
    turning: float
    distance: float
    stood: int = 0


def make_drive(seed: int, number: int, minutes: float) -> Drive:
    """A drive: the same for the same seed, number and length."""
    random = np.random.default_rng((seed, number))
    count = int(minutes * 60 * RATE)
    rover = _Rover(speed=2.0, turning=0.0, distance=FAR)
    kind, side, cruise = _scene(random)
    frames = np.empty((count, HEIGHT, WIDTH, 3), np.uint8)
    motion = np.empty((count, 2))
    labels = np.empty((count, 3), np.int64)
    for place in range(count):
        contact = rover.distance / max(rover.speed, 0.3)
        action = _decide(rover, kind, side, contact)
        risk = sum(contact < edge for edge in EDGES)
        labels[place] = risk, REASON.index(kind if risk else "unknown"), ACTION.index(action)
        frames[place] = _picture(rover.distance, kind, side, random)
        motion[place] = rover.speed, rover.turning
        if _move(rover, action, cruise, random):
            kind, side, cruise = _scene(random)
            rover.distance, rover.stood = random.uniform(0.6, 1.0) * FAR, 0
    times = np.arange(count) / RATE
    ahead = np.stack([labelled(labels[HORIZON:, task], count) for task in range(labels.shape[1])], axis=1)
    about = About(source="demo", horizon=HORIZON, absent=("gx", "gy"), rules=RULES)
    return Drive(f"drive_{number:03d}", times, _telemetry(motion, times, random), ahead, frames, about)


def _scene(random: np.random.Generator) -> tuple[str, int, float]:
    """A kind of thing, its side (-1 left, 1 right, 0 ahead), and how fast the rover would like to drive."""
    kind = str(random.choice(list(COLOURS)))
    side = 0 if kind == "tight_space" else int(random.choice([-1, 0, 1]))
    return kind, side, float(random.uniform(*CRUISES))


def _decide(rover: _Rover, kind: str, side: int, contact: float) -> str:
    if rover.distance < NEAR or (rover.stood and rover.distance < 2 * NEAR):
        return "stop" if kind == "human" or rover.stood < 6 else "reverse"
    if contact < EDGES[0] and side and kind == "obstacle":
        return "turn_right" if side < 0 else "turn_left"
    return "slow" if contact < EDGES[0] / 2 else "continue"


def _move(rover: _Rover, action: str, cruise: float, random: np.random.Generator) -> bool:
    """A tenth of a second on; whether the thing is passed, has gone, or was left."""
    goal = {"continue": cruise, "slow": 0.5 * cruise, "stop": 0.0, "reverse": -0.8}.get(action, 0.7 * cruise)
    rover.speed += np.clip(goal - rover.speed, -0.5, 0.25) + random.normal(0, 0.02)
    rover.turning = {"turn_left": 0.8, "turn_right": -0.8}.get(action, 0.0) + random.normal(0, 0.03)
    rover.distance -= rover.speed / RATE
    rover.stood = rover.stood + 1 if action in ("stop", "reverse") else 0
    turned_away = action.startswith("turn") and random.random() < 0.08
    return turned_away or rover.stood > 14


def _picture(distance: float, kind: str, side: int, random: np.random.Generator) -> NDArray[np.uint8]:
    """What the camera sees, in a light and with a noise of its own: (24, 32, 3)."""
    image = np.empty((HEIGHT, WIDTH, 3))
    horizon = HEIGHT // 2
    image[:horizon], image[horizon:] = (150, 180, 210), (170, 160, 140)
    share = min(1.0, 1.2 / max(distance, 0.3))
    height = max(2, round(share * HEIGHT))
    top, bottom = max(0, horizon - height // 2), min(HEIGHT, horizon + (height + 1) // 2)
    if kind == "tight_space":
        width = max(1, round(share * WIDTH * 0.4))
        image[:, :width] = image[:, WIDTH - width :] = COLOURS[kind]
    else:
        width = max(1, round(share * WIDTH * (0.25 if kind == "human" else 0.5)))
        middle = WIDTH // 2 + round(side * WIDTH * 0.22)
        image[top:bottom, max(0, middle - width // 2) : middle + (width + 1) // 2] = COLOURS[kind]
    light = random.uniform(0.85, 1.1)
    return np.clip(light * image + random.normal(0, 8, image.shape), 0, 255).astype(np.uint8)


def _telemetry(
    motion: NDArray[np.float64], times: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.float32]:
    speed, turning = motion.T
    values = {"ax": since_last(speed, times), "ay": speed * turning, "az": np.full(len(speed), 9.81), "gz": turning}
    values |= {"v": speed, "w": turning}
    zeros = np.zeros(len(speed))
    clean = np.stack([values.get(name, zeros) for name in TELEMETRY], axis=1)
    noise = random.normal(0, 0.02, clean.shape) * [name in values for name in TELEMETRY]
    return (clean + noise).astype(np.float32)
