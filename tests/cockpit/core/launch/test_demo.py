"""The demo makes its data only when it is not there, never beside another demo, and never over a person's own."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from cockpit.core.launch.demo import Demo
from engines.basics import yaml12
from engines.basics.errors import UserError
from engines.contract import spec as specs
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.store import list_runs
from tests.support.fake_run import FakeRun


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[RunDirectory]:
    """An empty folder to work in, and the runs that were started from it; no engine really runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    runs: list[RunDirectory] = []

    def start(run: RunDirectory) -> int:
        runs.append(run)
        return 1

    monkeypatch.setattr(launch, "start", start)
    return runs


def put(folder: Path, mark: object) -> None:
    folder.mkdir(parents=True)
    (folder / "demo.json").write_text(mark if isinstance(mark, str) else json.dumps(mark))


def order(run: RunDirectory) -> object:
    tree, _ = yaml12.read(run.config.read_text())
    return tree


def test_absent_data_is_made_where_the_config_looks_for_it(started: list[RunDirectory], tmp_path: Path) -> None:
    run = Demo().data_run()
    assert [run] == started
    assert run is not None
    path = str(tmp_path / "data" / "controls_demo")
    assert order(run) == {"project": "controls", "task": "make", "arguments": {"out": path}}
    assert (run.info.kind, run.info.engine, run.info.title) == ("task", "engines.task", f"demo data in {path}")


@pytest.mark.parametrize(
    ("mark", "made"),
    [
        ({"complete": True}, False),
        ({"complete": False}, True),
        ({}, True),
        ([], True),
        ("{", True),
        ("", True),
    ],
)
def test_data_is_ready_when_its_mark_says_complete(
    started: list[RunDirectory], tmp_path: Path, mark: object, made: bool
) -> None:
    put(tmp_path / "data" / "controls_demo", mark)
    assert (Demo().data_run() is not None) is made
    assert len(started) == made


def test_an_empty_folder_is_no_data(started: list[RunDirectory], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert Demo(overrides=["data.path=empty"]).data_run() is not None


def test_a_persons_own_data_is_left_to_the_training(started: list[RunDirectory], tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "session.npz").write_text("")
    (tmp_path / "file").write_text("")
    assert Demo(overrides=["data.path=own"]).data_run() is None
    assert Demo(overrides=["data.path=file"]).data_run() is None
    assert started == []


def test_a_second_demo_follows_the_run_that_makes_the_data(started: list[RunDirectory], tmp_path: Path) -> None:
    demo = Demo()
    maker = FakeRun(tmp_path / "runs", "controls-20261127-201400-amber", kind="task").begin()
    info = maker.run.info
    info.title = f"demo data in {demo.data_path}"
    maker.run.write_info(info)
    FakeRun(tmp_path / "runs", "controls-20261127-201500-oak").run.info_file.write_text("damaged")
    with maker.locked():
        found = demo.data_run()
        assert found is not None
        assert found.path == maker.run.path
        other = Demo(overrides=["data.path=elsewhere"]).data_run()
        assert other is not None
        assert other.path != maker.run.path
    assert started == [other]
    maker.end("failed", exit_code=1)
    again = demo.data_run()
    assert again is not None
    assert again.path != maker.run.path


def test_the_training_is_the_demo_config_with_the_overrides(started: list[RunDirectory], tmp_path: Path) -> None:
    run = Demo(overrides=["training.epochs=3", "data.path=own"]).start()
    assert started == [run]
    assert (run.info.kind, run.info.title, run.info.label) == ("training", "controls_demo.yaml", "demo")
    tree = order(run)
    assert isinstance(tree, dict)
    assert tree["training"]["epochs"] == 3
    assert tree["data"]["path"] == str(tmp_path / "own")
    assert tree["model"]["d_model"] < 256


def test_a_config_of_the_current_folder_comes_first(started: list[RunDirectory], tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "controls_demo.yaml").write_text("project: controls\ndata: {path: mine}\n")
    assert Demo().data_path == tmp_path / "mine"


@pytest.mark.parametrize(
    ("project", "overrides", "message"),
    [
        ("contrls", [], "did you mean 'controls'"),
        ("controls", ["training.epohcs=3"], "training.epohcs is not a known key"),
    ],
)
def test_mistakes_are_told_before_anything_is_started(
    started: list[RunDirectory], project: str, overrides: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        Demo(project, overrides)
    assert started == []
    assert list_runs() == []


def test_a_project_without_a_demo_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = specs.Spec(name="bare", title="", config="", project="", columns=(), heads=())
    monkeypatch.setattr(specs, "find", lambda name: bare)
    with pytest.raises(UserError, match="The project 'bare' has no demo"):
        Demo("bare")


def test_without_a_name_it_is_the_only_demo_or_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(name: str, *, first: bool = False, demo: str | None = "controls_demo.yaml") -> specs.Spec:
        return dataclasses.replace(specs.find("controls"), name=name, demo=demo, demo_first=first)

    def chosen(*found: specs.Spec | specs.BrokenSpec) -> str:
        monkeypatch.setattr(specs, "installed", lambda: {spec.name: spec for spec in found})
        return Demo().project

    broken, without = specs.BrokenSpec("broken", "it fails"), make("without", demo=None, first=True)
    assert chosen(make("one"), broken, without) == "one"
    assert chosen(make("one"), make("two", first=True)) == "two"
    with pytest.raises(UserError, match="choose one: `cockpit demo one` or `cockpit demo two`"):
        chosen(make("one"), make("two"))
    with pytest.raises(UserError, match="No installed project has a demo"):
        chosen(without)


def test_a_demo_config_that_is_missing_says_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    named = specs.Spec(
        name="named",
        title="",
        config="",
        project="",
        columns=(),
        heads=(),
        tasks={"make": specs.Task("m:f", "")},
        demo="absent.yaml",
    )
    monkeypatch.setattr(specs, "find", lambda name: named)
    with pytest.raises(UserError, match=r"absent\.yaml is neither in .*configs nor in .*configs"):
        Demo("named")
