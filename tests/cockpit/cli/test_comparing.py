"""`cockpit compare`: both tables, the same facts as JSON, and one sentence for what cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cockpit.cli.conftest import Cockpit
from tests.support.fake_run import CONFIG, FakeRun


def test_two_runs_are_compared_as_tables_and_as_json(cockpit: Cockpit, runs: Path) -> None:
    first = FakeRun(runs, "controls-20261127-201400-amber").begin().started().epochs(1, 2, 3, best=3).end("finished")
    second = FakeRun(runs, "controls-20261127-211400-birch", label="K=60", created=2e9).begin().started()
    second.epochs(1, best=1).run.config.write_text(CONFIG.replace("look: 0.5", "look: 0.75"))
    lines = cockpit("compare", first.id, "last").stdout.splitlines()
    assert lines[0].split() == ["metric", "amber", "K=60"]
    assert lines[2].split() == ["score", "0.3000", "★", "ep", "3", "0.1000", "ep", "1"]
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


def test_one_run_or_the_same_twice_cannot_be_compared(cockpit: Cockpit, runs: Path) -> None:
    fake = FakeRun(runs).begin().started().end("finished")
    for names in ((fake.id,), (fake.id, "last")):
        answer = cockpit("compare", *names)
        assert answer.returncode != 0
        assert "expected 2 to 8 different ones" in answer.stderr
