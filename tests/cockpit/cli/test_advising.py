"""`cockpit advice`, and what a following command says about an alert."""

from __future__ import annotations

import json
from pathlib import Path

from engines.contract.events import Alert
from tests.cockpit.cli.conftest import Cockpit
from tests.support.fake_run import FakeRun, epoch


def test_advice_tells_gain_cost_and_what_is_wrong(cockpit: Cockpit, runs: Path) -> None:
    fake = FakeRun(runs).begin().started(epochs=40).epochs(*range(1, 8), best=7)
    early = cockpit("advice", "last")
    assert (early.returncode, early.stdout) == (0, "")
    assert "too early to say; a stage needs 8 scored epochs" in early.stderr
    assert json.loads(cockpit("advice", "last", "--json").stdout)["gain_high"] is None
    fake.say(*(epoch(number, score=0.7) for number in range(8, 31)))
    fake.say(Alert(code="plateau", level="warning", text="no better score for 23 epochs", step=300))
    with fake.locked():
        told = cockpit("advice", "last").stdout
    assert "0.7000 in epoch 7" in told
    assert "30 of 40" in told
    assert "15 s" in told
    assert f"no better score for 23 epochs (cockpit early-stop {fake.id})" in told
    facts = json.loads(cockpit("advice", "last", "--json").stdout)
    assert (facts["best_score"], facts["best_epoch"], facts["seconds"], facts["usd"]) == (0.7, 7, 15.0, None)
    assert 0 <= facts["gain_low"] <= facts["gain_middle"] <= facts["gain_high"] < 0.1
