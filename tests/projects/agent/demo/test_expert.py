"""The expert: its odds are how often it does what, and its flaw costs what a careful player keeps."""

from __future__ import annotations

import numpy as np

from projects.agent.demo.arena import Arena
from projects.agent.demo.expert import CAREFUL, EXPERT, STEADY, Expert, Habits, action_odds
from projects.agent.layout import DEATH_REWARD, GOLD_REWARD, MOVEMENTS, NONE


def returns(habits: Habits, episodes: int = 100, frames: int = 200) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Of episodes of the same seed, the sum of rewards: (episodes,)."""
    arena, expert = Arena(), Expert(episodes, habits, np.random.default_rng(1))
    arena.reset(episodes, 0)
    total = np.zeros(episodes)
    for _ in range(frames):
        gold, death = arena.step(*expert.act(arena.state))
        total += GOLD_REWARD * gold + DEATH_REWARD * death
    return total


def test_a_careful_player_is_far_better_and_noise_is_not_what_costs() -> None:
    expert, steady, careful = (returns(habits) for habits in (EXPERT, STEADY, CAREFUL))
    for flawed in (expert, steady):
        gain = careful - flawed
        assert gain.mean() - 1.984 * gain.std(ddof=1) / np.sqrt(len(gain)) > 10
    assert abs(steady.mean() - expert.mean()) < 5
    assert careful.mean() > 4


def test_odds_are_how_often_it_does_what() -> None:
    """3000 copies of some states, each drawn once."""
    arena, expert = Arena(), Expert(40, EXPERT, np.random.default_rng(2))
    arena.reset(40, 3)
    for _ in range(60):
        arena.step(*expert.act(arena.state))
    mind = expert.mind
    assert mind.near.any()
    assert (mind.stray >= 0).any()
    assert (arena.state.dead > 1).any()
    movement, abilities = action_odds(arena.state, mind, EXPERT)
    np.testing.assert_allclose(movement.sum(axis=1), 1)
    copies = np.repeat(np.arange(40), 3000)
    many = Expert(len(copies), EXPERT, np.random.default_rng(4))
    many.mind = mind.take(copies)
    moved, pressed = many.act(arena.state.take(copies))
    often = np.stack([np.bincount(row, minlength=MOVEMENTS) for row in moved.reshape(40, 3000)]) / 3000
    np.testing.assert_allclose(often, movement, atol=0.04)
    assert (often[movement == 0] == 0).all()
    np.testing.assert_allclose(pressed.reshape(40, 3000, 8).mean(axis=1), abilities, atol=0.04)


def test_it_repeats_itself_in_six_directions_and_the_dead_do_as_before() -> None:
    arena, expert = Arena(), Expert(100, EXPERT, np.random.default_rng(5))
    arena.reset(100, 6)
    moves, dead = [], []
    for _ in range(150):
        dead.append(arena.state.dead > 1)
        movement, abilities = expert.act(arena.state)
        arena.step(movement, abilities)
        moves.append(movement)
    moved, gone = np.stack(moves), np.stack(dead)
    assert set(np.unique(moved)) == {0, 3, 6, 9, 12, 15, NONE}
    assert 0.75 < (moved[1:] == moved[:-1]).mean() < 0.9
    assert gone.any()
    assert (moved[gone] == NONE).mean() < 0.1


def test_what_it_does_says_nothing_of_its_death() -> None:
    arena, expert = Arena(), Expert(60, EXPERT, np.random.default_rng(7))
    arena.reset(60, 8)
    for _ in range(30):
        arena.step(*expert.act(arena.state))
    living, dead = (arena.state.take(np.arange(60)) for _ in range(2))
    dead.dead[:] = 10
    dead.life[:] = -1
    for one, other in zip(
        action_odds(living, expert.mind, EXPERT), action_odds(dead, expert.mind, EXPERT), strict=True
    ):
        np.testing.assert_array_equal(one, other)
