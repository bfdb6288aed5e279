"""`cockpit compare`, `tag` and `baseline`: the table, the same facts as JSON and Markdown, and sentences for slips."""

from __future__ import annotations

import json
import shutil
import statistics
from pathlib import Path

import pytest

from tests.cockpit.cli.conftest import Cockpit
from tests.support.compared import configured
from tests.support.fake_run import CONFIG, FakeRun


def test_two_runs_are_compared_as_tables_and_as_json(cockpit: Cockpit, runs: Path) -> None:
    first = FakeRun(runs, "controls-20261127-201400-amber").begin().started().epochs(1, 2, 3, best=3).end("finished")
    second = FakeRun(runs, "controls-20261127-211400-birch", label="K=60", created=2e9).begin().started()
    second.epochs(1, best=1).run.config.write_text(CONFIG.replace("look: 0.5", "look: 0.75"))
    lines = cockpit("compare", first.id, "last").stdout.splitlines()
    assert lines[0].split()[:3] == ["Run", "Score", "look"]
    assert lines[2].split()[:3] == ["amber", "0.300", "0.5"]
    assert lines[3].split()[:3] == ["K=60", "0.100", "0.75"]
    at = next(place for place, line in enumerate(lines) if line.startswith("metric"))
    assert lines[at].split() == ["metric", "amber", "K=60"]
    assert lines[at + 2].split() == ["score", "0.3000", "★", "ep", "3", "0.1000", "ep", "1"]
    assert next(line.split() for line in lines if line.startswith("loss_weights")) == [
        "loss_weights.look",
        "0.5",
        "0.75",
    ]
    assert lines[-1] == "5 keys are equal"
    facts = json.loads(cockpit("compare", first.id, "last", "--json").stdout)
    assert [run["epochs"] for run in facts["runs"]] == [3, 1]
    assert facts["metrics"][0]["best"] == [first.id]
    assert facts["metrics"][0]["values"][second.id]["value"] == 0.1
    assert facts["config"] == [{"key": "loss_weights.look", "values": {first.id: 0.5, second.id: 0.75}}]
    assert facts["equal_keys"] == 5
    assert facts["settings"] == ["loss_weights.look"]
    assert [line["values"]["train.loss"] for line in facts["lines"]] == pytest.approx([1 / 3, 1.0])


def test_many_runs_seeds_columns_order_and_markdown(cockpit: Cockpit, runs: Path) -> None:
    scores = {(layers, seed): 0.3 + layers / 10 + seed**2 / 100 for layers in (0, 2, 6) for seed in range(4)}
    for n, ((layers, seed), score) in enumerate(scores.items()):
        configured(runs, "amber", score, label=f"layers={layers} seed={seed}", at=n, layers=layers, seed=seed)
    broken = FakeRun(runs, "controls-20261128-100000-moss")
    broken.run.info_file.write_text("{garbage")
    facts = json.loads(cockpit("compare", "--filter", "layers", "--json", "--columns", "score,trloss").stdout)
    assert [line["name"] for line in facts["lines"]] == ["layers=6", "layers=2", "layers=0"]
    assert facts["columns"] == ["score", "train.loss"]
    assert "metrics" not in facts  # of more than eight runs
    for line, layers in zip(facts["lines"], (6, 2, 0), strict=True):
        own = [score for (each, _), score in scores.items() if each == layers]
        deviation = statistics.pstdev(own) * (4 / 3) ** 0.5
        assert line["values"]["score"] == pytest.approx({"mean": sum(own) / 4, "sd": deviation, "n": 4})
    lines = cockpit("compare", "--filter", "layers", "--sort", "layers").stdout.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["layers=0", "layers=2", "layers=6"]
    assert lines[2].split()[1:4] == ["×4", "0.335", "±0.040"]
    turned = cockpit("compare", "--filter", "layers=6", "--sort=-score", "--each", "--columns", "score")
    assert [line.split()[2] for line in turned.stdout.splitlines()[2:6]] == ["0.900", "0.910", "0.940", "0.990"]
    markdown = cockpit("compare", "--filter", "layers", "--markdown", "--columns", "score").stdout.splitlines()
    assert markdown[:3] == [
        "| Run | Score | layers | seed |",
        "| --- | --- | --- | --- |",
        "| layers=6 ×4 | 0.935 ±0.040 | 6 | 4 values |",
    ]
    assert "No column is called 'f1'" in cockpit("compare", "--filter", "layers", "--sort", "f1").stderr
    assert "unterminated character set" in cockpit("compare", "--filter", "/[/").stderr


