"""A device that cannot be had, or is full, is a sentence that says what to do; what is said of a GPU here is faked."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from engines.basics.errors import UserError
from engines.training.precision import choose_device, random_state, restore_random_state, seed_everything


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("wanted", ["auto", "cuda", "cuda:1", "gpu"])
def test_a_device_that_cannot_be_had_is_a_sentence(monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    """`auto` too, where a driver tells of a GPU that torch then cannot use."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(UserError) as failure:
        choose_device(wanted)
    assert str(failure.value).startswith(f"launch.device {wanted!r} cannot be used here (")
    assert str(failure.value).endswith("; use auto, cpu or cuda:0.")


def test_random_numbers_go_on_where_they_were() -> None:
    def drawn() -> tuple[float, float, float]:
        return random.random(), float(np.random.random()), float(torch.rand(()))

    seed_everything(3)
    before = random_state()
    first = drawn()
    assert before["cuda"] == []  # a process on the CPU asks no GPU
    assert drawn() != first
    restore_random_state({**before, "cuda": [torch.zeros(16, dtype=torch.uint8)]})  # as a GPU wrote it
    assert drawn() == first
