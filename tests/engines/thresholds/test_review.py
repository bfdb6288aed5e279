"""A review is read whole, of one epoch, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import numpy as np
import pytest

from engines.basics import files
from engines.basics.errors import DataError
from engines.thresholds import review as reviews
from engines.thresholds.review import About, read_review, write_review


def about(epoch: int) -> About:
    return About(checkpoint="best.pt", step=10 * epoch, epoch=epoch, score=0.5)


def arrays(epoch: int) -> dict[str, np.ndarray]:
    return {"scores": np.full((3, 2), epoch, np.float32), "names": np.array(["a", "b"]), "idle": np.ones(3, np.bool_)}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert read_review(tmp_path) is None
    for epoch in (1, 2):
        write_review(tmp_path, arrays(epoch), about(epoch))
    read = read_review(tmp_path)
    assert read is not None
    assert (read.about.epoch, read.about.step) == (2, 20)
    assert read.arrays.keys() == arrays(2).keys()
    for name, array in arrays(2).items():
        assert read.arrays[name].dtype == array.dtype
        assert read.arrays[name].tolist() == array.tolist()
    assert len(list(tmp_path.iterdir())) == 4  # nothing of epoch 1, and what did not change only once
    assert all(file.stat().st_mode & 0o077 == 0 for file in tmp_path.iterdir())


@pytest.mark.parametrize("survived", range(3))
def test_a_writer_killed_half_way_leaves_the_earlier_review(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survived: int
) -> None:
    write_review(tmp_path, arrays(1), about(1))
    left = iter([True] * survived)

    def killed(path: Path, content: bytes) -> None:
        if not next(left, False):
            raise KeyboardInterrupt
        replace(path, content)

    replace = files.replace_bytes
    monkeypatch.setattr(files, "replace_bytes", killed)
    changed = {**arrays(2), "idle": np.zeros(3, np.bool_)}
    with pytest.raises(KeyboardInterrupt):
        write_review(tmp_path, changed, about(2))
    read = read_review(tmp_path)
    assert read is not None
    assert read.about.epoch == 1
    assert read.arrays["scores"].max() == 1
    assert read.arrays["idle"].all()


def test_a_review_replaced_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_review(tmp_path, arrays(1), about(1))
    read_about = reviews._read_about
    calls = []

    def and_then_the_engine_writes(path: Path) -> About | None:
        found = read_about(path)
        calls.append(found)
        if len(calls) == 1:
            write_review(tmp_path, arrays(2), about(2))
        return found

    monkeypatch.setattr(reviews, "_read_about", and_then_the_engine_writes)
    read = read_review(tmp_path)
    assert read is not None
    assert (len(calls), read.about.epoch, read.arrays["scores"].max()) == (2, 2, 2)


def test_damage_is_a_sentence(tmp_path: Path) -> None:
    write_review(tmp_path, arrays(1), about(1))
    (scores,) = tmp_path.glob("scores-*.npy")
    whole = scores.read_bytes()
    scores.write_bytes(whole[:-1] + b"\0")
    with pytest.raises(DataError, match=r"scores-\w+\.npy is damaged .*; the next best epoch"):
        read_review(tmp_path)
    scores.unlink()
    with pytest.raises(DataError, match=r"scores-\w+\.npy is missing from the review"):
        read_review(tmp_path)
    (tmp_path / "about.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read as the record of a review"):
        read_review(tmp_path)
    (tmp_path / "about.json").write_bytes(msgspec.json.encode(about(1)))
    with pytest.raises(DataError, match="written by another version"):
        read_review(tmp_path)


def test_a_name_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    evil = msgspec.structs.replace(about(1), arrays={"scores": os.path.join("..", "x.npy")})
    (tmp_path / "about.json").write_bytes(msgspec.json.encode(evil))
    with pytest.raises(DataError, match="names no arrays"):
        read_review(tmp_path)
