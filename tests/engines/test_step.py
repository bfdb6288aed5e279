"""One step: equal to a plain loop, whole over micro-batches, blind to bad numbers, never waiting for the device."""

from __future__ import annotations

import contextlib
import errno
import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.controls_data import random_recordings
from engines.contract import limits
from engines.contract.commands import SetLrScale
from engines.contract.events import EventWriter
from engines.contract.rundir import RunDirectory
from engines.contract.schedule import learning_rate
from engines.contract.steps import StepWriter, read_series
from engines.runs import launch
from engines.runtime.listener import CommandListener
from engines.runtime.room import Room
from engines.training import precision as precisions
from engines.training.order import step_generator
from engines.training.precision import Precision, cpu_has_bf16
from engines.training.project import Context, Loss
from engines.training.saving import Diverged
from engines.training.step import TrainStep
from engines.training.step_log import StepLog
from engines.training.sums import EpochSums
from projects.controls.config import ControlsConfig
from projects.controls.project import ControlsProject
from projects.controls.recordings import write_recording
from projects.controls.spec import SPEC
from tests.engines.toy import ToyProject, ToyRun


def test_training_equals_a_plain_loop(tmp_path: Path) -> None:
    """The reference is written out here: nothing of the engine but the order of the samples and their noise."""
    toy = ToyRun(tmp_path, epochs=2)
    toy.train()
    reference = ToyRun(tmp_path / "reference", epochs=2)
    model, source, order = reference.model, reference.data.train, reference.trainer.schedule.order
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 1e-4}, {"params": vectors, "weight_decay": 0.0}], lr=1e-2
    )
    losses = []
    for epoch in range(2):
        for step in range(8):
            batch = source.batch(order.indices(epoch, step), step_generator(7, epoch, step))
            predicted = model(batch["x"])
            everyone = (predicted[:, 0] - batch["y"][:, 0]).square().mean()
            rare = (predicted[:, 1] - batch["y"][:, 0]).square()[batch["rare"]]
            loss = everyone + 0.5 * (rare.mean() if len(rare) else 0.0)
            losses.append(float(loss.detach()))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            done = epoch * 8 + step
            for group in optimizer.param_groups:
                group["lr"] = 1e-2 * (done + 1) / 8 if epoch == 0 else cosine((done - 8) / 8)
            optimizer.step()
    _, logged = read_series(tmp_path / "metrics" / "steps", "loss")
    torch.testing.assert_close(torch.tensor(logged), torch.tensor(losses, dtype=torch.float64), rtol=1e-5, atol=1e-6)
    for ours, theirs in zip(toy.model.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def cosine(done: float) -> float:
    return 1e-6 + (1e-2 - 1e-6) * (1 + math.cos(math.pi * done)) / 2


def test_learning_rate_starts_above_zero_peaks_and_ends_least() -> None:
    def rate(step: int) -> float:
        return learning_rate(step / 10, step_size=0.1, total=5, warmup=2, peak=1.0, least=0.01)

    assert rate(0) == pytest.approx(0.05)
    assert rate(19) == pytest.approx(1.0)
    assert rate(20) == pytest.approx(1.0)
    assert rate(35) == pytest.approx(0.01 + 0.99 / 2)
    assert rate(50) == pytest.approx(0.01)
    assert rate(500) == pytest.approx(0.01)
    assert all(rate(s + 1) <= rate(s) for s in range(20, 60))


@pytest.mark.parametrize("parts", [2, 4])
def test_micro_batches_give_the_whole_batchs_gradient(tmp_path: Path, parts: int) -> None:
    """The rare head sits unevenly in the parts, which a mean of means would get wrong."""
    gradients = []
    for micro_batches in (1, parts):
        toy = ToyRun(tmp_path / str(micro_batches), micro_batches=micro_batches)
        toy.model.eval()  # without dropout, whose noise depends on the shape of a part
        batch = toy.data.train.batch(toy.trainer.schedule.order.indices(0, 0), None)
        rare = [int(part.sum()) for part in batch["rare"].tensor_split(parts)]
        assert len(set(rare)) > 1
        toy.trainer.step._backward(batch, toy.trainer.schedule.context())
        gradients.append([p.grad.clone() for p in toy.model.parameters() if p.grad is not None])
    for whole, cut in zip(*gradients, strict=True):
        torch.testing.assert_close(cut, whole, rtol=1e-5, atol=1e-7)


@pytest.mark.behaviour("first-step-finite-told")
def test_a_bad_step_changes_no_weight_and_is_told_once(tmp_path: Path) -> None:
    class Poisoned(ToyProject):
        poison_from = 5

        def losses(self, model: nn.Module, batch: Any, ctx: Any) -> Any:
            if self._seen == 7:
                self.poison_from = 10**9  # two bad steps, then good ones again
            return super().losses(model, batch, ctx)

    toy = ToyRun(tmp_path, Poisoned(), epochs=1, log_every=3)
    assert toy.train() == "finished"
    steps, skipped = read_series(tmp_path / "metrics" / "steps", "skipped")
    assert steps[skipped == 1].tolist() == [5, 6]
    assert all(bool(torch.isfinite(p).all()) for p in toy.model.parameters())
    assert toy.trainer.state.step == 8
    events = (tmp_path / "events.jsonl").read_text().splitlines()
    alerts = [line for line in events if '"alert"' in line and '"nonfinite"' in line]
    assert len(alerts) == 2
    assert "step 5 of epoch 1" in alerts[0]
    assert "finite again" in alerts[1]


@pytest.mark.parametrize("bad", ["loss", "gradient"])
def test_a_loss_or_a_gradient_that_is_bad_by_itself_is_enough(tmp_path: Path, bad: str) -> None:
    """A constant that is not finite has no gradient, and the root of nought has an infinite one."""

    class HalfBad(ToyProject):
        def losses(self, model: nn.Module, batch: Any, ctx: Any) -> Any:
            losses = dict(super().losses(model, batch, ctx))
            root = (0 * model.get_parameter("3.bias").sum()).sqrt()
            total = losses["all"].total + (math.nan if bad == "loss" else root)
            return losses | {"all": Loss(total, losses["all"].count)}

    toy = ToyRun(tmp_path, HalfBad())
    before = [parameter.detach().clone() for parameter in toy.model.parameters()]
    *_, loss, _, _, norm, skipped = toy.trainer.one_step().tolist()
    assert (math.isfinite(loss), math.isfinite(norm), skipped) == (bad != "loss", bad != "gradient", 1)
    assert all(map(torch.equal, toy.model.parameters(), before))
    toy.trainer.flush()
    means = toy.trainer.sums.means({"all": 1.0, "rare": 0.5}, "pooled")
    assert means == {"loss": None, "all": None, "rare": None}


@pytest.mark.behaviour("first-step-finite-told")
def test_too_many_bad_steps_end_the_run_and_keep_the_checkpoint(tmp_path: Path) -> None:
    class Poisoned(ToyProject):
        poison_from = 12  # in the second epoch

    toy = ToyRun(tmp_path, Poisoned(), log_every=2, max_bad_steps=4)
    with pytest.raises(Diverged, match="4 steps in a row were not finite, up to step 16"):
        toy.train()
    saved = torch.load(tmp_path / "checkpoints" / "last.pt", weights_only=True)
    assert saved["state"]["step"] == 8
    assert all(bool(torch.isfinite(value).all()) for value in saved["model"].values())


@pytest.mark.behaviour("weights-finite-never-saved")
def test_weights_that_a_rate_threw_away_are_never_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps after it are bad, but fewer than end the run before its epoch does and is saved."""
    monkeypatch.setattr(limits, "LARGEST_SCALE", 1e301)  # as a config's own rate may be
    toy = ToyRun(tmp_path, log_every=2)
    launch.send(toy.run, SetLrScale(attempt=1, scale=1e300, at_step=12))
    with pytest.raises(
        Diverged, match="the weights are not finite at step 16; the last good checkpoint is kept"
    ) as told:
        toy.train()
    assert f"`cockpit fork {tmp_path.name} --epoch best` goes back" in str(told.value)
    for name in ("last.pt", "best.pt"):
        saved = torch.load(tmp_path / "checkpoints" / name, weights_only=True)
        assert saved["state"]["step"] == 8
        assert all(bool(torch.isfinite(value).all()) for value in saved["model"].values())


def test_a_head_that_no_sample_of_a_batch_measures_has_no_loss_there(tmp_path: Path) -> None:
    """Nought would look like a perfect one, and halve its mean: one sample in eight belongs to the rare head."""
    toy = ToyRun(tmp_path, epochs=1, batch_size=4)
    source, order = toy.data.train, toy.trainer.schedule.order
    rare = [int(source.batch(order.indices(0, step), None)["rare"].sum()) for step in range(64)]
    assert toy.train() == "finished"
    steps, losses = read_series(toy.run.steps, "rare")
    assert steps.tolist() == [step for step, count in enumerate(rare) if count]
    assert 0 < len(steps) < 64
    assert (losses > 0).all()
    steps, _ = read_series(toy.run.steps, "all")
    assert len(steps) == 64


class SyncSpy(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes every operation that makes the host wait for the device's result, and those named `exactly`."""

    WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "item", "equal", "is_nonzero")

    def __init__(self, *exactly: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._exactly = exactly
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in self._exactly or any(name.startswith(waiting) for waiting in self.WAITING):
            self.seen.append(name)
        return func(*args, **(kwargs or {}))


@pytest.fixture
def transfers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the functions called that wait for a copy between host and device without passing the dispatcher."""
    called: list[str] = []

    def spy_on(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def spied(*args: Any, **kwargs: Any) -> Any:
            called.append(name)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, spied)

    for name in ("tolist", "numpy", "cpu", "item", "new_tensor", "__bool__", "__float__", "__int__", "__index__"):
        spy_on(Tensor, name)
    spy_on(torch, "tensor")
    set_item = Tensor.__setitem__

    def spied_set_item(tensor: Tensor, place: Any, value: Any) -> None:
        if not isinstance(value, Tensor) and tensor[place].ndim == 0:  # a larger part is filled on the device
            called.append("__setitem__")
        set_item(tensor, place, value)

    monkeypatch.setattr(Tensor, "__setitem__", spied_set_item)
    return called


def test_no_step_waits_for_the_device_outside_logging(tmp_path: Path, transfers: list[str]) -> None:
    """The loop's own steps between two flushes, the batch gathered and the row logged, with every wait noted."""
    toy = ToyRun(tmp_path, log_every=100)
    trainer = toy.trainer

    def steps(count: int) -> None:
        for number in range(count):
            batch = toy.data.train.batch(trainer.schedule.order.indices(0, number), step_generator(7, 0, number))
            trainer.step_log.add(
                trainer.step(batch, trainer.schedule.context(), 1e-3),
                step=number,
                epoch=1,
                lr=1e-3,
                data_wait=(0.0, 0.0),
            )

    steps(2)  # the optimizer makes its state on the first step
    transfers.clear()
    with SyncSpy() as spy:
        steps(5)
    assert spy.seen == []
    assert transfers == []
    trainer.flush()
    assert transfers == ["cpu", "numpy"]  # the spy sees: logging is one transfer


def test_the_controls_step_never_waits_for_the_device(tmp_path: Path, transfers: list[str]) -> None:
    """The real project's batches and losses, in the engine's step.

    Nor do they say `tensor[:, (1, 2)]`, whose numbers go to a GPU each time, unseen by all but the driver.
    """
    settings = ControlsConfig.model_validate(
        {
            "project": "controls",
            "data": {"path": str(tmp_path / "recordings")},
            "model": {"d_model": 16, "nhead": 2, "num_layers": 1, "dim_feedforward": 16},
        }
    )
    for recording in random_recordings(sessions=2, frames=120, seed=0):
        write_recording(tmp_path / "recordings" / f"{recording.name}.npz", recording)
    project = ControlsProject()
    data = project.data(settings, torch.device("cpu"))
    model = project.model(settings, data)
    heads = [head.name for head in SPEC.heads]
    optimizer = torch.optim.AdamW(project.param_groups(model, 1e-4), fused=True)
    precision = Precision("off", torch.device("cpu"))
    step = TrainStep(project, model, optimizer, precision, heads)
    step.set_weights(settings.loss_weights.model_dump())
    step.enter_stage(frozenset(heads), 1.0)
    ctx = Context(0, 0, 0.0, "train", frozenset(heads))

    def steps(count: int) -> None:
        for number in range(count):
            step(data.train.batch(torch.arange(8) + number, step_generator(1, 0, number)), ctx, 1e-3)

    steps(2)
    transfers.clear()
    with SyncSpy("index") as spy:
        steps(3)
    assert spy.seen == []
    assert transfers == []


@pytest.mark.parametrize(("native", "name"), [(True, "bf16"), (False, "fp16")])
def test_a_gpu_that_only_emulates_bf16_computes_in_fp16(
    monkeypatch: pytest.MonkeyPatch, native: bool, name: str
) -> None:
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: native or including_emulation)
    monkeypatch.setattr(torch.amp, "GradScaler", lambda *arguments, **options: None)
    assert Precision("auto", torch.device("cuda")).name == name


