"""Baselines see what a model sees and no more; the ceiling is what the simulator wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from projects.agent.baselines import CEILING, LINEAR, REPEAT, baselines, ceiling
from projects.agent.demo.odds import FOLDER, Odds, write_odds
from projects.agent.layout import NONE
from projects.agent.recordings import read_recordings
from projects.agent.windows import Statistics, Windows
from tests.projects.agent.recorded import SHAPE, features_of, write_game

FRAMES = 12
CPU = torch.device("cpu")


def made(folder: Path, name: str, seed: int) -> NDArray[np.int64]:
    """A game in which the latents say the next movement (0 or 9), q follows a movement of 9 two frames later, and gold
    comes three frames after a bright latent; its movements."""
    rng, count = np.random.default_rng(seed), 300
    moved, bright = 9 * rng.integers(0, 2, count), rng.random(count) < 0.15
    latents = np.zeros((count, *SHAPE), np.float32)
    latents[:-1, 0, 0, 0] = moved[1:] / 9.0
    latents[:, 1, 0, 2] = bright
    pressed = np.zeros((count, 8), bool)
    pressed[2:, 0] = moved[:-2] == 9
    gold = np.zeros(count)
    gold[3:] = 20.0 * bright[:-3]
    features = features_of(range(count), name, movement=moved.astype(np.int8), abilities=pressed, gold=gold)
    write_game(folder, features, range(count), latents)
    return moved


def windows(folder: Path, name: str, stride: int = FRAMES) -> Windows:
    games = [one for one in read_recordings(folder, lambda done, total: None) if one.name == name]
    return Windows(games, Statistics(np.zeros(2, np.float32), np.ones(2, np.float32)), FRAMES, stride, CPU)


def test_the_linear_model_finds_what_the_window_says_and_no_later_frame_reaches_it(tmp_path: Path) -> None:
    for seed, name in enumerate(("train", "held")):
        made(tmp_path, name, seed)
    train, held = windows(tmp_path, "train", 4), windows(tmp_path, "held")
    numbers = torch.arange(held.count)
    found = baselines(train, held, numbers, 5)
    batch = held.batch(numbers, None)
    linear, repeat = found[LINEAR], found[REPEAT]
    assert (linear.movement[:, :-1] == batch["movement"][:, 1:].numpy()).mean() > 0.99
    assert (linear.abilities[:, 1:-1] == (batch["abilities"][:, 2:].numpy() > 0.5)).mean() > 0.99
    assert 0.35 < (repeat.movement[:, :-1] == batch["movement"][:, 1:].numpy()).mean() < 0.65
    assert (repeat.movement == batch["movement"].numpy()).all()
    assert repeat.chance is None
    chance = linear.chance
    assert chance is not None
    event = batch["event"].numpy()
    for offset, known in ((0, range(3, FRAMES)), (1, range(2, FRAMES - 1)), (3, range(FRAMES - 3))):
        frames = np.array(known)
        said, came = chance[:, frames, offset], event[:, frames + offset]
        judged = batch["rewarded"].numpy()[:, frames + offset]
        assert said[judged & came].min() > said[judged & ~came].max()
    later = held.batch(numbers, None)
    cut = 6
    later["latents"][:, cut:] += 3
    later["movement"][:, cut:] = NONE
    held.batch = lambda indices, rng, ctx=None: {key: value[: len(indices)] for key, value in later.items()}  # type: ignore[method-assign]
    other = baselines(train, held, numbers, 5)[LINEAR]
    assert other.chance is not None
    assert (other.movement[:, :cut] == linear.movement[:, :cut]).all()
    np.testing.assert_array_equal(other.chance[:, :cut], chance[:, :cut])
    assert not np.allclose(other.chance[:, cut:], chance[:, cut:])


def test_a_movement_that_is_not_known_is_repeated_as_none(tmp_path: Path) -> None:
    features = features_of(range(40), movement=np.full(40, -1, np.int8))
    write_game(tmp_path, features, range(40), np.zeros((40, *SHAPE), np.float32))
    held = windows(tmp_path, "game")
    found = baselines(held, held, torch.arange(held.count), 2)
    assert (found[REPEAT].movement == NONE).all()
    chance = found[LINEAR].chance
    assert chance is not None
    assert np.isfinite(chance).all()


def test_the_ceiling_is_the_odds_of_the_frames_of_each_window(tmp_path: Path) -> None:
    moved = made(tmp_path, "held", 3)
    held = windows(tmp_path, "held")
    numbers = torch.tensor([2, 5])
    assert ceiling(tmp_path, held, numbers, 3) is None
    rng = np.random.default_rng(0)
    movement = 0.3 * rng.random((300, 19))
    movement[np.arange(300), moved] = 0.9
    odds = Odds(rng.random((300, 9)), movement, rng.random((300, 8)))
    (tmp_path / FOLDER).mkdir()
    write_odds(tmp_path / FOLDER / "held.npz", odds)
    found = ceiling(tmp_path, held, numbers, 3)
    assert found is not None
    assert found.chance is not None
    for row, number in enumerate(numbers.tolist()):
        start = number * FRAMES
        assert found.movement[row].tolist() == moved[start + 1 : start + 1 + FRAMES].tolist()
        assert (found.abilities[row] == (odds.abilities[start + 1 : start + 1 + FRAMES] > 0.5)).all()
        np.testing.assert_allclose(found.chance[row], odds.event[start : start + FRAMES, :3], rtol=1e-6)
    assert CEILING not in baselines(held, held, numbers, 3)


@pytest.mark.parametrize("frames", [299, 301])
def test_odds_of_another_length_are_said(tmp_path: Path, frames: int) -> None:
    made(tmp_path, "held", 3)
    (tmp_path / FOLDER).mkdir()
    write_odds(
        tmp_path / FOLDER / "held.npz", Odds(np.zeros((frames, 9)), np.zeros((frames, 19)), np.zeros((frames, 8)))
    )
    with pytest.raises(Exception, match=rf"event has shape \({frames}, 9\), its game needs \(300, 9\)"):
        ceiling(tmp_path, windows(tmp_path, "held"), torch.tensor([0]), 3)