def test_one_run_or_the_same_twice_cannot_be_compared(cockpit: Cockpit, runs: Path) -> None:
    fake = FakeRun(runs).begin().started().end("finished")
    for names in ((), (fake.id,), (fake.id, "last")):
        answer = cockpit("compare", *names)
        assert answer.returncode == 2
        assert "compare needs two different trainings or more; got" in answer.stderr


def test_tags_are_added_shown_filtered_and_taken_off(cockpit: Cockpit, runs: Path) -> None:
    amber, birch = configured(runs, "amber", 0.5, at=1), configured(runs, "birch", 0.6, at=2)
    assert cockpit("tag", "amber", "good", "base").stdout == "good\nbase\n"
    assert cockpit("tag", "birch", "goodbye").stdout == "goodbye\n"
    assert cockpit("tag", "amber", "GOOD", "x\x1b[2J").stdout == "good\nbase\nx\n"
    assert amber.run.info.tags == ["good", "base", "x"]

    def found(text: str) -> list[str]:
        return [run["id"] for run in json.loads(cockpit("ls", "--json", "--filter", text).stdout)]

    assert found("tag:good") == [amber.id]
    assert found("tag:goodbye") == [birch.id]
    assert found("good") == [birch.id, amber.id]
    assert found("tag:goo") == []
    assert cockpit("ls").stdout.splitlines()[0].split()[-1] == "tags"
    assert cockpit("tag", "amber", "good", "--remove").stdout == "base\nx\n"
    assert cockpit("tag", "amber", "--remove").stdout == ""
    assert cockpit("tag", "amber").stdout == ""
    assert "at most 40 fit" in cockpit("tag", "amber", "x" * 41).stderr
    assert "at most 20 fit" in cockpit("tag", "amber", *(f"t{n}" for n in range(21))).stderr
    assert amber.run.info.tags == []


def test_a_pinned_baseline_gives_differences_until_it_is_gone(cockpit: Cockpit, runs: Path) -> None:
    amber, birch = configured(runs, "amber", 0.5, at=1), configured(runs, "birch", 0.25, at=2)
    assert cockpit("baseline").stdout == ""
    assert cockpit("baseline", "amber").returncode == 0
    assert cockpit("baseline").stdout == f"controls  {amber.id}  0.500\n"
    facts = json.loads(cockpit("compare", "amber", "birch", "--json").stdout)
    assert facts["baselines"] == {"controls": amber.id}
    assert {line["name"]: line["values"]["delta.score"] for line in facts["lines"]} == {"amber": 0.0, "birch": -0.25}
    lines = cockpit("compare", "amber", "birch").stdout.splitlines()
    assert [line.split()[:3] for line in lines[2:4]] == [["amber", "0.500", "pinned"], ["birch", "0.250", "-0.250"]]
    task = FakeRun(runs, "controls-20261128-100000-task", kind="task")
    assert "expected a training" in cockpit("baseline", task.id).stderr
    other = configured(runs, "cedar", 0.3, at=3)
    shutil.rmtree(amber.run.path)
    assert cockpit("baseline").stdout == f"controls  {amber.id}  gone\n"
    assert f"The baseline {amber.id} is gone" in cockpit("compare", birch.id, other.id).stdout
    assert cockpit("baseline", "birch", "--remove").returncode == 0
    assert cockpit("baseline").stdout == ""
    (runs / ".baselines.json").write_text("[")
    assert "delete it and pin the baselines again" in cockpit("baseline").stderr
    assert cockpit("compare", "birch", "cedar").returncode == 0
