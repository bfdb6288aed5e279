"""Windows of games: values worked out frame by frame, masks for gaps, and how often windows with an event are drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engines.basics.errors import DataError
from engines.training.order import MixedOrder
from projects.agent.recordings import Recording, read_recordings
from projects.agent.windows import Statistics, Windows, statistics
from tests.projects.agent.recorded import features_of, latents_of, write_game

CPU = torch.device("cpu")
PLAIN = Statistics(np.zeros(2, np.float32), np.ones(2, np.float32))


@pytest.fixture
def games(tmp_path: Path) -> list[Recording]:
    """Two games with gaps in their latents; events at 60, 61 and 90 of the second."""
    gold = np.zeros(80)
    gold[[20, 21, 50]] = 15.0
    rows = [*range(12), *range(20, 30)]
    write_game(tmp_path, features_of(range(30), "a"), rows, latents_of(rows))
    rows = [*range(40, 70), *range(72, 120)]
    pressed = np.random.default_rng(0).random((80, 8)) < 0.3
    movement = (np.arange(80) % 19).astype(np.int8)
    second = features_of(range(40, 120), "b", gold=gold, abilities=pressed, movement=movement)
    write_game(tmp_path, second, rows, latents_of(rows))
    return read_recordings(tmp_path, lambda done, total: None)


def test_a_batch_is_what_the_recordings_hold(games: list[Recording]) -> None:
    normal = Statistics(np.array([10.0, 20.0], np.float32), np.array([2.0, 4.0], np.float32))
    windows = Windows(games, normal, 8, 3, CPU)
    batch = windows.batch(torch.arange(windows.count), None)
    assert batch["latents"].shape == (windows.count, 8, 2, 1, 3)
    assert not batch["relevant"].any()
    for place in range(windows.count):
        one, start = games[windows.game[place]], int(windows.start[place])
        assert start % 3 == 0
        for t in range(8):
            frame = start + t
            there = one.rows[frame] >= 0
            number = one.first + frame
            raw = number + np.arange(6, dtype=np.float32).reshape(2, 1, 3) / 4
            raw = (raw - normal.mean[:, None, None]) / normal.deviation[:, None, None]
            np.testing.assert_allclose(batch["latents"][place, t], raw if there else np.zeros_like(raw), rtol=1e-6)
            assert batch["present"][place, t] == there
            assert batch["movement"][place, t] == one.movement[frame]
            assert batch["abilities"][place, t].tolist() == one.abilities[frame].tolist()
            assert batch["acted"][place, t] == one.acted[frame]
            assert batch["reward"][place, t] == one.rewards.reward[frame]
            assert batch["rewarded"][place, t] == one.rewards.known[frame]
            assert batch["event"][place, t] == one.rewards.event[frame]


def test_windows_follow_each_other_in_number_and_half_of_each_is_there(games: list[Recording]) -> None:
    windows = Windows(games, PLAIN, 8, 1, CPU)
    expected = {
        (game, start)
        for game, one in enumerate(games)
        for start in range(len(one) - 7)
        if (one.rows[start : start + 8] >= 0).sum() >= 4
    }
    assert len(expected) < sum(len(one) - 7 for one in games)
    assert set(zip(windows.game.tolist(), windows.start.tolist(), strict=True)) == expected


def test_windows_with_an_event_have_numbers_of_their_own(games: list[Recording]) -> None:
    windows = Windows(games, PLAIN, 8, 1, CPU)
    expected = [
        place
        for place in range(windows.count)
        if games[windows.game[place]].rewards.event[windows.start[place] : windows.start[place] + 8].any()
    ]
    assert windows.relevant.tolist() == expected
    assert len(windows) == windows.count + len(expected)
    batch = windows.batch(torch.tensor([expected[3], windows.count + 3]), None)
    assert batch["relevant"].tolist() == [False, True]
    torch.testing.assert_close(batch["latents"][0], batch["latents"][1], rtol=0, atol=0)


def test_b8_with_a_share_p_of_windows_with_an_event_half_and_half_of_p_are_drawn(games: list[Recording]) -> None:
    """An epoch counts draws, with replacement: p = .19 of all windows become .6 of the draws."""
    windows = Windows(games, PLAIN, 8, 1, CPU)
    share = len(windows.relevant) / windows.count
    sets = [range(windows.count), range(windows.count, len(windows))]
    order = MixedOrder(sets, [0.5, 0.5], 500, seed=3, draws=2000)
    assert order.steps_per_pass == 4
    drawn = torch.cat([order.indices(epoch, step) for epoch in range(2) for step in range(4)])
    own = windows.batch(drawn, None)["relevant"]
    assert float(own.float().mean()) == pytest.approx(0.5, abs=0.03)
    with_event = torch.from_numpy(np.isin(drawn.numpy(), windows.relevant)) | own
    assert 0.1 < share < 0.3
    assert float(with_event.float().mean()) == pytest.approx(0.5 + 0.5 * share, abs=0.03)


def test_games_that_are_too_short_are_said(games: list[Recording]) -> None:
    with pytest.raises(DataError, match="2 games, the longest of them b with 80 frames, have no window of 81 frames"):
        Windows(games, PLAIN, 81, 1, CPU)


def test_mean_and_deviation_are_those_of_the_frames_that_are_there(games: list[Recording]) -> None:
    found = statistics(games)
    every = np.concatenate([np.asarray(one.latents, np.float64) for one in games])
    np.testing.assert_allclose(found.mean, every.mean(axis=(0, 2, 3)), rtol=1e-5)
    np.testing.assert_allclose(found.deviation, every.std(axis=(0, 2, 3)), rtol=1e-4)
    some = every[:4].astype(np.float32)
    np.testing.assert_allclose(found.restored(found.normalised(some)), some, rtol=1e-5)


def test_latents_that_are_no_numbers_are_said(tmp_path: Path) -> None:
    latents = latents_of(range(20))
    latents[7, 1] = np.nan
    write_game(tmp_path, features_of(range(20)), range(20), latents)
    games = read_recordings(tmp_path, lambda done, total: None)
    with pytest.raises(DataError, match="game: its latents hold NaN or infinite values"):
        statistics(games)
    windows = Windows(games, PLAIN, 4, 4, CPU)
    with pytest.raises(DataError, match="game: its latents hold NaN"):
        windows.batch(torch.tensor([1]), None)
    windows.batch(torch.tensor([0, 2]), None)
