"""What a controller does in the demo, and that its games obey the rules by which a model of them is judged."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from projects.melee.demo.acting import ENTRY_FRAMES
from projects.melee.demo.fighter import Act, Fighter
from projects.melee.demo.match import Match, play
from projects.melee.demo.moves import BODIES, FALCO, MARTH
from projects.melee.demo.pad import REST, SHIELD, Pad
from projects.melee.layout import BUTTONS
from projects.melee.stages import STAGE

PLACE = {body.character: place for place, body in enumerate(BODIES)}
BATTLEFIELD, FINAL = 24, 25


def begun(stage: int = FINAL, characters: tuple[int, int] = (MARTH, FALCO)) -> tuple[Match, Fighter, Fighter]:
    """A match in which both may move, with the first and the second fighter."""
    match = Match(stage, (PLACE[characters[0]], PLACE[characters[1]]))
    for _ in range(ENTRY_FRAMES):
        match.step((REST, REST))
    first, second = match.fighters
    assert (first.action, second.action) == (Act.STAND, Act.STAND)
    return match, first, second


def press(match: Match, pad: Pad, frames: int = 1) -> None:
    for _ in range(frames):
        match.step((pad, REST))


def land(match: Match, fighter: Fighter, pad: Pad = REST) -> None:
    """Until the first is on the ground."""
    while fighter.airborne:
        press(match, pad)


def test_a_jump_rises_as_its_speed_and_gravity_say() -> None:
    match, marth, _ = begun()
    press(match, Pad(buttons=BUTTONS["X"]), 5)
    assert (marth.action, marth.airborne, marth.jumps) == (Act.JUMP, True, 1)
    assert marth.y == pytest.approx(2.4)
    press(match, REST, 20)
    assert marth.y == pytest.approx(sum(2.4 - 0.085 * k for k in range(21)))
    press(match, Pad(buttons=BUTTONS["Y"]))
    assert (marth.action, marth.jumps) == (Act.AIR_JUMP, 0)
    assert marth.own_y == pytest.approx(2.1)
    land(match, marth)
    assert (marth.y, marth.jumps, marth.action) == (0, 2, Act.LAND)


def test_a_button_let_go_early_gives_a_small_jump() -> None:
    match, marth, _ = begun()
    press(match, Pad(buttons=BUTTONS["X"]), 2)
    press(match, REST, 3)
    assert marth.airborne
    assert marth.y == pytest.approx(1.5)


def test_the_stick_walks_dashes_and_turns() -> None:
    match, marth, _ = begun()
    assert marth.facing == 1
    press(match, Pad(x=40), 30)
    assert marth.action == Act.WALK
    assert marth.own_x == pytest.approx(0.8)
    press(match, REST, 30)
    press(match, Pad(x=-40))
    assert (marth.action, marth.facing) == (Act.TURN, -1)
    press(match, REST, 10)
    press(match, Pad(x=80), 2)
    assert (marth.action, marth.facing) == (Act.DASH, 1)
    press(match, Pad(x=80), 20)
    assert marth.action == Act.RUN
    assert marth.own_x == pytest.approx(1.8)


def test_a_hit_hurts_and_sends_by_its_formula() -> None:
    match, marth, falco = begun()
    marth.x, falco.x = 0.0, 16.0
    press(match, Pad(c_x=80), 1)
    while not falco.hitlag:
        press(match, REST)
    assert (falco.percent, falco.hitlag, marth.hitlag) == (16, int(16 / 3 + 3), int(16 / 3 + 3))
    knockback = ((16 / 10 + 16 * 16 / 20) * 200 / (80 + 100) * 1.4 + 18) * 98 / 100 + 28
    speed = 0.03 * knockback
    assert falco.push_x == pytest.approx(speed * math.cos(math.radians(42)))
    assert falco.push_y == pytest.approx(speed * math.sin(math.radians(42)))
    assert (falco.stun, falco.airborne, falco.facing) == (int(0.4 * knockback), True, -1)
    assert (marth.last_attack, marth.combo) == (10, 1)
    still = falco.x
    press(match, REST, falco.hitlag - 1)
    assert falco.x == still
    press(match, REST)
    gone = speed - 0.051
    assert falco.x - still == pytest.approx(gone * math.cos(math.radians(42)))


def test_a_shield_takes_the_hit_and_wears_out() -> None:
    match, marth, falco = begun()
    marth.x, falco.x = 0.0, 16.0
    match.step((Pad(c_x=80), SHIELD))
    before = falco.shield
    while not falco.hitlag:
        before = falco.shield
        match.step((REST, SHIELD))
    assert (falco.percent, falco.action) == (0, Act.SHIELD_STUN)
    assert falco.shield == pytest.approx(before - 0.28 - 16)
    while falco.action != Act.BROKEN:
        before = falco.shield
        match.step((REST, SHIELD))
    assert before <= 0.28
    assert falco.shield == 0


def test_a_shot_flies_and_hits_once() -> None:
    match, marth, falco = begun()
    match.step((REST, Pad(buttons=BUTTONS["B"])))
    while not match.flying:
        match.step((REST, REST))
    shot = match.flying[0]
    assert (shot.shot.type, shot.shooter) == (55, 1)
    assert shot.x == pytest.approx(falco.x - 6 - 5)
    while match.flying:
        match.step((REST, REST))
    assert (marth.percent, falco.last_attack) == (3, 18)


def test_a_platform_carries_and_lets_through() -> None:
    match, marth, _ = begun(BATTLEFIELD)
    press(match, Pad(buttons=BUTTONS["X"]), 8)
    press(match, REST, 12)
    press(match, Pad(buttons=BUTTONS["X"]))
    land(match, marth)
    assert (marth.ground, marth.y) == (2, 27.2001)
    press(match, REST, 20)
    press(match, Pad(y=-80), 2)
    drops = marth.action
    land(match, marth)
    assert (drops, marth.ground, marth.y) == (Act.DROP, 0, 0)


def test_who_leaves_the_stage_dies_and_comes_back() -> None:
    match, marth, _ = begun()
    marth.percent, marth.last_attack = 50.0, 10
    marth.no_hang = 1000
    while marth.stocks == 4:
        press(match, Pad(x=-80))
        press(match, REST)
    assert marth.action == Act.DEAD_DOWN
    assert (marth.percent, marth.own_x, marth.own_y) == (50, 0, 0)
    while marth.action == Act.DEAD_DOWN:
        press(match, REST)
    assert (marth.action, marth.percent, marth.y, marth.hurtbox) == (Act.HALO, 0, 135, 1)
    press(match, REST, 100)
    press(match, Pad(x=80), 2)
    assert (marth.action, marth.hurtbox) == (Act.FALL, 1)


def test_a_shield_pressed_before_landing_halves_the_lag() -> None:
    lags = []
    for cancels in (False, True):
        match, marth, _ = begun()
        press(match, Pad(buttons=BUTTONS["X"]), 2)
        press(match, REST, 14)
        press(match, Pad(buttons=BUTTONS["A"]))
        while marth.airborne:
            falls = marth.own_y < 0 and marth.y < 5
            press(match, SHIELD if cancels and falls else REST)
        assert (marth.action, marth.l_cancel) == (70, 1 if cancels else 2)
        lags.append(next(k for k in itertools.count(1) if not _still_landing(match, marth)))
    assert lags[1] < 0.6 * lags[0]


def _still_landing(match: Match, marth: Fighter) -> bool:
    press(match, REST)
    return marth.action == 70


@pytest.fixture(scope="module")
def games() -> list[Any]:
    return [play(seed=1, number=number, frames=3600) for number in range(6)]


def test_positions_follow_from_the_speeds(games: list[Any]) -> None:
    for game in games:
        players = game.frames["players"]
        own = np.where(players["airborne"] != 0, players["speed_air_x"], players["speed_ground_x"])
        calm = (players["hitlag"][1:] == 0) & (players["action"][1:] > 13)
        for place, speed in (
            ("x", own + players["speed_attack_x"]),
            ("y", players["speed_y"] + players["speed_attack_y"]),
        ):
            off = np.abs(np.diff(players[place], axis=0) - speed[1:]) > 1e-3
            assert off[calm].mean() < 0.02


def test_no_game_breaks_a_rule(games: list[Any]) -> None:
    for game in games:
        players, stage = game.frames["players"], STAGE[game.stage]
        for name in ("x", "y", "percent", "speed_y", "speed_attack_x"):
            assert np.isfinite(players[name]).all()
        lost = np.diff(players["stocks"].astype(int), axis=0)
        assert set(np.unique(lost)) <= {0, -1}
        assert (players["action"][1:][lost < 0] <= Act.DEAD_UP).all()
        healed = np.diff(players["percent"], axis=0) < 0
        assert (players["action"][1:][healed] == Act.HALO).all()
        assert (players["shield"] >= 0).all()
        assert (players["shield"] <= 60).all()
        stands = (players["airborne"] == 0) & (players["action"] > 13)
        heights = np.array([0, *(platform.height for platform in stage.platforms)], np.float32)
        assert np.array_equal(players["y"][stands], heights[players["ground"][stands]])
        ends = np.array([stage.edge, *(platform.right for platform in stage.platforms)], np.float32)
        assert (players["x"][stands] <= ends[players["ground"][stands]]).all()


def test_games_are_worth_learning_from(games: list[Any]) -> None:
    everything = np.concatenate([game.frames["players"].ravel() for game in games])
    assert len(np.unique(everything["action"])) > 60
    assert 0.2 < everything["airborne"].mean() < 0.6
    assert everything["percent"].max() > 60
    assert sum(len(game.items) for game in games) > 100
    assert {0, 1, 2} == set(np.unique(everything["l_cancel"]))
    assert {0, 1, 2} == set(np.unique(everything["hurtbox"]))
    assert any(game.frames["players"]["stocks"].min() < 4 for game in games)


def test_a_game_depends_on_seed_and_number_alone(games: list[Any]) -> None:
    again = play(seed=1, number=4, frames=3600)
    assert again.frames.tobytes() == games[4].frames.tobytes()
    assert again.items.tobytes() == games[4].items.tobytes()
    assert play(seed=2, number=4, frames=600).digest != play(seed=1, number=4, frames=600).digest
