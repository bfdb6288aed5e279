"""A model that two ranks hold together (fsdp2): what it delivers, and its checkpoints in shards."""

from __future__ import annotations

import errno
import math
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
from torch.nn import functional

from cockpit.core.runs.prune import Surplus, remove
from engines.basics.errors import DataError, UserError
from engines.basics.reading import read_json
from engines.contract import commands as cmd
from engines.contract import spec as specs
from engines.runs.bundle import write_bundle
from engines.runs.fork import prepare_fork
from engines.runs.saved import read_saved, shard_files
from engines.runs.unbundle import unbundle
from engines.training import checkpoint
from engines.training.ranks import Together
from engines.training.sharding import refuse_shared
from tests.engines.conftest import LiveRun, tensors
from tests.support.ranks import logged, loop_alone, trained

SHORT = ("training.epochs=3", "training.steps_per_epoch=4", "training.batch_size=16")
FSDP2 = "launch.strategy=fsdp2"
Runs = Callable[..., LiveRun]


@pytest.fixture(autouse=True)
def _no_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rank draws its own."""
    monkeypatch.setattr(functional, "dropout", lambda values, *rest: values)


def stopped(live: LiveRun, count: int) -> None:
    live.send(cmd.Stop(attempt=1, at_step=6))
    assert trained(live.run, count, work=loop_alone) == [3, *[0] * (count - 1)], live.log()


@pytest.mark.behaviour("shards-deliver")
def test_ranks_that_hold_a_model_together_deliver_what_one_process_does(new_run: Runs) -> None:
    one, two = new_run(*SHORT), new_run(*SHORT, FSDP2)
    assert trained(one.run, 1) == [0]
    assert trained(two.run, 2) == [0, 0], two.log()
    best, ours = tensors(one.run.best), tensors(two.run.best)
    assert {name for name in ours if not name.startswith("/ranks/")} == best.keys()
    for name in best:
        if not name.startswith("/random/"):
            torch.testing.assert_close(ours[name], best[name], rtol=1e-4, atol=1e-5, msg=name)
    exported = [sorted(path.name for path in live.run.export.iterdir()) for live in (one, two)]
    assert exported[0] == exported[1]
    assert read_json(one.run.report, dict[str, Any]).keys() == read_json(two.run.report, dict[str, Any]).keys()


@pytest.mark.behaviour("shards-are-safe")
def test_shards_are_read_without_code_and_damage_is_said(
    new_run: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = new_run(*SHORT, FSDP2)
    stopped(live, 2)
    run = live.run
    first, second = shard_files(run.last)
    assert [file.name for file in sorted(first.parent.iterdir())] == [first.name, second.name]
    whole = tensors(run.last)
    halves = [load_file(file) for file in (first, second)]
    name = next(name for name, half in halves[1].items() if half.numel())
    part, _, rest = name.partition(".")
    place = f"/model/{rest}" if part == "model" else f"/optimizer/state/{rest.replace('.', '/')}"
    assert torch.equal(whole[place], torch.cat([half[name] for half in halves]))

    write_bundle(run, tmp_path / "a.tar", {}, last=True)
    with monkeypatch.context() as patch:
        patch.setenv("COCKPIT_RUNS", str(tmp_path / "elsewhere"))
        assert tensors(unbundle(tmp_path / "a.tar").last).keys() == whole.keys()
    copy = tmp_path / "copy" / run.last.name
    shutil.copytree(run.checkpoints, copy.parent)
    fork, _ = prepare_fork(run, ["training.lr=1e-4"])
    remove([Surplus(run, run.last, 1, None)])
    assert not first.parent.exists()
    assert tensors(fork.fork).keys() == whole.keys()

    cut = copy.parent / first.parent.name / second.name
    with safe_open(cut, framework="pt") as file:
        about = file.metadata()
    save_file({key: value for key, value in halves[1].items() if key != name}, cut, about)
    with pytest.raises(DataError, match=r"does not have the shards that last.pt names"):
        checkpoint.load(copy)
    content = torch.load(copy, weights_only=True)
    content["shards"]["files"][cut.name] = cut.stat().st_size
    torch.save(content, copy)
    with pytest.raises(DataError, match=f"lacks a part of {name}"):
        checkpoint.load(copy)
    content["shards"]["folder"] = "../elsewhere"
    torch.save(content, copy)
    for read in (checkpoint.load, read_saved):
        with pytest.raises(DataError, match="names a folder that no checkpoint has"):
            read(copy)


@pytest.mark.behaviour("shards-on-a-full-disk")
def test_shards_that_a_rank_cannot_write_are_gathered(new_run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    write = HuggingFaceStorageWriter.write_data

    def full_on_rank_1(*given: Any) -> Any:
        if os.environ["RANK"] == "1":
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(*given)

    monkeypatch.setattr(HuggingFaceStorageWriter, "write_data", full_on_rank_1)
    live = new_run(*SHORT, FSDP2)
    stopped(live, 2)
    assert read_saved(live.run.last).shards == ""
    assert read_saved(live.run.last).step == 6
    assert not list(live.run.checkpoints.glob("shards_*"))


def test_a_step_that_is_not_finite_on_one_rank_is_skipped_by_all(
    new_run: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = new_run(*SHORT, FSDP2)
    spiral = specs.load("spiral.project:Spiral")
    losses = spiral.losses

    def infinite_on_rank_1(self: Any, model: Any, batch: Any, ctx: Any) -> Any:
        factor = math.inf if ctx.step == 3 and os.environ["RANK"] == "1" else 1.0
        found = losses(self, model, batch, ctx)
        return {name: replace(loss, total=loss.total * factor) for name, loss in found.items()}

    gathered, calls = Together.gathered, [0]

    def few(self: Together, value: Any) -> list[Any]:
        calls[0] += 1
        assert calls[0] <= 8, "the hosts wait for each other in each step"
        return gathered(self, value)

    monkeypatch.setattr(spiral, "losses", infinite_on_rank_1)
    monkeypatch.setattr(Together, "gathered", few)
    stopped(live, 2)
    assert list(logged(live.run)["skipped"]) == [0, 0, 0, 1, 0, 0]
    assert all(tensor.isfinite().all() for name, tensor in tensors(live.run.last).items() if name.startswith("/model/"))


def test_a_parameter_of_two_blocks_is_refused() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
    refuse_shared(model, [model[0], model[1]])
    model[2].weight = model[0].weight
    refuse_shared(model, ())
    with pytest.raises(UserError, match=r"2.weight is in two of the project's blocks"):
        refuse_shared(model, [model[0], model[1]])


def test_what_cannot_be_combined_with_fsdp2_is_said(new_run: Runs) -> None:
    for name in ("compile", "graph"):
        with pytest.raises(UserError, match=f"fsdp2 cannot be used with training.{name}"):
            new_run(FSDP2, f"training.{name}=true")
