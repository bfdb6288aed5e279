"""A run keeps the definitions that it began with: an older one, its resume and its replay find the same numbers."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from engines.compare import compare
from engines.contract.rundir import RunInfo
from engines.runs import launch
from engines.runs.fork import prepare_fork
from projects.controls.config import ControlsConfig
from projects.controls.editions import NEWEST, gap, scoring
from projects.controls.recordings import write_recording
from projects.controls.spec import SPEC
from tests.engines.conftest import LiveRun, effective_table
from tests.engines.test_replay import replayed
from tests.projects.controls.sessions import random_session
from tests.projects.controls.test_export_stage import CONFIG


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LiveRun:
    """A run of sessions with a few presses of each control, not yet started."""
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    for k in range(4):
        write_recording(tmp_path / "recordings" / f"s{k}.npz", random_session(f"s{k}", 90, k))
    (tmp_path / "config.yaml").write_text(CONFIG)
    return LiveRun(launch.prepare_training(tmp_path / "config.yaml", [f"data.path={tmp_path / 'recordings'}"]))


def f1s(live: LiveRun) -> list[float | None]:
    return [row["validation"]["inv_f1"] for row in effective_table(live.run)]


def test_the_newest_rules_are_those_of_new_runs() -> None:
    assert (SPEC.edition, NEWEST) == (NEWEST, 2)
    cfg = ControlsConfig.model_validate({"project": "controls", "data": {"path": "x"}})
    assert (scoring(cfg, 1).least, scoring(cfg, NEWEST).least) == (1, 20)
    assert (gap(1), gap(NEWEST)) == (0, 30)
    assert msgspec.json.decode(b'{"id": "a", "project": "controls"}', type=RunInfo).edition == 1


def test_a_new_run_counts_no_control_with_few_positives(ready: LiveRun) -> None:
    assert ready.run.info.edition == NEWEST
    assert ready.here() == "finished", ready.log()
    assert set(f1s(ready)) == {None}
    copy = replayed(ready)
    assert copy.run.info.edition == NEWEST
    assert compare(ready.run, copy.run)["first_epoch"] is None


def test_an_older_run_and_its_replay_count_all(ready: LiveRun) -> None:
    """Its record says nothing of editions. A fork of it is a new run."""
    info = msgspec.json.decode(ready.run.info_file.read_bytes())
    assert info.pop("edition") == NEWEST
    ready.run.info_file.write_bytes(msgspec.json.encode(info))
    assert ready.here() == "finished", ready.log()
    assert None not in f1s(ready)
    copy = replayed(ready)
    found = compare(ready.run, copy.run)
    assert (found["first_step"], found["first_epoch"], found["different"]) == (None, None, [])
    assert f1s(copy) == f1s(ready)
    fork, _ = prepare_fork(ready.run, ["training.epochs=9"])
    assert fork.info.edition == NEWEST
