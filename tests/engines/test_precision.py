"""Precisions and moments of a GPU, as far as they can be shown without one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engines.basics.errors import UserError
from engines.training import precision as precisions
from engines.training.clock import Clock
from engines.training.draws import Share, randn
from engines.training.precision import Precision, choices, no_trace, numeric_flags
from engines.training.ranks import ALONE
from engines.training.update import Update

GPU = torch.device("cuda", 0)


@pytest.fixture
def ampere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (8, 0))
    monkeypatch.setattr(precisions, "has_bf16", lambda device: True)


def test_what_leaves_no_trace_gives_the_common_draws_of_ranks_back() -> None:
    share = Share(0, 2, 4, ALONE, torch.Generator().manual_seed(1))
    with no_trace(nn.Identity(), share):
        inside = randn((2, 3), share, torch.device("cpu"))
    assert torch.equal(randn((2, 3), share, torch.device("cpu")), inside)


@pytest.mark.usefixtures("ampere")
def test_tf32_holds_inside_a_step_alone() -> None:
    for name, inside in (("tf32", "high"), ("bf16", "highest"), ("off", "highest")):
        chosen = Precision(name, GPU)
        with chosen.multiplying():
            assert torch.get_float32_matmul_precision() == inside
            assert isinstance(chosen.autocast(), torch.autocast) is (name == "bf16")
        assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.usefixtures("ampere")
def test_what_a_device_can_compute_in() -> None:
    assert choices(GPU) == ("off", "tf32", "bf16", "fp16")
    for name in ("tf32", "fp16"):
        with pytest.raises(UserError, match=f"training.amp {name} needs a GPU, and the device is cpu"):
            Precision(name, torch.device("cpu"))


def test_an_older_gpu_has_no_tf32(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (7, 5))
    monkeypatch.setattr(precisions, "has_bf16", lambda device: False)
    assert choices(GPU) == ("off", "fp16")
    assert Precision("tf32", GPU).name == "off"
    assert capsys.readouterr().out == "training.amp tf32 is off: this GPU has none\n"


@pytest.mark.usefixtures("ampere")
def test_flags_of_a_gpu_name_its_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "attention" not in numeric_flags()
    monkeypatch.setattr(precisions, "_on_gpu", lambda: True)
    assert numeric_flags()["compute capability"] == "8.0"
    before = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    try:
        torch.backends.cuda.enable_cudnn_sdp(False)
        assert numeric_flags()["attention"] == "flash, efficient, math"
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


class Scaler:
    """An fp16 loss scaler that has found no infinite gradient, as where only their norm overflows."""

    updates = 0

    def is_enabled(self) -> bool:
        return True

    def update(self) -> None:
        self.updates += 1


@pytest.mark.parametrize("skipped", [0.0, 1.0])
def test_in_fp16_the_optimizer_skips_what_the_log_says_is_skipped(skipped: float) -> None:
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.AdamW([weight], lr=0.1, fused=True)
    scaler = Scaler()
    weight.grad = torch.full((2,), 1e30)  # finite, with a norm that is not in float32
    half: Any = type("Half", (), {"scaler": scaler})()
    Update(optimizer, half)(torch.tensor(skipped))
    assert torch.equal(weight.detach(), torch.ones(2)) == bool(skipped)
    assert scaler.updates == 1
    assert weight.grad is None


class FakeEvent:
    """An event that is reached when it is waited for, so many ms after the last one was recorded."""

    made = 0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing
        self.waited = False

    def record(self, stream: object) -> None:
        FakeEvent.made += 1
        self.at = FakeEvent.made * 2.5

    def synchronize(self) -> None:
        self.waited = True

    def elapsed_time(self, other: FakeEvent) -> float:
        assert other.waited
        return other.at - self.at


def test_on_a_gpu_moments_are_events_that_are_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    clock = Clock(GPU)
    began, ended = clock.now(), clock.now()
    assert not began.waited  # type: ignore[union-attr]
    assert Clock.seconds(began, ended) == 2.5e-3
    assert Clock.seconds(1.0, 3.5) == 2.5


def test_the_norm_of_such_gradients_is_infinite() -> None:
    norm: Tensor = torch.full((2,), 1e30).norm()
    assert norm.isinf()