@pytest.mark.parametrize(
    ("scaled", "loss", "steps", "alerts"),
    [(True, 0.5, 3, 0), (True, float("nan"), 3, 1), (True, 0.5, 16, 1), (False, 0.5, 3, 1)],
)
def test_overflows_of_a_settling_loss_scale_are_no_alarm(
    tmp_path: Path, scaled: bool, loss: float, steps: int, alerts: int
) -> None:
    run = RunDirectory(tmp_path)
    run.make()
    events = EventWriter(run.events, 1)
    room = Room(run, events, CommandListener(run, 1, events))
    log = StepLog(run, room, ["all"], EpochSums(["all"], ["all"]), 8, scaled=scaled)
    bad_steps = 0
    for step in range(steps):
        log.add(torch.tensor([4.0, loss, loss, float("inf"), 1.0]), step=step, epoch=1, lr=0.1, data_wait=(0.0, 0.0))
        bad_steps = log.flush(bad_steps)
    assert bad_steps == steps
    assert run.events.read_text().count('"nonfinite"') == alerts


def test_steps_whose_log_was_refused_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunDirectory(tmp_path)
    run.make()
    events, sums = EventWriter(run.events, 1), EpochSums(["all"], ["all"])
    log = StepLog(run, Room(run, events, CommandListener(run, 1, events)), ["all"], sums, 8)
    for step in range(2):
        log.add(torch.tensor([4.0, 6.0, 0.5, 1.0, 0.0]), step=step, epoch=1, lr=0.1, data_wait=(0.0, 0.0))

    def refuse(*_: Any) -> None:
        monkeypatch.undo()
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(StepWriter, "append", refuse)
    with pytest.raises(OSError, match="Input/output"):
        log.flush(0)
    log.flush(0)
    assert sums.numbers.tolist() == [12.0, 8.0, 1.0, 2.0]
    assert read_series(run.steps, "all")[1].tolist() == [1.5, 1.5]


def test_bf16_is_off_on_a_processor_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = tmp_path / "cpuinfo"
    for text, has in (("flags : avx512f avx512_bf16", True), ("flags : amx_bf16", True), ("flags : avx2 sse", False)):
        flags.write_text(text)
        assert cpu_has_bf16(flags) is has
    assert cpu_has_bf16(tmp_path / "absent")
    monkeypatch.setattr(precisions, "cpu_has_bf16", lambda: False)
    assert Precision("bf16", torch.device("cpu")).name == "off"
    assert "training.amp bf16 is off" in capsys.readouterr().out
    monkeypatch.setattr(precisions, "cpu_has_bf16", lambda: True)
    assert Precision("bf16", torch.device("cpu")).name == "bf16"
