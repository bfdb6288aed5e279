"""Recorded games: features and latents met by frame number, whatever rows they lie in."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from engines.basics.errors import DataError
from projects.agent.layout import NONE, UNKNOWN
from projects.agent.recordings import game_of, names_at, read_recording, read_recordings
from tests.projects.agent.recorded import SHAPE, features_of, latents_of, write_game


def test_b7_everything_is_found_by_frame_number_and_not_by_row(tmp_path: Path) -> None:
    """Features begin earlier than latents, both have gaps, and no row is the number of its frame."""
    described = [*range(95, 130), *range(132, 150)]
    packed = [*range(100, 110), *range(113, 145)]
    gold = np.array([float(number) for number in described])
    movement = np.array([number % 18 for number in described], np.int8)
    write_game(tmp_path, features_of(described, gold=gold, movement=movement), packed, latents_of(packed))
    one = read_recording(tmp_path, "game")
    assert (one.first, len(one)) == (100, 45)
    for t in range(len(one)):
        number = 100 + t
        seen = one.seen(t, t + 1)[0]
        assert seen[0, 0, 0] == (number if number in packed else 0)
        assert (one.rows[t] >= 0) == (number in packed)
        assert one.acted[t] == (number in described)
        assert one.movement[t] == (number % 18 if number in described else UNKNOWN)
        judged = all(k in described for k in range(number - 5, number + 4))
        assert one.rewards.known[t] == judged
        assert one.rewards.reward[t] == pytest.approx(0.01 * number if judged else 0)
    assert one.seen(8, 15)[:, 0, 0, 0].tolist() == [108, 109, 0, 0, 0, 113, 114]
    assert one.seen(10, 13).shape == (3, *SHAPE)


def test_all_games_of_a_folder_by_name(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_game(tmp_path, features_of(range(20), name), range(20), latents_of(range(20)))
    ticks: list[tuple[int, int]] = []
    found = read_recordings(tmp_path, lambda done, total: ticks.append((done, total)))
    assert [one.name for one in found] == ["a", "b"]
    assert ticks == [(0, 2), (1, 2)]
    assert (found[0].movement == NONE).all()
    assert isinstance(found[0].latents, np.memmap)


def test_a_game_is_found_by_either_of_its_files(tmp_path: Path) -> None:
    assert game_of(tmp_path / "features" / "a" / "features.json") == (tmp_path, "a")
    assert game_of(tmp_path / "latents" / "a.npz") == (tmp_path, "a")
    with pytest.raises(DataError, match="is no recorded game"):
        game_of(tmp_path / "a.npz")


def test_faults_of_a_folder_are_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no game, expected features/VIDEO/features\.json"):
        names_at(tmp_path)
    write_game(tmp_path, features_of(range(20), "a"), range(20), latents_of(range(20)))
    write_game(tmp_path, features_of(range(20), "b"), range(20), latents_of(range(20))[:, :1])
    with pytest.raises(DataError, match="latents of b are 1 × 1 × 3, those of a 2 × 1 × 3"):
        read_recordings(tmp_path, lambda done, total: None)
    write_game(tmp_path, features_of(range(20), "b"), range(50, 70), latents_of(range(20)))
    with pytest.raises(DataError, match="frames 0 to 19, its latents 50 to 69"):
        read_recording(tmp_path, "b")
    (tmp_path / "latents" / "b.npz").unlink()
    with pytest.raises(DataError, match=r"the game b lacks latents/b\.npz"):
        names_at(tmp_path)
    shutil.move(tmp_path / "features" / "a", tmp_path / "features" / "c")
    shutil.move(tmp_path / "latents" / "a.npz", tmp_path / "latents" / "c.npz")
    with pytest.raises(DataError, match="video_id is 'a', expected 'c'"):
        read_recording(tmp_path, "c")
