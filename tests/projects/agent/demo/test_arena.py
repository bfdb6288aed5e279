"""The arena: what happens when, the same world for the same seed, and what is seen of it."""

from __future__ import annotations

import numpy as np
import pytest

from projects.agent.demo import arena as rules
from projects.agent.demo.arena import Arena, State, direction, way
from projects.agent.demo.picture import CHANNELS, MIDDLE, SIZE, locate
from projects.agent.layout import ABILITIES, NONE

STILL = np.array([NONE])
HUNTER, GOLD, TAKEN, LIFE = range(len(CHANNELS))


def pressed(*names: str) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    return np.array([[name in names for name in ABILITIES]])


def begun(**changed: object) -> Arena:
    """One episode: the player in the middle, the hunter as far away as can be, gold in a corner."""
    state = State(
        player=np.array([[1.5, 1.5]]), life=np.array([1.0]), hunter=np.array([[0.05, 0.05]]),
        gold=np.array([[2.8, 2.8]]), amount=np.array([40]), dead=np.array([0]), taken=np.zeros((1, 3)),
        frame=np.array([0]),
    )  # fmt: skip
    for name, value in changed.items():
        setattr(state, name, np.array([value]))
    one = Arena()
    one.resume(state, np.random.default_rng(0))
    return one


@pytest.mark.parametrize(("movement", "there"), [(0, (0.15, 0)), (9, (-0.15, 0)), (NONE, (0, 0)), (3, (0.075, 0.1299))])
def test_a_step_goes_where_the_movement_says_and_around_the_world(movement: int, there: tuple[float, float]) -> None:
    one = begun(hunter=(1.5, 0.05))
    one.step(np.array([movement]), pressed())
    assert one.state.player[0] == pytest.approx([1.5 + there[0], 1.5 + there[1]], abs=1e-4)
    one = begun(player=(2.9, 0.05))
    one.step(np.array([movement]), pressed())
    assert one.state.player[0] == pytest.approx([(2.9 + there[0]) % 3, (0.05 + there[1]) % 3], abs=1e-4)


def test_ten_steps_go_half_around_and_ways_are_the_shortest() -> None:
    assert pytest.approx(SIZE / 2) == rules.SPEED * 10
    assert rules.HUNTER_SPEED < rules.SPEED / 2
    starts, ends = np.random.default_rng(0).uniform(0, 3, (2, 50, 2))
    images = ends[:, None] + 3 * np.array([(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)])
    shortest = np.linalg.norm(images - starts[:, None], axis=2).min(axis=1)
    np.testing.assert_allclose(np.linalg.norm(way(starts, ends), axis=1), shortest)


def test_life_drains_by_nearness_and_comes_back_slowly() -> None:
    one = begun(hunter=(1.5 - 0.3 - rules.HUNTER_SPEED, 1.5))
    one.step(STILL, pressed())
    away = float(np.linalg.norm(one.state.player - one.state.hunter))
    assert away == pytest.approx(0.3, abs=0.01)
    assert one.state.life[0] == pytest.approx(1 - 0.6 * (1 - away / 0.5))
    assert one.latents()[0, LIFE] == pytest.approx(one.state.life[0])
    one = begun(life=0.5)
    one.step(STILL, pressed())
    assert one.state.life[0] == pytest.approx(0.52)
    for _ in range(40):
        one.state.hunter[0] = 0.05
        one.step(STILL, pressed())
    assert one.state.life[0] == 1


def test_without_life_a_player_is_dead_for_20_frames_and_gets_no_gold() -> None:
    one = begun(hunter=(1.4, 1.5), life=0.1)
    gold, death = one.step(STILL, pressed())
    assert death.tolist() == [True]
    assert gold.tolist() == [0]
    hunter = one.state.hunter.copy()
    one.state.gold[0] = one.state.player[0]
    for frame in range(1, rules.DEAD):
        gold, death = one.step(np.array([0]), pressed("q"))
        assert not death.any()
        assert gold[0] == ((frame + 1) % 10 == 0)
        assert one.state.dead[0] == rules.DEAD - frame
        assert one.state.player[0].tolist() == [1.5, 1.5]
        np.testing.assert_array_equal(one.state.hunter, hunter)
    one.step(STILL, pressed())
    assert one.state.dead[0] == 0
    assert one.state.life[0] == 1
    assert one.state.player[0].tolist() == [1.5, 1.5]
    assert np.hypot(*way(one.state.player, one.state.hunter)[0]) > rules.NEAR_HUNTER - rules.HUNTER_SPEED - 1e-9


@pytest.mark.parametrize(
    ("away", "names", "gained"), [(0.2, "", 40), (0.5, "", 0), (0.5, "q", 40), (0.5, "wer", 0), (0.6, "q", 0)]
)
def test_gold_is_taken_by_touch_or_within_reach_with_q(away: float, names: str, gained: int) -> None:
    one = begun(player=(2.8, 1.5), gold=((2.8 + away) % 3, 1.5))
    gold, _ = one.step(STILL, pressed(*names))
    assert gold.tolist() == [gained]
    moved = np.abs(one.state.gold[0] - ((2.8 + away) % 3, 1.5)).max() > 0
    assert moved == bool(gained)
    if gained:
        assert one.state.taken[0] == pytest.approx([(2.8 + away) % 3, 1.5, 1])
        assert np.hypot(*way(one.state.player, one.state.gold)[0]) >= rules.NEAR_GOLD


