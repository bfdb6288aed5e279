"""The arena: what happens when, the same world for the same seed, and what is seen of it."""

from __future__ import annotations

import numpy as np
import pytest

from projects.agent.demo import arena as rules
from projects.agent.demo.arena import Arena, State, direction
from projects.agent.demo.picture import CHANNELS, SIZE, locate
from projects.agent.layout import ABILITIES, NONE

STILL = np.array([NONE])
PLAYER, HUNTER, GOLD, TAKEN, DIED, LIFE = range(len(CHANNELS))


def pressed(*names: str) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    return np.array([[name in names for name in ABILITIES]])


def begun(**changed: object) -> Arena:
    """One episode: the player in the middle, the hunter in a corner, gold in another one."""
    state = State(
        player=np.array([[1.5, 1.5]]), hunter=np.array([[0.2, 0.2]]), heading=np.array([0.0]),
        gold=np.array([[2.8, 2.8]]), amount=np.array([40]), dead=np.array([0]), taken=np.zeros((1, 3)),
        died=np.zeros((1, 3)), frame=np.array([0]),
    )  # fmt: skip
    for name, value in changed.items():
        setattr(state, name, np.array([value]))
    one = Arena()
    one.resume(state, np.random.default_rng(0))
    return one


@pytest.mark.parametrize(("movement", "way"), [(0, (0.15, 0)), (9, (-0.15, 0)), (NONE, (0, 0)), (3, (0.075, 0.1299))])
def test_a_step_goes_where_the_movement_says_and_not_through_walls(movement: int, way: tuple[float, float]) -> None:
    one = begun()
    one.step(np.array([movement]), pressed())
    assert one.state.player[0] == pytest.approx([1.5 + way[0], 1.5 + way[1]], abs=1e-4)
    for _ in range(30):
        one.step(np.array([movement]), pressed())
    assert (one.state.player >= 0.15).all()
    assert (one.state.player <= SIZE - 0.15).all()


def test_ten_steps_cross_half_of_it() -> None:
    assert pytest.approx(SIZE / 2) == rules.SPEED * 10
    assert rules.HUNTER_SPEED < rules.SPEED / 2


def test_contact_is_death_at_once_for_20_frames_without_gold() -> None:
    one = begun(hunter=(1.5 - rules.CONTACT - 0.01, 1.5))
    gold, death = one.step(STILL, pressed())
    assert death.tolist() == [True]
    assert gold.tolist() == [0]
    one.state.gold[0] = one.state.player[0]
    for frame in range(1, rules.DEAD):
        gold, death = one.step(np.array([0]), pressed("q"))
        assert not death.any()
        assert gold[0] == ((frame + 1) % 10 == 0)
        assert one.state.dead[0] == rules.DEAD - frame
    one.step(STILL, pressed())
    assert one.state.dead[0] == 0
    assert np.hypot(*(one.state.player - one.state.hunter)[0]) > rules.NEAR_HUNTER - rules.HUNTER_SPEED


@pytest.mark.parametrize(
    ("away", "names", "gained"), [(0.2, "", 40), (0.5, "", 0), (0.5, "q", 40), (0.5, "wer", 0), (0.6, "q", 0)]
)
def test_gold_is_taken_by_touch_or_within_reach_with_q(away: float, names: str, gained: int) -> None:
    one = begun(gold=(1.5 + away, 1.5))
    gold, _ = one.step(STILL, pressed(*names))
    assert gold.tolist() == [gained]
    moved = np.hypot(*(one.state.gold[0] - (1.5 + away, 1.5))) > 0
    assert moved == bool(gained)
    if gained:
        assert one.state.taken[0].tolist() == [1.5 + away, 1.5, 1]
        assert np.hypot(*(one.state.gold[0] - one.state.player[0])) >= rules.NEAR_GOLD


def test_everyone_gets_one_gold_each_ten_frames() -> None:
    one = begun()
    gained = [float(one.step(STILL, pressed())[0][0]) for _ in range(30)]
    assert [frame for frame, gold in enumerate(gained, 1) if gold == 1] == [10, 20, 30]


def test_a_hunter_turns_to_a_player_that_it_sees_and_is_slower() -> None:
    one = begun(hunter=(1.0, 1.5), heading=np.pi)
    for _ in range(15):
        one.state.hunter[0], one.state.player[0] = (1.0, 1.5), (1.5, 1.5)
        before = abs(float(one.state.heading[0]))
        one.step(STILL, pressed())
        assert abs(float(one.state.heading[0])) == pytest.approx(before - rules.TURN, abs=1e-6)
        assert np.hypot(*(one.state.hunter[0] - (1.0, 1.5))) == pytest.approx(rules.HUNTER_SPEED)


def test_what_is_drawn_does_not_depend_on_what_players_do() -> None:
    """Two policies with one seed meet the same hunter while they are out of its sight."""
    runs = []
    for movement in (4, 13):
        one = Arena()
        one.reset(50, 7)
        seen = []
        for _ in range(20):
            one.state.player[:] = [0.15, 0.15]
            one.state.hunter = np.clip(one.state.hunter, 1.5, None)
            one.step(np.full(50, movement), np.zeros((50, 8), bool))
            seen.append(one.state.hunter.copy())
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


def test_everything_can_be_found_again_in_what_is_seen() -> None:
    one = Arena()
    one.reset(200, 0)
    one.state.taken[:] = [0.5, 2.5, 0.7]
    places, bright = locate(one.latents())
    state = one.state
    for channel, true in ((PLAYER, state.player), (HUNTER, state.hunter), (GOLD, state.gold)):
        assert np.abs(places[:, channel] - true).max() <= SIZE / 60
    assert bright[:, GOLD] == pytest.approx(state.amount / rules.MOST_GOLD, rel=0.05)
    assert bright[:, TAKEN] == pytest.approx(0.7, rel=0.05)
    assert bright[:, DIED].max() == 0


def test_a_dead_player_has_no_blob_and_its_death_is_seen_at_once() -> None:
    one = begun(hunter=(1.2, 1.5))
    before = one.latents()[0]
    one.step(STILL, pressed())
    after = one.latents()[0]
    assert before[PLAYER].max() > 0.7
    assert not after[PLAYER].any()
    assert (before[LIFE] == 1).all()
    assert (after[LIFE] == -1).all()
    assert not before[DIED].any()
    assert after[DIED].max() > 0.7
    one.step(STILL, pressed())
    np.testing.assert_allclose(one.latents()[0, DIED], rules.FADE * after[DIED], rtol=1e-6)
    assert one.latents()[0, LIFE] == pytest.approx(-1 + 1 / rules.DEAD)


def test_up_is_up_in_a_picture() -> None:
    seen = begun(player=(2.5, 2.5)).latents()[0, PLAYER]
    assert np.unravel_index(seen.argmax(), seen.shape) == (0, 2)
    assert direction(np.array([NONE, 0])).tolist() == [[0, 0], [1, 0]]
