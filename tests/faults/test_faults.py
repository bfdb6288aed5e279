"""A handful of the faults of docs/reliability.md, and that each kind of loss is noticed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engines.contract.rundir import RunDirectory
from tests.faults.suite import QUICK, environment
from tests.faults.verdicts import Verdict


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working folder of the suite after its short form."""
    work = tmp_path_factory.mktemp("faults")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tests.faults", "--quick", "--projects", "controls", "--workers", "1",
         "--work", str(work)],
        env=environment(work), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return work


@pytest.fixture
def reference(work: Path) -> RunDirectory:
    return RunDirectory(work / "references" / "controls" / "runs" / "run")


@pytest.mark.behaviour("killed-moment-also-inside", "full-disk-takes-nothing")
def test_faults_are_injected_and_nothing_is_lost(work: Path) -> None:
    results = [json.loads(line) for line in (work / "results.0.jsonl").read_text().splitlines()]
    assert sorted(one["kind"] for one in results) == sorted(QUICK)
    assert all(one["injected"] for one in results)
    assert [one["lost"] for one in results] == [[]] * len(QUICK)


def other_weight(run: RunDirectory) -> None:
    content = torch.load(run.last, weights_only=True)
    next(iter(content["model"].values())).view(-1)[0] += 1
    torch.save(content, run.last)


def drop_epoch(run: RunDirectory) -> None:
    lines = run.events.read_bytes().splitlines(keepends=True)
    run.events.write_bytes(b"".join(line for line in lines if b'"type":"epoch"' not in line))


def cut_metrics(run: RunDirectory) -> None:
    run.train_metrics.write_bytes(run.train_metrics.read_bytes().splitlines(keepends=True)[0])


def cut_best(run: RunDirectory) -> None:
    content = run.best.read_bytes()
    run.best.unlink()  # it may be the same file as last.pt
    run.best.write_bytes(content[:-1000])


def lose_best(run: RunDirectory) -> None:
    run.best.unlink()


def lose_review(run: RunDirectory) -> None:
    next(run.review.glob("scores-*.npy")).write_bytes(b"")


DAMAGE: dict[str, tuple[Callable[[RunDirectory], None], str]] = {
    "a bit of a weight": (other_weight, "last.pt differs in /model/"),
    "an epoch of the table": (drop_epoch, "events.jsonl lost what it held"),
    "a line of the metrics": (cut_metrics, "epoch 2 is in the table and not in train_metrics.jsonl"),
    "half of the best": (cut_best, "best.pt cannot be read"),
    "all of the best": (lose_best, "best.pt, saved at step"),
    "an array of the review": (lose_review, "scores-"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_each_loss_is_noticed(what: str, reference: RunDirectory, tmp_path: Path) -> None:
    damage, said = DAMAGE[what]
    run = RunDirectory(tmp_path / "run")
    shutil.copytree(reference.path, run.path)
    whole = Verdict()
    promises = whole.kept(run)
    whole.still(promises)
    whole.equal(run, reference, delivered=False)
    assert whole.lost == []
    damage(run)
    verdict = Verdict()
    verdict.kept(run)
    verdict.still(promises)
    verdict.equal(run, reference, delivered=False)
    assert any(said in sentence for sentence in verdict.lost), verdict.lost
