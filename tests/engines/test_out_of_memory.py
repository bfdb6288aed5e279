"""A device that is full, which is faked: what is taken for that, what the user reads, batches cut until they fit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch import nn

from engines.basics.errors import DataError
from engines.contract.steps import read_series
from engines.training import checkpoint, engine
from engines.training.out_of_memory import is_out_of_memory, more_parts
from engines.training.project import Batch, Context, Loss
from tests.engines.toy import ToyEvaluation, ToyProject, ToyRun

FULL = (
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
    RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: you tried"),
    MemoryError("Unable to allocate 40.0 GiB for an array"),
)
OTHER = (RuntimeError("CUDA error: an illegal memory access was encountered"), ValueError("out of memory"))


@pytest.mark.parametrize("error", FULL, ids=lambda error: str(error)[:40])
def test_every_kind_is_one_sentence_with_what_the_run_did(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(attempt: Any) -> Any:
        raise error

    error.__notes__ = ["while evaluating", "while training"]
    monkeypatch.setattr(engine, "_train", full)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (1_250_000_000, 80_000_000_000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 70_000_000_000)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H100")
    monkeypatch.setattr("engines.training.out_of_memory.memory", lambda: (20_000_000_000, 25_000_000_000))
    with pytest.raises(DataError) as failure:
        engine.train(None)  # type: ignore[arg-type]
    on_cpu = "allocate memory" in str(error) or isinstance(error, MemoryError)
    place, others = ("the machine", "on it") if on_cpu else ("cuda:3 (NVIDIA H100)", "on that GPU")
    numbers = "25.0 GB, 5.0 GB are free" if on_cpu else "80.0 GB, this run holds 70.0 GB and 1.2 GB are free"
    assert str(failure.value) == (
        f"{place} is out of memory while evaluating: of {numbers}; resume with --set training.micro_batches=auto, "
        f"start a new run with a smaller training.batch_size, or stop other programs {others}."
    )


@pytest.mark.parametrize("error", OTHER, ids=str)
def test_another_error_is_not_taken_for_it(error: Exception) -> None:
    assert not is_out_of_memory(error)


def test_parts_divide_a_batch() -> None:
    assert [more_parts(1, 64), more_parts(2, 6), more_parts(2, 9), more_parts(5, 9), more_parts(1, 1)] == [
        2, 6, 9, None, None,
    ]  # fmt: skip


class SmallMemory(ToyProject):
    """Finds no room for a batch, or a validation batch, of more than so many samples: in the middle of its work."""

    most, most_validated = 10**9, 10**9

    def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        losses = super().losses(model, batch, ctx)
        if len(batch["x"]) > (self.most if model.training else self.most_validated):
            torch.rand(7)  # random numbers that the failed step has drawn
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return losses

    def evaluation(self, cfg: Any, data: Any) -> ToyEvaluation:
        return ToyEvaluation(self)


def trained(folder: Path, most: int = 10**9, most_validated: int = 10**9, **training: Any) -> ToyRun:
    project = SmallMemory()
    project.most, project.most_validated = most, most_validated
    toy = ToyRun(folder, project, **training)
    assert toy.train() == "finished"
    return toy


def alerts(toy: ToyRun) -> list[str]:
    events = map(msgspec.json.decode, toy.run.events.read_bytes().splitlines())
    return [event["text"] for event in events if event["type"] == "alert" and event["code"] == "micro-batches"]


@pytest.mark.behaviour("batch-cut-until-fits")
def test_a_batch_is_cut_until_it_fits_and_trains_as_if_it_had_been_from_the_start(tmp_path: Path) -> None:
    cut = trained(tmp_path / "cut", most=8, micro_batches="auto")
    straight = trained(tmp_path / "straight", micro_batches=4)
    ours, theirs = cut.trainer.checkpoints.content(), straight.trainer.checkpoints.content()
    assert cut.trainer.state.micro_batches == 4
    for part in ("model", "optimizer", "sums", "random"):
        assert checkpoint.same(ours[part], theirs[part]), part
    assert alerts(cut) == [
        f"out of memory at step 0: each batch of 32 is computed in {parts} parts from now on, with the same gradient"
        for parts in (2, 4)
    ]
    assert alerts(straight) == []
    assert (read_series(cut.run.steps, "loss")[1] == read_series(straight.run.steps, "loss")[1]).all()


@pytest.mark.behaviour("batch-cut-until-fits")
def test_a_resume_goes_on_with_what_fits(tmp_path: Path) -> None:
    first = trained(tmp_path, most=8, micro_batches="auto")
    again = ToyRun(tmp_path, SmallMemory(), attempt=2, micro_batches="auto")
    engine.resume(again.run, again.trainer)
    assert again.trainer.state.micro_batches == first.trainer.state.micro_batches == 4
    by_hand = ToyRun(tmp_path, SmallMemory(), attempt=3, micro_batches=2)
    engine.resume(by_hand.run, by_hand.trainer)
    assert by_hand.trainer.state.micro_batches == 2


def test_an_evaluation_that_does_not_fit_is_cut_too(tmp_path: Path) -> None:
    """64 validation samples are one batch of at most 128, then two of 32."""
    toy = trained(tmp_path, most_validated=32, micro_batches="auto", epochs=1)
    assert toy.trainer.state.micro_batches == 4


def test_without_auto_the_error_goes_on_and_names_the_phase(tmp_path: Path) -> None:
    for name, limits in (("training", (8, 10**9)), ("evaluating", (10**9, 8))):
        with pytest.raises(torch.OutOfMemoryError) as failure:
            trained(tmp_path / name, *limits)
        assert failure.value.__notes__[0] == f"while {name}"


def test_a_single_sample_that_does_not_fit_is_out_of_memory(tmp_path: Path) -> None:
    with pytest.raises(torch.OutOfMemoryError):
        trained(tmp_path, most=0, micro_batches="auto")
