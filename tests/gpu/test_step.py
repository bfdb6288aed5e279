"""The training step on a GPU: nothing in it waits, it is the CPU's to rounding, and it skips what is not finite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch

from engines.training import checkpoint
from engines.training.engine import resume
from engines.training.precision import choose_device, random_state, restore_random_state
from tests.gpu.conftest import BOTH, DEVICE, ON_GPU, needs_driver
from tests.gpu.trainers import InProcess, state_of

Make = Callable[..., InProcess]
Record = Callable[[str, object], None]
AUGMENTED = ("model.dropout=0.2", "data.augmentation.noise=0.005", "data.augmentation.warp=0.2")
WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy")
LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx")


@contextmanager
def waiting_is_an_error() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@needs_driver
@pytest.mark.parametrize("device", [pytest.param(DEVICE, marks=ON_GPU)])
@pytest.mark.parametrize("amp", ["off", "bf16", "fp16"])
def test_no_step_waits_for_the_device(device: str, amp: str, in_process: Make) -> None:
    """Batches with everything random about them, losses, clipping, the finite check, the optimizer, the log."""
    live = in_process(device, *AUGMENTED, f"training.amp={amp}", "training.log_every=100")
    for place in range(3):  # what a stage makes once
        live.step(place)
    with waiting_is_an_error():
        for place in range(3, 9):
            live.step(place)


@needs_driver
@pytest.mark.parametrize("device", [pytest.param(DEVICE, marks=ON_GPU)])
def test_the_loop_waits_once_per_flush_of_its_log(device: str, in_process: Make, record_property: Record) -> None:
    """The whole loop over 80 steps, as the profiler sees it: which flushes every 8 steps: ten waits."""
    live = in_process(device, *AUGMENTED, "training.log_every=8", "training.epochs=9", "training.steps_per_epoch=1000")
    for place in range(8):
        live.step(place)
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for place in range(80):
            live.step(place)
    seen = Counter(event.key for event in profile.events() if event.key in WAITS)
    kernels = sum(event.key in LAUNCHES for event in profile.events())
    record_property("waits in 80 steps", dict(seen))
    record_property("kernels a step", kernels / 80)
    assert seen["cudaStreamSynchronize"] + seen["cudaEventSynchronize"] + seen["cudaMemcpy"] <= 80 / 8
    assert seen["cudaDeviceSynchronize"] <= 2  # the profiler's own


@pytest.mark.parametrize("device", BOTH)
@pytest.mark.parametrize(("amp", "tolerance"), [("off", 2e-3), ("bf16", 5e-2)])
def test_losses_are_those_of_the_cpu(
    device: str, amp: str, tolerance: float, in_process: Make, record_property: Record
) -> None:
    """Twelve steps; fp32 to 0.2 %, bf16 to 5 %. History dropout is drawn on the host; the demo has no other noise."""
    live, reference = in_process(device, f"training.amp={amp}"), in_process("cpu", "training.amp=off")
    pairs = [(live.step(place)[:-2].cpu(), reference.step(place)[:-2]) for place in range(12)]
    ours, theirs = (torch.stack(side) for side in zip(*pairs, strict=True))
    apart = ((ours - theirs).abs() / theirs.abs().clamp(min=0.05)).nan_to_num().max()
    record_property(f"largest relative difference of a loss, {amp}", float(apart))
    assert theirs[:, -1].isfinite().all()
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=0.05 * tolerance, equal_nan=True)


@pytest.mark.parametrize("device", BOTH)
@pytest.mark.parametrize("amp", ["off", "bf16", "fp16"])
def test_a_bad_step_changes_nothing_but_its_count(device: str, amp: str, in_process: Make) -> None:
    if amp == "fp16" and device == "cpu":
        pytest.skip("fp16 is refused on the CPU")
    live = in_process(device, f"training.amp={amp}")
    for place in range(20):  # a loss scale has settled by then
        live.step(place)
    before = state_of(live)
    batch = live.trainer.data.train.batch(live.trainer.schedule.order.indices(0, 0), None)
    batch["features"][0, 0, 0] = torch.nan
    row = live.trainer.step(batch, live.trainer.schedule.context(), 1e-4)
    assert float(row[-1]) == 1
    assert checkpoint.same(before, state_of(live))
    assert float(live.step(21)[-1]) == 0
    assert not checkpoint.same(before, state_of(live))


@pytest.mark.parametrize(
    ("saved_on", "resumed_on"),
    [pytest.param(DEVICE, "cpu", marks=ON_GPU), pytest.param("cpu", DEVICE, marks=ON_GPU), ("cpu", "cpu")],
)
def test_a_checkpoint_goes_on_on_another_device(saved_on: str, resumed_on: str, in_process: Make) -> None:
    """The same weights, moments, counters and sums; and the next step is the same to rounding."""
    first = in_process(saved_on, "training.amp=off")
    for place in range(5):
        first.step(place)
    first.trainer.state.step = first.trainer.state.step_in_epoch = 5
    first.trainer.checkpoints.save()
    second = in_process(resumed_on, "training.amp=off")
    second.run.last.write_bytes(first.run.last.read_bytes())
    resume(second.run, second.trainer)
    ours, theirs = second.trainer.checkpoints.content(), first.trainer.checkpoints.content()
    for name in ("model", "sums", "state"):
        assert checkpoint.same(ours[name], theirs[name]), name
    assert checkpoint.same(ours["optimizer"]["state"], theirs["optimizer"]["state"])
    assert {tensor.device.type for tensor in ours["model"].values()} == {second.device.type}
    loss, expected = (one.step(5)[-3].cpu() for one in (second, first))
    torch.testing.assert_close(loss, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", BOTH)
def test_random_numbers_of_the_device_are_put_back(name: str) -> None:
    device = choose_device(name)
    torch.rand(3, device=device)
    before = random_state()
    drawn = torch.rand(5, device=device)
    assert not torch.equal(torch.rand(5, device=device), drawn)
    restore_random_state(before)
    assert torch.equal(torch.rand(5, device=device), drawn)


@pytest.mark.parametrize("device", [pytest.param(DEVICE, marks=ON_GPU)])
def test_a_compiled_model_gives_the_same_losses(device: str, in_process: Make, record_property: Record) -> None:
    plain, compiled = (in_process(device, "training.amp=off", f"training.compile={on}") for on in ("false", "true"))
    pairs = [(compiled.step(place)[:-2], plain.step(place)[:-2]) for place in range(4)]
    ours, theirs = (torch.stack(side) for side in zip(*pairs, strict=True))
    record_property("largest difference of a loss, compiled", float((ours - theirs).abs().nan_to_num().max()))
    torch.testing.assert_close(ours, theirs, rtol=2e-3, atol=1e-4, equal_nan=True)
