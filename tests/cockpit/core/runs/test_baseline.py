"""The pinned run of a project: kept beside the runs, changed by several at once, and gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from cockpit.core.runs import baseline, labels
from cockpit.core.runs.baseline import FILE, Pins, Versus
from cockpit.core.runs.fleet import Fleet
from engines.basics.errors import DataError, UserError
from tests.support.compared import configured
from tests.support.fake_run import FakeRun, epoch


def test_one_per_project_is_pinned_and_no_run_of_the_list(tmp_path: Path) -> None:
    amber, birch = configured(tmp_path, "amber", 0.5), configured(tmp_path, "birch", 0.6)
    other = FakeRun(tmp_path, "melee-20261127-201400-cedar", project="melee")
    for fake in (amber, other, birch):
        baseline.pin(tmp_path, fake.run)
    assert baseline.pinned(tmp_path) == {"melee": other.id, "controls": birch.id}
    assert baseline.is_pinned(tmp_path, "controls", birch.run.path)
    assert not baseline.is_pinned(tmp_path, "controls", amber.run.path)
    assert {row.id for row in Fleet(tmp_path).poll().changed} == {amber.id, birch.id, other.id}
    baseline.unpin(tmp_path, "melee")
    assert baseline.pinned(tmp_path) == {"controls": birch.id}
    elsewhere = configured(tmp_path / "far", "dune", 0.7)
    baseline.pin(tmp_path, elsewhere.run)
    found = baseline.read_baseline(tmp_path, "controls")
    assert found is not None
    assert found.run is not None
    assert (found.run.score, found.name, found.problem) == (0.7, "dune", "")
    with pytest.raises(UserError, match="expected a training"):
        baseline.pin(tmp_path, FakeRun(tmp_path, "controls-20261128-201400-task", kind="task").run)


def test_a_damaged_list_is_said_and_never_overwritten(tmp_path: Path) -> None:
    fake, pins = configured(tmp_path, "amber", 0.5), Pins(tmp_path)
    for damage in ("[", '{"controls": 3}', " " * (baseline.LARGEST + 1)):
        (tmp_path / FILE).write_text(damage)
        with pytest.raises(DataError, match=r"\.baselines\.json"):
            baseline.pin(tmp_path, fake.run)
        assert (tmp_path / FILE).read_text() == damage
        assert not pins.poll()
        assert Versus(fake.run).poll() == (None, "")


def test_what_a_run_is_compared_with_is_followed(tmp_path: Path) -> None:
    base, one = configured(tmp_path, "amber", 0.5, label="slate"), configured(tmp_path, "birch", 0.6)
    versus, pins = Versus(one.run), Pins(tmp_path)
    assert versus.poll() == (None, "")
    baseline.pin(tmp_path, base.run)
    assert pins.poll()
    assert pins.paths == {base.run.path}
    assert not pins.poll()
    assert versus.poll() == (0.5, "slate")
    assert Versus(base.run).poll() == (None, "baseline")
    with base.locked():
        base.say(epoch(2, score=0.7, best=True))
        assert Versus(one.run).poll() == (0.7, "slate")
    shutil.rmtree(base.run.path)
    assert versus.poll() == (None, "baseline amber is gone")
    fresh = configured(tmp_path, "cedar")
    baseline.pin(tmp_path, fresh.run)
    assert versus.poll() == (None, "baseline cedar has no score")


@pytest.mark.behaviour("words-written-at-once")
def test_words_written_at_once_lose_none(tmp_path: Path) -> None:
    """Of many threads with descriptors of their own, as of processes."""
    run = configured(tmp_path, "amber", 0.5).run
    changes: list[Callable[[], object]] = [partial(labels.tag, run, [f"t{n}"]) for n in range(12)]
    changes += [partial(labels.describe, run, label="label"), partial(labels.describe, run, notes="notes")]
    with ThreadPoolExecutor(14) as pool:
        for done in [pool.submit(change) for change in changes]:
            done.result()
    info = run.info
    assert (info.label, info.notes, sorted(info.tags)) == ("label", "notes", sorted(f"t{n}" for n in range(12)))