def test_everyone_gets_one_gold_each_ten_frames() -> None:
    one = begun()
    gained = [float(one.step(STILL, pressed())[0][0]) for _ in range(30)]
    assert [frame for frame, gold in enumerate(gained, 1) if gold == 1] == [10, 20, 30]


def test_a_hunter_comes_nearer_and_is_slower() -> None:
    one = Arena()
    one.reset(300, 1)
    still, none = np.full(300, NONE), np.zeros((300, 8), bool)
    away = np.linalg.norm(way(one.state.hunter, one.state.player), axis=1)
    before = one.state.hunter.copy()
    one.step(still, none)
    nearer = away - np.linalg.norm(way(one.state.hunter, one.state.player), axis=1)
    np.testing.assert_allclose(np.linalg.norm(way(before, one.state.hunter), axis=1), rules.HUNTER_SPEED)
    assert nearer.mean() == pytest.approx(rules.HUNTER_SPEED * np.exp(-(rules.SWAY**2) / 2), rel=0.02)


def test_what_is_drawn_does_not_depend_on_what_players_do() -> None:
    """Two policies with one seed meet the same hunter and the same new gold while they are in the same place."""
    runs = []
    for movement in (4, 13):
        one = Arena()
        one.reset(50, 7)
        seen = []
        for frame in range(20):
            one.state.player[:] = [0.15, 0.15]
            one.step(np.full(50, movement if frame % 2 else NONE), np.zeros((50, 8), bool))
            one.state.hunter[:], one.state.player[:] = [1.6, 1.6], [0.15, 0.15]
            one.state.gold[:] = [0.15, 0.15]
            one.step(np.full(50, NONE), np.zeros((50, 8), bool))
            seen.append(np.concatenate([one.state.hunter, one.state.gold]))
        runs.append(np.array(seen))
    np.testing.assert_array_equal(runs[0], runs[1])


def test_a_seed_settles_an_episode_and_a_copy_is_its_own() -> None:
    arenas = [Arena(), Arena(), Arena()]
    for one, seed in zip(arenas, (3, 3, 4), strict=True):
        one.reset(4, seed)
    np.testing.assert_array_equal(arenas[0].latents(), arenas[1].latents())
    assert not np.array_equal(arenas[0].latents(), arenas[2].latents())
    copies = arenas[0].state.take(np.array([2, 2, 0]))
    before = arenas[0].latents()
    copies.taken += 1
    copies.player += 1
    np.testing.assert_array_equal(arenas[0].latents(), before)
    assert len(copies.frame) == 3


def test_everything_can_be_found_again_in_what_is_seen_around_the_player() -> None:
    one = Arena()
    one.reset(200, 0)
    one.state.taken[:] = [0.5, 2.5, 0.7]
    places, bright = locate(one.latents())
    state = one.state
    for channel, true in ((HUNTER, state.hunter), (GOLD, state.gold), (TAKEN, state.taken[:, :2])):
        assert np.abs(way(places[:, channel] - MIDDLE, way(state.player, true))).max() <= SIZE / 60
    assert bright[:, GOLD] == pytest.approx(state.amount / rules.MOST_GOLD, rel=0.05)
    assert bright[:, TAKEN] == pytest.approx(0.7, rel=0.05)
    assert bright[:, HUNTER] == pytest.approx(1, rel=0.05)


def test_a_death_is_seen_at_once_and_how_long_it_lasts() -> None:
    one = begun(hunter=(1.4, 1.5), life=0.1)
    assert one.latents()[0, LIFE] == pytest.approx(0.1)
    seen = []
    for _ in range(rules.DEAD + 1):
        one.step(STILL, pressed())
        seen.append(float(one.latents()[0, LIFE].mean()))
    away = 0.1 - rules.HUNTER_SPEED
    assert seen[0] == pytest.approx(0.1 - 0.6 * (1 - away / 0.5), abs=0.01)
    assert np.diff(seen[:8]) == pytest.approx([-0.1] * 7)
    assert seen[11:20] == pytest.approx([-0.9, -0.8, -0.7, -0.6, -0.5, -0.4, -0.3, -0.2, -0.1])
    assert -1.3 < min(seen) < -1
    assert seen[20] == 1


def test_up_is_up_in_a_picture_and_the_player_is_in_the_middle() -> None:
    seen = begun(player=(2.5, 2.5), hunter=(0.5, 0.5), gold=(2.5, 2.5)).latents()[0]
    assert np.unravel_index(seen[HUNTER].argmax(), (3, 3)) == (0, 2)
    assert np.unravel_index(seen[GOLD].argmax(), (3, 3)) == (1, 1)
    assert direction(np.array([NONE, 0])).tolist() == [[0, 0], [1, 0]]
