"""The moods of the demo player, each with its own habits, and the sessions they make up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from projects.controls.demo import names
from projects.controls.demo.player import FPS, Player

WALK, RUN, CREEP = (names.FORWARD,), (names.FORWARD, names.SPRINT), (names.FORWARD, names.SNEAK)
BACK, SNEAK, LEFT, RIGHT, USE = (names.BACK,), (names.SNEAK,), (names.LEFT,), (names.RIGHT,), (names.USE,)
REST = ()


def walk(player: Player) -> None:
    """Get somewhere: run, jump over things, look about."""
    player.hold("gait", 1.6, {WALK: 4, RUN: 4, CREEP: 1, BACK: 1, REST: 1})
    player.hold("strafe", 2.0, {LEFT: 1, RIGHT: 1, REST: 2})
    player.turn(1.2, (8, 20), yaw=0.9, pitch=0.5)
    player.press(names.JUMP, 1.6)
    player.press(names.ATTACK, 5.0)
    player.press(names.DROP, 5.0)
    player.press(names.SWAP, 8.0)
    player.change_slot(4.0)


def fight(player: Player) -> None:
    """Circle an enemy: strike, block, step back, flick the view around."""
    player.hold("gait", 1.0, {WALK: 3, RUN: 2, BACK: 3, REST: 1})
    player.hold("strafe", 1.0, {LEFT: 2, RIGHT: 2, REST: 1})
    player.hold("use", 1.4, {USE: 1, REST: 1})
    player.turn(0.8, (3, 6), yaw=0.9, pitch=0.6, flick=True)
    player.press(names.ATTACK, 0.8)
    player.press(names.JUMP, 2.5)
    player.press(names.SWAP, 4.0)
    player.press(names.DROP, 8.0)
    player.change_slot(3.5)


def build(player: Player) -> None:
    """Place and break blocks at the edge: sneak, use, change the block."""
    player.hold("gait", 1.4, {SNEAK: 3, CREEP: 2, WALK: 2, BACK: 2, REST: 1})
    player.hold("strafe", 1.8, {LEFT: 1, RIGHT: 1, REST: 1})
    player.hold("use", 0.8, {USE: 1, REST: 1})
    player.turn(1.2, (8, 16), yaw=0.7, pitch=0.7)
    player.press(names.ATTACK, 1.8)
    player.press(names.JUMP, 4.0)
    player.press(names.DROP, 4.0)
    player.press(names.SWAP, 6.0)
    player.change_slot(2.5)


def idle(player: Player) -> None:
    """Stand and watch."""
    player.turn(2.5, (12, 30), yaw=0.5, pitch=0.3)


Mood = Callable[[Player], None]
MOODS: dict[str, tuple[Mood, tuple[float, float]]] = {
    "walk": (walk, (5.0, 9.0)),
    "fight": (fight, (5.0, 9.0)),
    "build": (build, (5.0, 9.0)),
    "inventory": (Player.use_inventory, (4.0, 7.0)),
    "idle": (idle, (3.0, 6.0)),
}
"""What is done in a mood, and how long it lasts: shortest and longest, in seconds."""
_ONCE = ("walk", "fight", "build", "inventory", "inventory", "idle")
SESSIONS: dict[str, tuple[str, ...]] = {
    "walking": (*_ONCE, "walk", "walk", "walk"),
    "combat": (*_ONCE, "fight", "fight", "fight"),
    "building": (*_ONCE, "build", "build", "build"),
    "mixed": (*_ONCE, "walk", "fight", "build"),
}
"""By session type the moods of one round: a round is played in random order, then the next, so none is ever missing."""


def play(player: Player, session_type: str) -> Iterator[tuple[str, int, int]]:
    """Play to the end of the script, mood after mood; gives each mood with its first and last frame + 1."""
    frames = player.script.frames
    player.end = int(player.rng.integers(FPS, 2 * FPS))  # a moment to stand still before the first mood
    while True:
        for name in player.rng.permutation(SESSIONS[session_type]):
            mood, seconds = MOODS[name]
            player.begin = player.end
            player.end = player.begin + int(player.rng.uniform(*seconds) * FPS)
            if player.end > frames:
                return
            mood(player)
            yield str(name), player.begin, player.end
